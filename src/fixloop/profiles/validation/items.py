"""What waits for somebody outside the engine in a validation workflow: a decision, a manual fix, or a fix."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from fixloop.commands.choices import Choice, choices, fix_choices, no_fixer
from fixloop.commands.outcome import offered_since, waits_for_agent
from fixloop.outside.offer import offered_at
from fixloop.protocol.durations import iso_stamp
from fixloop.protocol.ids import called, request_id
from fixloop.protocol.messages import MAIN_AGENT, USER, Decision
from fixloop.protocol.notices import count_of
from fixloop.protocol.state import Hold, OpenEscalation, State
from fixloop.store.records import Snapshot


def items(found: Snapshot, state: State, cache: Path) -> Iterator[dict[str, Any]]:
    """One at most: its steps follow one another."""
    common = {
        "specialist": state.current,
        "iteration": state.active.iteration,
        "max_iterations": state.active.max_iterations,
    }
    if state.held is not None:
        yield common | _pause(state, state.held)
    elif state.escalation is not None:
        yield common | _decision(state, state.escalation, cache)
    elif waits_for_agent(state):
        yield common | _fix(found, state, cache)


def _pause(state: State, held: Hold) -> dict[str, Any]:
    return {
        "waits_for": "continue",
        "escalation_id": None,
        "reason": f"paused by {held.by}",
        "detail": held.reason,
        "target": USER,
        "since": iso_stamp(held.at),
        "directory": None,
        "commands": [f"fixloop continue {called(state)}"],
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
        "commands": _commands(choices(state)),
        "choices": _documents(choices(state)),
    }


def _fix(found: Snapshot, state: State, cache: Path) -> dict[str, Any]:
    return {
        "waits_for": "fix",
        "escalation_id": None,
        "reason": request_id(state.issue, state.active.iteration),
        "detail": count_of(state.failure_count),
        "target": MAIN_AGENT,
        "since": iso_stamp(offered_since(found, state)),
        "directory": _directory(state, cache),
        "hint": "; ".join(no_fixer(state)),
        "commands": _commands(fix_choices(state)),
        "choices": _documents(fix_choices(state)),
    }


def _commands(found: Iterable[Choice]) -> list[str]:
    return [each.command for each in found]


def _documents(found: Iterable[Choice]) -> list[dict[str, str]]:
    return [each._asdict() for each in found]


def _directory(state: State, cache: Path) -> str | None:
    """Where the fix is to be made; None until `ack` or `run` has made the directory on this machine."""
    made = offered_at(state, cache).directory if state.snapshot else None
    return str(made) if made is not None and made.is_dir() else None
