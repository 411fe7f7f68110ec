"""Writes text as data in Markdown: escaped on one line, fenced on several, and readable back unchanged.

Text of tools and agents must never become a heading, a field, a table cell or a terminal escape sequence, and
`unescape(line(text)) == text` holds for every text. Underscores stay: `__init__.py` must be copied unchanged.
"""

import re
from collections.abc import Iterable
from typing import Final


class Verbatim(str):
    """Markdown that is already safe and is not escaped again."""

    __slots__ = ()


#: Control and direction characters act on terminals and line counts instead of being read; what has no width, tags and
#: the selectors of variants can carry a whole text that a model reads and a person does not see. The two joiners stay:
#: scripts and emoji are written with them.
_HIDDEN: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e01ef"
)
_SUSPECT: Final = re.compile(rf"[\n\\*`&<#{_HIDDEN}]")
_OPENERS: Final = frozenset("#>=~|[-+:_0123456789")
_CONSTRUCT: Final = (
    r"\\(?![A-Za-z0-9])"  # a backslash that could escape what follows
    r"|[*`]"
    r"|&(?=#?\w{1,32};)"  # a character reference
    r"|<(?=[A-Za-z/!?])"  # HTML
    r"|(?<=\])\("  # a link or an image
    r"|(?<=\s)#(?=#*\Z)"  # the closing sequence of a heading
    r"|\A(?:[#>=~|\[]|[-+](?=[\s-]|\Z)|:(?=-)|_(?=[\s_]*\Z)|[0-9]{1,9}[.)](?=\s|\Z))"  # a block's start
    rf"|\A\s+|(?<!\s)\s+\Z|[\n{_HIDDEN}]"  # a run of spaces is looked at once, or long ones cost its square
)
_ACTIVE: Final = re.compile(_CONSTRUCT)
_ACTIVE_IN_CELL: Final = re.compile(rf"{_CONSTRUCT}|\|")
_CONTROL: Final = re.compile(f"[{_HIDDEN}]")
_UNPRINTABLE: Final = re.compile(rf"[\\{_HIDDEN}]")
_TICKS: Final = re.compile("`+")
_ESCAPED: Final = re.compile(
    # A code span stays unchanged; its length is bounded so that a hostile text takes linear time.
    r"\\([!-/:-@\[-`{-~])|&#([0-9]{1,7});|(`{1,3})(?!`)[^`]{1,500}\3(?!`)"
)
_MARKER: Final = re.compile(r"\s*(?:[-+*]|\d{1,9}[.)])(?:\s+|\Z)")

#: Words that say, alone in a section or item, that there is nothing to list (K35).
NOTHING: Final = frozenset({"none", "none.", "nothing", "n/a"})
#: An item without a word. A bare marker would be read as the underline of a heading; no text can forge emphasis.
_WORDLESS: Final = "*empty*"


def line(value: str) -> str:
    """`value` on one line, unable to start or end a Markdown construct; a newline becomes `&#10;`."""
    if not value or (
        _SUSPECT.search(value) is None
        and value[0] not in _OPENERS
        and "](" not in value
        and not value[0].isspace()
        and not value[-1].isspace()
    ):
        return value
    return _ACTIVE.sub(_inactive, value)


def cell(value: str) -> Verbatim:
    """`value` as one cell of a table."""
    return Verbatim(_ACTIVE_IN_CELL.sub(_inactive, value))


def escaped(value: object) -> object:
    """The value of a template's expression: a text as one escaped line, `Verbatim` and other values as they are."""
    return line(value) if isinstance(value, str) and type(value) is not Verbatim else value


def lines(value: str, indent: int = 0) -> Verbatim:
    """`value` with its line breaks; each line is escaped and, after the first, indented."""
    core = value.strip("\n")
    if "\n" not in core:
        return Verbatim(line(value))
    start = value.index(core)
    before, after = value[:start], value[start + len(core) :]
    first, *rest = [line(part) for part in core.split("\n")]
    pad = "\n" + " " * indent
    body = first + "".join(pad + part if part else "\n" for part in rest)
    return Verbatim(line(before) + body + line(after))


def fence(value: str, indent: int = 0) -> Verbatim:
    """`value` in fences longer than any run of backticks in it. The info string is `text`, or `escaped` if control
    characters are shown as Python escapes."""
    info = "text"
    if _CONTROL.search(value):
        info, value = "escaped", _UNPRINTABLE.sub(_visible, value)
    ticks = "`" * max(3, 1 + max(map(len, _TICKS.findall(value)), default=0))
    pad = " " * indent
    body = "\n".join(pad + part if part else "" for part in value.split("\n")) if pad else value
    return Verbatim(f"{pad}{ticks}{info}\n{body}\n{pad}{ticks}")


def text(value: str, indent: int = 0) -> Verbatim:
    """The text after `**Field**:` - one escaped line, or a fence below it for several lines."""
    return Verbatim("\n" + fence(value, indent)) if "\n" in value else Verbatim(" " + line(value))


def code(value: str) -> Verbatim:
    """`value` on one line as a code span, which can be copied unchanged."""
    shown = _CONTROL.sub(_visible, " ".join(value.split("\n")))
    ticks = "`" * (1 + max(map(len, _TICKS.findall(shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return Verbatim(f"{ticks}{pad}{shown}{pad}{ticks}")


def numbered(items: Iterable[str]) -> Verbatim:
    """A list numbered from 1."""
    heads = ((f"{number}. ", item) for number, item in enumerate(items, 1))
    return Verbatim("\n".join(head + _item(item, len(head)) for head, item in heads))


def bullets(items: Iterable[str], indent: int = 0) -> Verbatim:
    """A bullet list, `indent` columns deep."""
    head = " " * indent + "- "
    return Verbatim("\n".join(head + _item(item, len(head)) for item in items))


def unescape(value: str) -> str:
    """The text that `line`, `lines` or `cell` wrote; an agent's code spans stay unchanged."""
    return _ESCAPED.sub(_original, value)


def unitem(value: str) -> str:
    """The text of an item that `numbered` or `bullets` wrote, without marker and indentation."""
    return "" if value == _WORDLESS else unescape(value)


def item_text(rows: list[str]) -> str:
    """A list item's lines without its marker and the marker's indentation."""
    marker = _MARKER.match(rows[0]) if rows else None
    width = marker.end() if marker else 0
    rest = [row[width:] if not row[:width].strip() else row.lstrip() for row in rows[1:]]
    return "\n".join([rows[0][width:] if rows else "", *rest]).rstrip("\n ")


def _item(value: str, indent: int) -> str:
    if not value:
        return _WORDLESS
    # A file named `none` must not read as "there are none".
    return f"&#{ord(value[0])};{value[1:]}" if value.casefold() in NOTHING else lines(value, indent)


def _inactive(match: re.Match[str]) -> str:
    found = match[0]
    if found[0] in "\\*`&<#>=~|[-+:_(":
        return "\\" + found
    if found[0].isdigit():
        return f"{found[:-1]}\\{found[-1]}"
    return "".join(f"&#{ord(character)};" for character in found)


def _visible(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def _original(match: re.Match[str]) -> str:
    punctuation, number = match[1], match[2]
    if punctuation is not None:
        return punctuation
    if number is None or int(number) > 0x10FFFF or 0xD800 <= int(number) <= 0xDFFF:
        return match[0]
    return chr(int(number))
