"""Cutting secrets out of what others wrote, before anything of it is stored or judged.

Owns what counts as one: the variables a project asks for by name, those of the environment that are called like a
secret, passwords in URLs, and the tokens and keys that can be told by their form. Refuses to guess from words such as
`password` in running text: that would eat error messages.
"""

import codecs
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from fixloop.secrets.disguises import HIDDEN, Disguises, without_colours
from fixloop.secrets.forms import without_known_forms
from fixloop.secrets.variables import SHORTEST_PASSWORD, secrets_in, worker_secrets

LEFT_OUT: Final = "\n[… "
"""Where a long output was cut (`fixloop.machine.guard`): half a secret may stand on either side."""
_WIDE: Final = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
_MARKS: Final = (
    # Those of UTF-32 begin with those of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class Redaction:
    """Hides the secrets of one workflow."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        """`values` are secrets, or hold some; short words are none."""
        self._disguises = Disguises({secret for value in values for secret in secrets_in(value)})

    @classmethod
    def of(cls, names: Collection[str], variables: Mapping[str, str]) -> "Redaction":
        """
        The redaction of the variables called `names`, and of what else in `variables` is a secret.

        No check is given the latter, but it may read them: it runs with the worker's rights.
        """
        made = cls()
        made._disguises = Disguises(set(worker_secrets(names, variables)))
        return made

    def text(self, text: str) -> str:
        """`text` with three stars for each secret."""
        text = self._disguises.cut(text)
        if LEFT_OUT in text:
            # What stands at the edges may be the beginning or the end of a secret.
            head, mark, rest = text.partition(LEFT_OUT)
            count, bracket, tail = rest.partition("]\n")
            for form in self._disguises.exact:
                for length in range(len(form) - 1, SHORTEST_PASSWORD - 1, -1):
                    head = head.removesuffix(form[:length])
                    tail = tail.removeprefix(form[-length:])
            text = f"{head}{mark}{count}{bracket}{tail}"
        plain = without_colours(text)
        if plain != text and (shown := without_known_forms(plain)) != plain:
            return shown
        return without_known_forms(text)

    def holds(self, data: bytes) -> bool:
        """Whether a value stands in `data`; what only has the form of a secret is none here."""
        return self._through(data, self._disguises.cut) != data

    def data(self, data: bytes) -> bytes:
        """The same for bytes; those that hold no secret come back unchanged."""
        return self._through(data, self.text)

    def _through(self, data: bytes, hide: Callable[[str], str]) -> bytes:
        encoding = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), "")
        if encoding:
            try:
                shown = data.decode(encoding)
            except UnicodeDecodeError:
                return self._without_wide(data)
            hidden = hide(shown)
            return data if hidden == shown else hidden.encode(encoding)
        if b"\0" in data:
            data = self._without_wide(data)
        shown = data.decode("utf-8", "surrogateescape")
        hidden = hide(shown)
        return data if hidden == shown else hidden.encode("utf-8", "surrogateescape")

    def _without_wide(self, data: bytes) -> bytes:
        """Values in letters of several bytes, in what is no text as a whole."""
        for encoding in _WIDE:
            for form in self._disguises.exact:
                data = data.replace(form.encode(encoding, "surrogatepass"), HIDDEN.encode(encoding))
        return data
