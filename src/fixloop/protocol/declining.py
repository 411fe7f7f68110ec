"""Declining: an answer that makes no fix and says why, and the test that it calls wrong."""

import re
from enum import StrEnum
from typing import Final, NamedTuple

from pydantic_core import from_json

from fixloop.errors import UsageError

SHOWN_LINES: Final = 30
_WRITTEN: Final = re.compile(
    r"\s{0,99}DECLINED\s{1,99}([\w-]{1,40}):\s{0,99}(\S(?:.{0,9999}\S)?)\s{0,99}", re.DOTALL
)
_NAME: Final = re.compile(r"\w+(?=\W*\Z)")


class Kind(StrEnum):
    """Why no fix is made."""

    TEST_IS_WRONG = "test-is-wrong"
    NEEDS_INFO = "needs-info"
    NOT_MINE = "not-mine"
    BLOCKED = "blocked"


class Declined(NamedTuple):
    """Why no fix is made, in the agent's words."""

    kind: Kind
    text: str


def declined(text: str) -> Declined | None:
    """The refusal in an answer that only declines, as `DECLINED kind: text` or `{"decline": {"kind": …, "text": …}}`;
    None for another answer. UsageError: the refusal is malformed."""
    if written := _WRITTEN.fullmatch(text):
        return Declined(kind_named(written[1]), written[2])
    if not text.lstrip().startswith("{"):
        return None
    try:
        said = from_json(text).get("decline")
    except ValueError:
        return None
    if said is None:
        return None
    why = said.get("text") if isinstance(said, dict) else None
    if not isinstance(why, str) or not why.strip():
        raise UsageError('field "decline" is to have a "kind", and a "text" that says why')
    return Declined(kind_named(str(said.get("kind"))), why.strip())


def kind_named(word: str) -> Kind:
    """The kind with this name; UsageError if there is none."""
    if word not in tuple(Kind):
        raise UsageError(f"{word[:40]!r} is no reason to decline; there are {', '.join(Kind)}")
    return Kind(word)


def file_of(name: str, file: str) -> str:
    """The file of a failing test: from its id if that names one, else from the report."""
    before, colons, _ = name.partition("::")
    return before if colons else file


def excerpt(text: str, name: str, line: int | None) -> str:
    """The lines of a test in its file: from the definition of its name, else around a line."""
    lines = text.splitlines()
    found = _NAME.search(name.partition("[")[0])
    define = r"\b(?:def|func|fn|function)\s+(?:\([^)]*\)\s*)?"
    defined = found and re.compile(rf"{define}{re.escape(found[0])}\b")
    starts = [number for number, each in enumerate(lines) if defined and defined.search(each)]
    first = starts[0] if starts else max((line or 1) - SHOWN_LINES // 2, 0)
    kept = lines[first : first + SHOWN_LINES]
    margin = len(kept[0]) - len(kept[0].lstrip()) if starts else -1
    for number, each in enumerate(kept[1:], 1):
        # A line indented no further than the test starts the next definition.
        text = each.strip()
        if text and len(each) - len(each.lstrip()) <= margin and text[0] not in ")]}":
            return "\n".join(kept[:number]).rstrip()
    return "\n".join(kept).rstrip()
