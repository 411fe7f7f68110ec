"""Finds the sections of an agent's Markdown answer, whatever their markup (A32).

A section starts with a heading of any level, a bold label or a plain label, with or without numbers and bullets. Text
before the first section and unknown sections are ignored. Sections are only located, not judged.
"""

import re
from functools import cache
from textwrap import dedent
from typing import TYPE_CHECKING, Final, NamedTuple

from fixloop.protocol.markdown import NOTHING, item_text

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

SUMMARY, FIXES, FILES, READY = (
    "Completion Summary",
    "Fixes Applied",
    "Files Modified",
    "Ready for Re-validation",
)
SECTIONS: Final = (SUMMARY, FIXES, FILES, READY)
_NAMES: Final = {
    "completion summary": SUMMARY,
    "fixes applied": FIXES,
    "files modified": FILES,
    "ready for re validation": READY,
    "ready for revalidation": READY,
}
_BELOW_HEADINGS: Final = 7
_NOT_A_LETTER: Final = re.compile(r"[^a-z]+")
_LEAD: Final = r"[ ]{0,3}(?:[-*+]|\d{1,2}[.)])?[ \t]*"
#: Strictest first.
_FORMS: Final = (
    re.compile(rf"{_LEAD}\*\*([^*]{{1,60}})\*\*[ \t]*:?(.*)", re.DOTALL),
    re.compile(rf"{_LEAD}([A-Za-z][A-Za-z -]{{1,60}}):(.*)", re.DOTALL),
    re.compile(rf"{_LEAD}([A-Za-z][A-Za-z -]{{1,60}})()"),
)
_UNDERLINE: Final = re.compile(r" {0,3}(?:=+|-+)[ \t]*")
_MESSAGE_ID: Final = re.compile(r"[-*\s]{0,8}Message[ -]?ID[*:\s]{1,8}`?([^\s`*]{1,200})", re.IGNORECASE)
_END: Final = re.compile(r"[-*\s]{0,8}(From|To)\*{0,2}:\*{0,2}\s{0,4}`?(@?[\w-]{1,80})", re.IGNORECASE)


@cache
def _markdown() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # slow to load, and only what reads answers needs it

    # Setext headings and references are disabled: a rule would turn the line above it into a heading, and references
    # would vanish. Deep nesting has no meaning here and would make a hostile text slow.
    made = MarkdownIt("commonmark", {"maxNesting": 6}).disable(["lheading", "reference", "html_block"])
    made.core.ruler.enableOnly(["normalize", "block"])
    return made


class Section(NamedTuple):
    """A section: its protocol name, its first line (from 1) and its text."""

    name: str
    line: int
    body: str


class _Start(NamedTuple):
    """The start of a section: its line (from 0), and the text after its name on that line."""

    line: int
    level: int
    name: str
    rest: str


def sections(text: str) -> tuple[Section, ...]:
    """Every known section of `text`, in order, including duplicates."""
    document, found = text.split("\n"), []
    starts = _starts(document)
    for index, start in enumerate(starts):
        if start.name:
            later = (starts[number] for number in range(index + 1, len(starts)))
            ends = (after.line for after in later if after.name or after.level <= start.level)
            rows = document[start.line + 1 : next(ends, len(document))]
            if rows and _may_be_underlined(start) and _UNDERLINE.fullmatch(rows[0]):
                rows = rows[1:]
            body = "\n".join([start.rest.strip(), *rows]).strip("\n")
            found.append(Section(start.name, start.line + 1, body))
    return tuple(found)


class Header(NamedTuple):
    """The header above the first section: each value with its line; empty and 0 if it is missing."""

    message_id: tuple[str, int]
    sender: tuple[str, int]
    recipient: tuple[str, int]


def header(text: str, before: int) -> Header:
    """The header of `text`, which ends before the first section in line `before`."""
    found: dict[str, tuple[str, int]] = {}
    for number, row in enumerate(text.split("\n")[: before - 1], 1):
        if match := _MESSAGE_ID.match(row):
            found.setdefault("id", (match[1], number))
        elif match := _END.match(row):
            found.setdefault(match[1].lower(), (match[2], number))
    return Header(*(found.get(name, ("", 0)) for name in ("id", "from", "to")))


def entries(body: str, *, each_line: bool = False) -> tuple[str, ...] | None:
    """The raw items of a section: empty if it says `none`, None if it is blank."""
    body = dedent(body)
    rows = body.split("\n")
    items = [
        item_text(rows[slice(*_span(token))])
        for token in _markdown().parse(body)
        if token.type == "list_item_open" and token.level == 1
    ]
    if not items:
        items = rows if each_line else [body]
    items = [item for item in items if item.strip()]
    return () if len(items) == 1 and items[0].strip("*_ \t\n").casefold() in NOTHING else tuple(items) or None


def fences(text: str) -> tuple[tuple[int, str], ...]:
    """The fenced blocks of `text`, each with the first line of its content (from 1)."""
    if "```" not in text and "~~~" not in text:
        return ()
    found = (token for token in _markdown().parse(text) if token.type == "fence" and token.level == 0)
    return tuple((_span(token)[0] + 2, token.content) for token in found)


def _starts(document: list[str]) -> list[_Start]:
    """Every known section and every other boundary, by line."""
    tokens, found = _markdown().parse("\n".join(document)), []
    for index, token in enumerate(tokens):
        if token.level == 0 and token.type == "hr":
            found.append(_Start(_span(token)[0], 0, "", ""))
        elif token.level == 0 and token.type == "heading_open":
            name, _, rest = tokens[index + 1].content.partition(":")
            found.append(_Start(_span(token)[0], int(token.tag[1:]), _section(name), rest))
    fenced = {number for token in tokens if token.type == "fence" for number in range(*_span(token))}
    open_lines = [(number, text) for number, text in enumerate(document) if number not in fenced]
    # A looser form counts only for names that no stricter form has found: `Files Modified: x` may be part of a text.
    for form in _FORMS:
        known = {start.name for start in found}
        for number, text in open_lines:
            match = form.fullmatch(text)
            if match and (name := _section(match[1])) and name not in known:
                found.append(_Start(number, _BELOW_HEADINGS, name, match[2]))
    underlined = {start.line + 1 for start in found if _may_be_underlined(start)}
    return sorted(start for start in found if start.level or start.line not in underlined)


def _may_be_underlined(start: _Start) -> bool:
    return start.level == _BELOW_HEADINGS and not start.rest.strip()


def _section(title: str) -> str:
    """The section that `title` names, whatever its numbering and decoration; empty for any other title."""
    return _NAMES.get(_NOT_A_LETTER.sub(" ", title.lower()).strip(), "")


def _span(token: "Token") -> tuple[int, int]:
    first, end = token.map or (0, 0)
    return first, end
