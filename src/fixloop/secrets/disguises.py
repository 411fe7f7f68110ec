"""Finds disguised values: escaped for JSON, XML, URLs or shells, several times over, encoded, coloured, in other case.

A text is searched as it is and with its escapes undone, layer by layer. A value found is cut out of the original text,
at its original place, so that JSON stays JSON and XML stays XML. docs/decisions/0039 says why.
"""

import base64
import html
import json
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple
from urllib.parse import quote

HIDDEN: Final = "***"
LAYERS: Final = 6
"""Nested layers of escapes; more than any tool writes."""
SHORTEST: Final = 6
"""The minimum length without quotes and backslashes; a shorter value would match everywhere."""
SHORTEST_ENCODED: Final = 8
"""The minimum bytes of a value to look for in base64 and hex."""

# Each alternative begins with a different letter, so that the search quickly skips all other text.
_COLOURS: Final = (
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|[()][0-9A-Za-z])?"
    r"|\x9b[0-?]*[ -/]*[@-~]"
    # pytest writes ESC as `#x1B`, others leave the rest of the sequence.
    r"|#x1[bB]\[[0-9;]*[A-Za-z]"
    r"|\\\\*(?:u001[bB]|x1[bB]|033|e)\[[0-?]*[ -/]*[@-~]"
    r"|&#(?:27|x1[bB]);\[[0-?]*[ -/]*[@-~]"
    r"|\[\d{1,3}(?:;\d{1,3})*m"
)
_WIDTHLESS: Final = "|".join("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff")
_ESCAPE: Final = re.compile(
    rf"(?P<nothing>{_COLOURS}|{_WIDTHLESS})"
    # An ESC ends a run of escapes: what follows may be a colour, which is taken out as a whole.
    r"|(?P<units>\\\\*u[0-9A-Fa-f]{4}(?:\\+u(?!001[bB])[0-9A-Fa-f]{4})*)"
    r"|(?P<bytes>\\\\*x[0-9A-Fa-f]{2}(?:\\+x(?!1[bB])[0-9A-Fa-f]{2})*)"
    r"|(?P<octal>\\\\*[0-3][0-7]{2}(?:\\+(?!033)[0-3][0-7]{2})*)"
    r"|(?P<point>\\\\*(?:U[0-9A-Fa-f]{8}|u\{[0-9A-Fa-f]{1,6}\}))"
    r"|(?P<percent>%[0-9A-Fa-f]{2}(?:%[0-9A-Fa-f]{2})*)"
    r"|(?P<reference>&(?:#[xX][0-9A-Fa-f]{1,6}|#[0-9]{1,7}|[A-Za-z][A-Za-z0-9]{1,31});)"
)
_ONLY_COLOURS: Final = re.compile(_COLOURS)
_QUOTING: Final = re.compile(r"\\\\*[nrt]|\\|\"|'|\r")
_WHITE: Final = {"n": "\n", "r": "", "t": "\t"}
_UNQUOTED: Final = {"\\n": "\n", "\\t": "\t", "\\r": "", "\\": "", "\r": "", '"': "", "'": ""}


def without_colours(text: str) -> str:
    """`text` without terminal escape sequences."""
    return _ONLY_COLOURS.sub("", text) if "\x1b" in text or "\x9b" in text or "#x1" in text else text


class Disguises:
    """Finds values in any disguise."""

    def __init__(self, values: Iterable[str]) -> None:
        exact: set[str] = set()
        bare: set[str] = set()
        for value in values:
            data = value.encode("utf-8", "surrogateescape")
            # Escaped bytes are read one by one: those of UTF-8 cannot be told from letters.
            cases = {value, value.upper(), value.lower(), value.casefold(), data.decode("latin-1")}
            bare |= {_bare(stage) for case in cases for stage in _stages(case)}
            once = {value, *_escaped(value)}
            exact |= once
            if len(_bare(value)) < SHORTEST:
                exact |= {twice for each in once for twice in _escaped(each)}
            if len(data) >= SHORTEST_ENCODED:
                bare.add(data.hex())
                for before in range(3):
                    # The base64 letters that do not depend on neighbours, for each possible offset of a value: the
                    # first letters hold bits of the text before it, the last ones of the text after.
                    whole = base64.b64encode(b"\0" * before + data).decode().rstrip("=")
                    inner = whole[(before * 4 + 2) // 3 : (before + len(data)) * 8 // 6]
                    exact |= {inner, inner.replace("+", "-").replace("/", "_")}
        self.exact = sorted(exact, key=len, reverse=True)
        """Values as they are, escaped once or twice, and in base64."""
        self._bare = sorted((each for each in bare if len(each) >= SHORTEST), key=len, reverse=True)
        """Without quotes and backslashes, in lower case."""
        self._shortest = min(map(len, (*self.exact, *self._bare)), default=sys.maxsize)

    def cut(self, text: str) -> str:
        """`text` with three stars for each value."""
        spans: list[tuple[int, int]] = []
        for depth, stage in enumerate(_stages(text) if len(text) >= self._shortest else ()):
            bare = _bare(stage)
            exact_here = [needle for needle in self.exact if needle in stage]
            bare_here = [needle for needle in self._bare if needle in bare]
            if exact_here or bare_here:
                origin = _Origin(text, depth)
                spans += [*origin.of(exact_here, stage), *origin.of(bare_here, bare, is_bare=True)]
        done, pieces = 0, []
        for start, end in sorted(spans):
            if start >= done:
                pieces += [text[done:start], HIDDEN]
            done = max(done, end)
        return "".join([*pieces, text[done:]]) if spans else text


class _Origin:
    """Where the characters of a text with `depth` layers undone were written in the text itself."""

    def __init__(self, text: str, depth: int) -> None:
        self._maps = []
        for _ in range(depth):
            text, pieces = _traced(_ESCAPE, _undone, text)
            self._maps.append(pieces)
        self._last = text

    def of(self, needles: Iterable[str], text: str, *, is_bare: bool = False) -> Iterator[tuple[int, int]]:
        """The places of all `needles`."""
        found = [each.span() for needle in needles for each in re.finditer(re.escape(needle), text)]
        if not found:
            return
        maps = self._maps
        if is_bare:
            unquoted = _traced(_QUOTING, lambda found: _WHITE.get(found[0][-1], ""), self._last)
            maps = [*maps, unquoted[1]]
        for start, end in found:
            for pieces in reversed(maps):
                start, end = pieces.origin(start, end)
            yield start, end


class _Pieces(NamedTuple):
    starts: list[int]
    """The start of each piece in the new text."""
    old: list[tuple[int, int]]
    """Where it was in the old one."""
    kept: list[bool]
    """Whether it is unchanged."""

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Where the characters from `start` to before `end` came from; an escape counts as a whole."""
        first = bisect_right(self.starts, start) - 1
        last = bisect_right(self.starts, end - 1) - 1
        begun = self.old[first][0] + (start - self.starts[first] if self.kept[first] else 0)
        ended = self.old[last][0] + end - self.starts[last] if self.kept[last] else self.old[last][1]
        return begun, ended


def _traced(
    pattern: re.Pattern[str], replaced: Callable[[re.Match[str]], str], text: str
) -> tuple[str, _Pieces]:
    """Like `pattern.sub`, and the origin of each piece of the result."""
    made, length, done = _Pieces([], [], []), 0, 0
    parts: list[str] = []

    def add(part: str, start: int, end: int, kept: bool) -> int:
        parts.append(part)
        made.starts.append(length)
        made.old.append((start, end))
        made.kept.append(kept)
        return length + len(part)

    for found in pattern.finditer(text):
        length = add(text[done : found.start()], done, found.start(), True)
        length = add(replaced(found), found.start(), found.end(), False)
        done = found.end()
    add(text[done:], done, len(text), True)
    return "".join(parts), made


def _stages(text: str) -> Iterator[str]:
    """The text as it is, and with one more layer of escapes undone each time."""
    yield text
    for _ in range(LAYERS):
        undone = _ESCAPE.sub(_undone, text)
        if undone == text:
            return
        yield undone
        text = undone


def _undone(found: re.Match[str]) -> str:
    kind, text = found.lastgroup, found[0]
    if kind == "nothing":
        return ""
    if kind == "reference":
        return html.unescape(text)
    if kind == "percent":
        return bytes.fromhex(text.replace("%", "")).decode("latin-1")
    if kind == "octal":
        return "".join(chr(int(part, 8)) for part in re.findall(r"\d+", text))
    if kind == "bytes":
        return bytes.fromhex("".join(re.findall(r"x(..)", text))).decode("latin-1")
    numbers = [int(part, 16) for part in re.findall(r"[uU]\{?([0-9A-Fa-f]+)", text)]
    if max(numbers) > 0x10FFFF:
        return ""
    # A surrogate pair is one letter.
    return "".join(map(chr, numbers)).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _bare(text: str) -> str:
    """Applies `_QUOTING`, without a call for each quote of a long report."""
    for written, read in _UNQUOTED.items():
        text = text.replace(written, read)
    # In lower case, letter by letter, with a form's `+` as a space.
    text = text.replace("+", " ")
    return text.lower() if text.isascii() else text.replace("İ", "i").lower().replace("ς", "σ")


def _escaped(value: str) -> Iterator[str]:
    yield from (html.escape(value), html.escape(value, quote=False))
    yield from (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    yield quote(value, safe="", errors="surrogateescape")
