"""Reads a PHASE_RESULT (C33-C36, G28). The output around it is ignored.

PHASE_RESULT:
- phase: cd
- status: success
- files_written: [implementation.md, issues.md]
- summary: one line
- issues: []
"""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from fixloop.profiles.cycle.records import ResultStatus
from fixloop.protocol.event import Unexpected, Value

_HEAD: Final = re.compile(r"^[ \t]*(?:\*\*)?PHASE_RESULT:(?:\*\*)?[ \t]*$", re.MULTILINE)
_DETAILS: Final = re.compile(r"^[ \t]*(?:\*\*)?PHASE_DETAILS:(?:\*\*)?[ \t]*$", re.MULTILINE)
_LINE: Final = re.compile(r"^- ([A-Za-z][A-Za-z0-9_ ]{0,63}):[ \t]*(.*)$")
_ITEM: Final = re.compile(r"^\s+[-*] (.*)$")
_REQUIRED: Final = ("phase", "status", "files_written", "summary", "issues")
_BRACKETED: Final = re.compile(r"\[(.*)\]", re.DOTALL)
MOST_CHARACTERS: Final = 64 * 1024
"""The most characters of a block, which is a summary."""


class InvalidResult(Unexpected):
    """The answer of an agent is no valid PHASE_RESULT; the message says why."""


class PhaseResult(Value):
    """One agent's report of one run."""

    phase: str
    status: ResultStatus
    files_written: tuple[str, ...] = ()
    summary: str = ""
    issues: tuple[str, ...] = ()
    fields: dict[str, str | tuple[str, ...]] = {}
    """All further keys, unchanged (G28)."""
    details: str = ""

    def field(self, name: str) -> str:
        """A further key as text; empty if it was not given."""
        value = self.fields.get(name, "")
        return value if isinstance(value, str) else ", ".join(value)

    def listed(self, name: str) -> tuple[str, ...]:
        """A further key as a list."""
        return _listed(self.fields.get(name, ()))


def read_result(text: str) -> PhaseResult:
    """The single PHASE_RESULT of an answer (C35). InvalidResult: there is none, several, or an invalid one."""
    heads = list(_HEAD.finditer(text))
    if len(heads) != 1:
        found = "no PHASE_RESULT" if not heads else f"{len(heads)} PHASE_RESULT blocks"
        raise InvalidResult(f"the answer has {found}; it ends with exactly one, its first line PHASE_RESULT:")
    block, details = text[heads[0].end() :], ""
    if parted := _DETAILS.search(block):
        block, details = block[: parted.start()], block[parted.end() :].strip()[:MOST_CHARACTERS]
    if len(block) > MOST_CHARACTERS:
        told = f"the PHASE_RESULT has {len(block)} characters; at most {MOST_CHARACTERS} are read"
        raise InvalidResult(told)
    pairs = dict(_pairs(block))
    missing = [key for key in _REQUIRED if key not in pairs]
    if missing:
        told = f"the PHASE_RESULT has no {', '.join(missing)}; every run reports {', '.join(_REQUIRED)}"
        raise InvalidResult(told)
    taken = {key: pairs.pop(key) for key in _REQUIRED}
    status = _plain(taken["status"])
    if status not in list(ResultStatus):
        allowed = ", ".join(ResultStatus)
        raise InvalidResult(f"status {status!r} is none of a PHASE_RESULT's; allowed are {allowed}")
    return PhaseResult(
        phase=_plain(taken["phase"]).lower(),
        status=ResultStatus(status),
        files_written=_listed(taken["files_written"]),
        summary=_plain(taken["summary"]),
        issues=_listed(taken["issues"]),
        fields={
            key: value if isinstance(value, str) and not _BRACKETED.fullmatch(value) else _listed(value)
            for key, value in pairs.items()
        },
        details=details,
    )


def _pairs(block: str) -> Iterator[tuple[str, str | list[str]]]:
    key, value = "", ""
    items: list[str] = []
    seen: set[str] = set()
    for line in block.splitlines():
        head, item = _LINE.match(line), _ITEM.match(line)
        if head:
            if key:
                yield key, items or value
            key, value, items = head[1].strip().lower().replace(" ", "_"), head[2].strip(), []
            if key in seen:
                raise InvalidResult(f"the PHASE_RESULT has {key} twice; every key stands once")
            seen.add(key)
        elif item and key and not value:
            items.append(item[1].strip())
        elif line.strip():
            break
    if key:
        yield key, items or value


def _plain(value: str | list[str]) -> str:
    return value if isinstance(value, str) else " ".join(value)


def _listed(value: str | Iterable[str]) -> tuple[str, ...]:
    """`[a, b]`, `["a, with a comma", "b"]`, `a, b`, `none`, or the lines below the key."""
    if not isinstance(value, str):
        return tuple(value)
    with suppress(ValueError, RecursionError):
        found = json.loads(value)
        if isinstance(found, list):
            return tuple(map(str, found))
    bracketed = _BRACKETED.fullmatch(value)
    inner = bracketed[1] if bracketed else value
    if inner.strip().lower() in ("", "none", "-"):
        return ()
    return tuple(part.strip().strip("\"'") for part in inner.split(",") if part.strip())
