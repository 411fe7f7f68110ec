"""Cutting secrets out of what commands print and write, before anything of it is stored or judged.

Owns what counts as one: the variables a project asks for by name, those of the worker that are called like a secret,
passwords in URLs, and the tokens and keys that can be told by their form. Refuses to guess from words such as
`password` in running text: that would eat error messages.
"""

import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import quote, unquote

from workers.secret_forms import HIDDEN, without_known_forms

__all__ = ["HIDDEN", "Redaction"]

SHORTEST: Final = 8
"""Shorter values are words like `true` and `staging`; cutting those out would eat the text around them."""
SHORTEST_PASSWORD: Final = 4
LEFT_OUT: Final = "\n[… "
"""Where a long output was cut (`workers.guard`): half a secret may stand on either side."""

_PASSWORD: Final = re.compile(r"://[^\s/:@\"'<>]{0,200}:([^\s/@\"'<>]{1,500})@")
_CALLED_SECRET: Final = re.compile(
    r"\w*(?:SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|API_?KEY|ACCESS_KEY|PRIVATE_KEY|CREDENTIAL)\w*",
    re.IGNORECASE,
)
_WITH_PASSWORDS: Final = ("FIXLOOP_STATE_URL", "FIXLOOP_BROKER_URL", "FIXLOOP_FLOWER_AUTH")


class Redaction:
    """Hides the secrets of one workflow."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        """`values` are secrets, or hold passwords; paths and short words are none."""
        forms = {form for value in values for secret in _secrets_in(value) for form in _forms(secret)}
        # The longest first: one secret may be part of another.
        self._forms = sorted(forms, key=len, reverse=True)

    @classmethod
    def of(cls, names: Iterable[str], variables: Mapping[str, str]) -> "Redaction":
        """
        The redaction of the variables called `names`, and of what else in `variables` is a secret by its name.

        No check is given the latter, but it may read them: it runs with the worker's rights.
        """
        called = (value for name, value in variables.items() if _CALLED_SECRET.fullmatch(name))
        ours = (word for name in _WITH_PASSWORDS for word in _passwords_in(variables.get(name, "")))
        return cls([*(variables.get(name, "") for name in names), *called, *ours])

    def text(self, text: str) -> str:
        """`text` with three stars for each secret."""
        for form in self._forms:
            text = text.replace(form, HIDDEN)
        if LEFT_OUT in text:
            text = self._without_halves(text)
        return without_known_forms(text)

    def data(self, data: bytes) -> bytes:
        """The same for bytes; those that hold no secret come back as they are, whatever they are."""
        shown = data.decode("utf-8", "surrogateescape")
        hidden = self.text(shown)
        return data if hidden == shown else hidden.encode("utf-8", "surrogateescape")

    def _without_halves(self, text: str) -> str:
        """The edges of a cut, without what may be the beginning or the end of a secret."""
        head, mark, rest = text.partition(LEFT_OUT)
        count, bracket, tail = rest.partition("]\n")
        for form in self._forms:
            for length in range(len(form) - 1, SHORTEST_PASSWORD - 1, -1):
                head = head.removesuffix(form[:length])
                tail = tail.removeprefix(form[-length:])
        return f"{head}{mark}{count}{bracket}{tail}"


def _passwords_in(value: str) -> tuple[str, ...]:
    """Of a URL or `user:password` only that: the address itself is no secret."""
    found = _PASSWORD.search(value)
    if found is not None:
        return found[1], unquote(found[1])
    return () if "://" in value else (value.partition(":")[2],)


def _secrets_in(value: str) -> Iterator[str]:
    found = _PASSWORD.search(value)
    if found is not None and len(found[1]) >= SHORTEST_PASSWORD:
        yield from (found[1], unquote(found[1]))
    # Tools print keys line by line, and a value read from a file often ends with a line break.
    for part in {value.strip(), *(line.strip() for line in value.splitlines())}:
        if len(part) >= SHORTEST and not part.startswith(("/", "~/", "./")):
            yield part


def _forms(secret: str) -> Iterator[str]:
    """As it is, and as XML, JSON and URLs have it."""
    yield from (secret, html.escape(secret), html.escape(secret, quote=False))
    yield from (
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        quote(secret, safe=""),
    )
