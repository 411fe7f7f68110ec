"""Cutting secrets out of what commands print and write, before anything of it is stored or judged.

Owns what counts as one: the variables a project asks for by name, passwords in URLs, and the tokens and keys
that can be told by their form. Refuses to guess from words such as `password`: that would eat error messages.
"""

import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import quote, unquote

__all__ = ["HIDDEN", "Redaction"]

HIDDEN: Final = "***"
SHORTEST: Final = 8
"""Shorter values are words like `true` and `staging`; cutting those out would eat the text around them."""
SHORTEST_PASSWORD: Final = 4
LEFT_OUT: Final = "\n[… "
"""Where a long output was cut (`workers.guard`): half a secret may stand on either side."""

_PASSWORD: Final = re.compile(r"(?<=://)([^\s/:@\"'<>]{0,200}):([^\s/@\"'<>]{1,500})@")
_TOKENS: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.{0,20000}?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{40,}|glpat-[\w-]{20,}|xox[abposr]-[\w-]{10,}"
    r"|sk-(?:ant-|proj-)?[\w-]{20,}|AKIA[A-Z0-9]{16}|AIza[\w-]{35}|npm_[A-Za-z0-9]{36}"
    r"|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,})"
    r"|(?<=\bBearer )[\w.~+/-]{16,}=*",
    re.DOTALL,
)


class Redaction:
    """Hides the secrets of one workflow."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        """`values` are those of the variables that the project asked for; paths and short words are none."""
        forms = {form for value in values for secret in _secrets_in(value) for form in _forms(secret)}
        # The longest first: one secret may be part of another.
        self._forms = sorted(forms, key=len, reverse=True)

    @classmethod
    def of(cls, names: Iterable[str], variables: Mapping[str, str]) -> "Redaction":
        """The redaction of the variables called `names`."""
        return cls(variables.get(name, "") for name in names)

    def text(self, text: str) -> str:
        """`text` with three stars for each secret."""
        for form in self._forms:
            text = text.replace(form, HIDDEN)
        if LEFT_OUT in text:
            text = self._without_halves(text)
        text = _PASSWORD.sub(lambda found: f"{found[1]}:{HIDDEN}@", text)
        return _TOKENS.sub(HIDDEN, text)

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


def _secrets_in(value: str) -> Iterator[str]:
    found = _PASSWORD.search(value)
    if found is not None and len(found[2]) >= SHORTEST_PASSWORD:
        yield from (found[2], unquote(found[2]))
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
