"""Reading a PHASE_RESULT (C33-C36, G28). What an agent printed around it is not read.

PHASE_RESULT:
- phase: cd
- status: success
- files_written: [implementation.md, issues.md]
- summary: one line
- issues: []
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from fixloop.profiles.cycle.statuses import ResultStatus
from fixloop.protocol.refusals import Unexpected

_HEAD: Final = re.compile(r"^[ \t]*(?:\*\*)?PHASE_RESULT:(?:\*\*)?[ \t]*$", re.MULTILINE)
_DETAILS: Final = re.compile(r"^[ \t]*(?:\*\*)?PHASE_DETAILS:(?:\*\*)?[ \t]*$", re.MULTILINE)
_LINE: Final = re.compile(r"^- ([A-Za-z][A-Za-z0-9_ ]{0,63}):[ \t]*(.*)$")
_ITEM: Final = re.compile(r"^\s+[-*] (.*)$")
_LISTS: Final = ("files_written", "issues")
_REQUIRED: Final = ("phase", "status", "files_written", "summary", "issues")
MOST_CHARACTERS: Final = 64 * 1024
"""Of a block; what is longer is no summary."""


class InvalidResult(Unexpected):
    """What an agent brought is no PHASE_RESULT; the sentence says what is missing."""


class PhaseResult(BaseModel):
    """One agent's report of one run."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    phase: str
    status: ResultStatus
    files_written: tuple[str, ...] = ()
    summary: str = ""
    issues: tuple[str, ...] = ()
    fields: dict[str, str | tuple[str, ...]] = {}
    """All further keys as given (G28)."""
    details: str = ""

    def field(self, name: str) -> str:
        """A further key as text; empty when it was not given."""
        value = self.fields.get(name, "")
        return value if isinstance(value, str) else ", ".join(value)

    def listed(self, name: str) -> tuple[str, ...]:
        """A further key as a list."""
        value = self.fields.get(name, ())
        return _listed(value) if isinstance(value, str) else value


def read_result(text: str) -> PhaseResult:
    """
    The one PHASE_RESULT of an answer (C35).

    Raises:
        InvalidResult: there is none, there are several, or one is no valid block.
    """
    heads = list(_HEAD.finditer(text))
    if len(heads) != 1:
        found = "no PHASE_RESULT" if not heads else f"{len(heads)} PHASE_RESULT blocks"
        raise InvalidResult(f"the answer has {found}; it ends with exactly one, its first line PHASE_RESULT:")
    block, details = _parts(text[heads[0].end() :])
    if len(block) > MOST_CHARACTERS:
        raise InvalidResult(
            f"the PHASE_RESULT has {len(block)} characters; at most {MOST_CHARACTERS} are read"
        )
    return _result(dict(_pairs(block)), details)


def _parts(rest: str) -> tuple[str, str]:
    found = _DETAILS.search(rest)
    if found is None:
        return rest, ""
    return rest[: found.start()], rest[found.end() :].strip()[:MOST_CHARACTERS]


def _pairs(block: str) -> Iterator[tuple[str, Any]]:
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


def _result(pairs: dict[str, Any], details: str) -> PhaseResult:
    missing = [key for key in _REQUIRED if key not in pairs]
    if missing:
        raise InvalidResult(
            f"the PHASE_RESULT has no {', '.join(missing)}; every run reports {', '.join(_REQUIRED)}"
        )
    taken = {key: pairs.pop(key) for key in _REQUIRED}
    status = _plain(taken["status"])
    if status not in list(ResultStatus):
        allowed = ", ".join(ResultStatus)
        raise InvalidResult(f"status {status!r} is none of a PHASE_RESULT's; allowed are {allowed}")
    return PhaseResult(
        phase=_plain(taken["phase"]).lower(),
        status=ResultStatus(status),
        summary=_plain(taken["summary"]),
        fields={key: _value(value) for key, value in pairs.items()},
        details=details,
        **{key: _listed(taken[key]) for key in _LISTS},
    )


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else " ".join(value)


def _value(value: Any) -> str | tuple[str, ...]:
    if isinstance(value, str):
        return _listed(value) if value.startswith("[") and value.endswith("]") else value
    return tuple(value)


def _listed(value: Any) -> tuple[str, ...]:
    """`[a, b]`, `["a, with a comma", "b"]`, `a, b`, `none`, or the lines below the key."""
    if not isinstance(value, str):
        return tuple(value)
    quoted = _quoted(value)
    if quoted is not None:
        return quoted
    inner = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    if inner.strip().lower() in ("", "none", "-"):
        return ()
    return tuple(part.strip().strip("\"'") for part in inner.split(",") if part.strip())


def _quoted(value: str) -> tuple[str, ...] | None:
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return tuple(map(str, found)) if isinstance(found, list) else None
