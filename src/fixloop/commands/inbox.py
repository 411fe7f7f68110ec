"""What waits for somebody outside the engine: a decision, a manual fix, or an outside agent's fix."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from fixloop.commands.outcome import decision_commands, fix_commands, waits_for_agent
from fixloop.commands.screen import say
from fixloop.errors import NewerVersion
from fixloop.offering import offered_at
from fixloop.protocol.durations import iso_stamp
from fixloop.protocol.ids import request_id
from fixloop.protocol.messages import MAIN_AGENT, USER, Decision
from fixloop.protocol.notices import count_of
from fixloop.protocol.state import Hold, OpenEscalation, State
from fixloop.snapshots import load_state
from fixloop.store.contract import Store
from fixloop.store.records import Snapshot

__all__ = ["item_text", "waiting"]


_WHAT: Final = {
    "decision": "a decision",
    "manual-fix": "a manual fix",
    "fix": "a fix",
    "continue": "`fixloop continue`",
}


def waiting(store: Store, cache: Path, *, prefix: str = "") -> list[dict[str, Any]]:
    """Everything that waits, the longest first; `prefix` of workflow ids narrows it to a project."""
    found = (
        _item(store, workflow, cache) for workflow in _candidates(store.workflows(live_only=True), prefix)
    )
    return sorted((item for item in found if item is not None), key=lambda item: str(item["since"]))


def _candidates(found: Iterable[tuple[str, Mapping[str, str]]], prefix: str) -> Iterator[str]:
    """Plain fields tell nearly all; the snapshot of the rest has to be read."""
    for workflow, fields in found:
        if workflow.startswith(prefix) and fields.get("owner") in ("person", "agent"):
            yield workflow


def _item(store: Store, workflow: str, cache: Path) -> dict[str, Any] | None:
    found = store.read(workflow)
    if found is None:
        return None
    try:
        state = load_state(found.snapshot)
    except NewerVersion as newer:
        # What others wait for is shown all the same.
        say(str(newer))
        return None
    common = {
        "issue": state.issue,
        "name": state.name,
        "workflow_id": workflow,
        "project": state.project,
        "specialist": state.current,
        "iteration": state.active.iteration,
        "max_iterations": state.active.max_iterations,
    }
    if state.held is not None:
        return common | _pause(state, state.held)
    if state.escalation is not None:
        return common | _decision(state, state.escalation, cache)
    return common | _fix(found, state, cache) if waits_for_agent(state) else None


def _pause(state: State, held: Hold) -> dict[str, Any]:
    return {
        "waits_for": "continue",
        "escalation_id": None,
        "reason": f"paused by {held.by}",
        "detail": held.reason,
        "target": USER,
        "since": iso_stamp(held.at),
        "directory": None,
        "commands": [f"fixloop continue {state.issue}"],
    }


def _decision(state: State, opened: OpenEscalation, cache: Path) -> dict[str, Any]:
    manual = opened.decision is Decision.MANUAL_FIX
    return {
        "waits_for": "manual-fix" if manual else "decision",
        "escalation_id": opened.message_id,
        "reason": opened.reason.text,
        "detail": opened.detail,
        "target": opened.target,
        "since": iso_stamp(opened.at),
        "directory": _directory(state, cache) if manual else None,
        "commands": list(decision_commands(state)),
    }


def _fix(found: Snapshot, state: State, cache: Path) -> dict[str, Any]:
    return {
        "waits_for": "fix",
        "escalation_id": None,
        "reason": request_id(state.issue, state.active.iteration),
        "detail": count_of(state.failure_count),
        "target": MAIN_AGENT,
        "since": iso_stamp(_offered_since(found, state)),
        "directory": _directory(state, cache),
        "commands": list(fix_commands(state)),
    }


def _offered_since(found: Snapshot, state: State) -> datetime:
    operation = state.operation
    if operation is None or operation.started_clock is None:
        return state.last_at
    return found.moment.at - timedelta(seconds=found.moment.clock - operation.started_clock)


def _directory(state: State, cache: Path) -> str | None:
    """Where the fix is to be made; None until `ack` or `run` has made the directory on this machine."""
    made = offered_at(state, cache).directory if state.snapshot else None
    return str(made) if made is not None and made.is_dir() else None


def item_text(item: Mapping[str, Any]) -> Iterator[str]:
    """One item for people."""
    what = {
        "decision": "a decision",
        "manual-fix": "a manual fix",
        "fix": "a fix",
        "continue": "`fixloop continue`",
    }[item["waits_for"]]
    yield f"#{item['issue']} {item['name']} waits for {what} since {item['since']}"
    detail = f": {item['detail']}" if item["detail"] else ""
    yield f"  {item['reason']}{detail}"
    yield f"  {item['specialist']}, run {item['iteration']}/{item['max_iterations']}; to {item['target']}"
    if item["escalation_id"]:
        yield f"  {item['escalation_id']}"
    if item["waits_for"] == "fix":
        yield f"  directory: {item['directory'] or 'made by the first of these commands'}"
    elif item["directory"]:
        yield f"  directory: {item['directory']}"
    yield from (f"  {command}" for command in item["commands"])
