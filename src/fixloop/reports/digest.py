"""A failing test's text without what can be looked up: the source lines that a traceback copies, and foreign frames.

Owns what is left of it: the error, the values, and each frame of the workspace on one line. Nothing is said twice.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from fixloop.reports.frames import frames_in
from fixloop.reports.tree import SourceTree

_ERROR: Final = re.compile(r"^E(?= {3}|$)")
_RULE: Final = re.compile(r"^(?:_ )+_?$|^-+ .* -+$|^Traceback \(most recent call last\):$")
_PLACE: Final = re.compile(r"^(\S[^:\n]{0,500}:\d{1,7}):(?: (.*))?$")
_NATIVE: Final = re.compile(r'^\s*File "[^"]{1,500}", line \d{1,7}(?:, in .*)?$')
_SOURCE: Final = re.compile(r"^\s")
_DEFINED: Final = re.compile(r"^(?:\s*(?:def |async def |class |@))|^[\w.]+ = <.*>$|^ {4}")
_CARETS: Final = re.compile(r"^\s*[\^~]+[\s\^~]*$")
_FOREIGN_STACK: Final = re.compile(r"^\s+at .*(?:node_modules|node:)")


def digest(text: str, tree: SourceTree) -> str:
    """`text` as somebody needs it who has the code."""
    rows = text.split("\n")
    if any(map(_ERROR.match, rows)):
        return "\n".join(_once(_of_pytest(rows)))
    if any(map(_NATIVE.match, rows)):
        return "\n".join(_once(_native(rows, tree)))
    return "\n".join(row for row in rows if row.strip() and not _FOREIGN_STACK.match(row))


class _Row(NamedTuple):
    text: str
    is_repeatable: bool = False
    """It may be said again: values that are compared often have equal lines."""


def _once(rows: Iterable[_Row]) -> Iterator[str]:
    """What is not said yet; a report gives the message and its traceback, which ends with it."""
    said: set[str] = set()
    for text, is_repeatable in rows:
        words = text.strip()
        if words and words not in said:
            yield text
        if not is_repeatable:
            said.add(words)


def _of_pytest(rows: list[str]) -> Iterator[_Row]:
    """The `E` lines, arguments, and one line for each frame; what precedes the first frame as it stands."""
    code, frame, indent, is_first = "", "", 0, True
    for row in rows:
        place = _PLACE.match(row)
        if frame:
            yield _Row(f"{frame}: {row.strip()}")
            frame = ""
        elif _ERROR.match(row):
            indent = indent or len(row) - len(row[1:].lstrip())
            yield _Row(row[1:indent].lstrip() + row[indent:], is_repeatable=True)
            continue
        elif row.startswith(">"):
            code, is_first = row[1:].strip(), False
        elif place and (place[2] or "").startswith("in "):
            frame, is_first = place[1], False
        elif place:
            yield _Row(f"{place[1]}: {code or place[2] or ''}".rstrip(": "))
            code, is_first = "", False
        elif not _RULE.match(row) and (is_first or not _SOURCE.match(row)) and not _DEFINED.match(row):
            yield _Row(row)
        indent = 0


def _native(rows: list[str], tree: SourceTree) -> Iterator[_Row]:
    """One line for each frame of the workspace, and everything that is no frame."""
    place, is_frame = "", False
    for row in rows:
        if _NATIVE.match(row):
            place, is_frame = next((str(frame) for frame in frames_in(row, tree)), ""), True
        elif is_frame and row.startswith("    "):
            if place and not _CARETS.match(row):
                yield _Row(f"{place}: {row.strip()}")
                place = ""
        else:
            is_frame = False
            if not _RULE.match(row):
                yield _Row(row)
