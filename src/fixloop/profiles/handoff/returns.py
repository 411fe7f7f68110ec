"""Reads what an agent returns to the orchestrator, and checks it against its contract (D54, D56, U15)."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from fixloop.protocol.event import Unexpected

M = TypeVar("M", bound=BaseModel)

STATUSES: Final = {
    "planner": ("completed",),
    "builder": ("completed",),
    "reviewer": ("needs_fixes", "approved"),
    "fixer": ("fixes_applied",),
}
_NEEDED: Final = {("planner", "completed"): "spec", ("builder", "completed"): "commit"}
MOST_CHARACTERS: Final = 256 * 1024
MOST_BEGINNINGS: Final = 500
_BEGIN: Final = re.compile(r"^[^{\n]{0,80}(\{)", re.MULTILINE)


class InvalidReturn(Unexpected):
    """An agent's result violates its contract."""


class Returned(BaseModel, frozen=True, extra="allow"):
    status: str
    spec: str = ""
    commit: str = ""
    issues: int | tuple[Any, ...] = 0
    """Their number, or the facts of each."""

    @property
    def issue_count(self) -> int:
        return self.issues if isinstance(self.issues, int) else len(self.issues)

    @property
    def further(self) -> dict[str, Any]:
        """The other fields that were returned: `files_changed`, `tests_added`, `issues_fixed`, `commits` … (U15)."""
        return dict(self.model_extra or {})


def fitting(what: str, model: type[M], facts: Mapping[str, Any]) -> M:
    """An agent's output as a value. InvalidReturn names the invalid fields, at most five."""
    try:
        return model.model_validate(facts)
    except ValidationError as error:
        found = ((".".join(map(str, one["loc"])), one["msg"].lower()) for one in error.errors()[:5])
        wrong = "; ".join(f"{where} is wrong: {said}" for where, said in found)
        raise InvalidReturn(f"the {what}'s {wrong}") from None


def check_return(agent: str, result: Returned) -> None:
    """Refuse a result that this agent cannot have (D56). InvalidReturn names the status or what is missing."""
    allowed = STATUSES[agent]
    if result.status not in allowed:
        raise InvalidReturn(f"{agent} returned status {result.status!r}; it returns {' or '.join(allowed)}")
    needed = _NEEDED.get((agent, result.status))
    if needed and not getattr(result, needed).strip():
        raise InvalidReturn(f"{agent} returned no {needed}; with status {result.status} that is needed")
    if result.status == "needs_fixes" and result.issue_count < 1:
        raise InvalidReturn("reviewer returned needs_fixes without an issue; name at least one, or approve")
    if result.status == "approved" and result.issue_count:
        told = f"reviewer approved with {result.issue_count} issues; approve none or ask for fixes"
        raise InvalidReturn(told)
    if needed == "spec" and (result.spec.startswith("/") or ".." in result.spec.split("/")):
        raise InvalidReturn(f"planner returned spec {result.spec!r}, which lies outside the repository")


def read_questions(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects of `type` escalation that an agent printed, in order (D41)."""
    return (value for value in _objects(text[-MOST_CHARACTERS:]) if value.get("type") == "escalation")


def read_return(text: str) -> dict[str, Any]:
    """The last JSON object with a `status` that an agent printed. InvalidReturn: there is none."""
    found: dict[str, Any]
    for found in reversed([*_objects(text[-MOST_CHARACTERS:])]):
        if isinstance(found.get("status"), str) and found.get("type") != "escalation":
            return found
    told = 'the answer has no result; it ends with a JSON object such as {"status": "completed"}'
    raise InvalidReturn(told)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The outermost objects that begin near the start of a line; their number is limited, so that no text is slow."""
    decoder, end = json.JSONDecoder(), 0
    for found in list(_BEGIN.finditer(text))[-MOST_BEGINNINGS:]:
        if found.start(1) < end:
            continue
        try:
            value, end = decoder.raw_decode(text, found.start(1))
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value
