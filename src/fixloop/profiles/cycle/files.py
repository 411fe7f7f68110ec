"""The named files of a cycle, drawn from its state: what to write where (C4, C8-C14, C30, C41, K23, R13, U10, U12).

Nothing is written here. A file is text, or parts that a store keeps by digest; the same state gives the same files.
"""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from pydantic import BaseModel

from fixloop.profiles.cycle.documents import progress_path
from fixloop.profiles.cycle.feedback_log import coordination_log
from fixloop.profiles.cycle.state import Agent, Cycle
from fixloop.profiles.cycle.versions import archive_name, version_of
from fixloop.profiles.cycle.workers import WORKERS, field_owner


class Named(NamedTuple):
    """One file and what stands in it."""

    path: str
    """Relative to the folder that the cycle belongs to."""
    parts: tuple[str, ...]
    """In order: text, or the digest of an artifact after `sha256:`."""


def state_path(cycle_id: str) -> str:
    """Where the shared state stands (C4)."""
    return f".workflow/.cycle/{cycle_id}.json"


def named_files(state: Cycle) -> Iterator[Named]:
    """
    Every file of the cycle, in the order they are written.

    The archive is the first, so that every version of a document is somewhere at every moment (C14); the state file
    the last, so that it never names a document that is not there.
    """
    for old in state.archive:
        name = archive_name(old.name, version_of(old.version))
        yield Named(progress_path(state.cycle_id, old.agent, f"history/{name}"), (f"sha256:{old.digest}",))
    for document in state.documents:
        yield Named(
            progress_path(state.cycle_id, document.agent, document.name), (f"sha256:{document.digest}",)
        )
    for agent, name in dict.fromkeys((part.agent, part.name) for part in state.logs):
        parts = (part for part in state.logs if (part.agent, part.name) == (agent, name))
        path = progress_path(state.cycle_id, agent, name)
        yield Named(path, tuple(part.text or f"sha256:{part.digest}" for part in parts))
    log = progress_path(state.cycle_id, "coordination", "feedback.md")
    yield Named(log, (coordination_log(state),))
    text = json.dumps(state_document(state), indent=2, ensure_ascii=False) + "\n"
    yield Named(state_path(state.cycle_id), (text,))


def state_document(state: Cycle) -> dict[str, Any]:
    """The shared state as agents read it (C2, C30, C41, C45-C48, U10); times in the cycle's zone (C60)."""
    zone = timezone(timedelta(minutes=state.limits.utc_offset_minutes))
    document = {
        "cycle_id": state.cycle_id,
        "title": state.name[:100],
        "description": state.description,
        "status": state.status.value,
        "created_at": state.started_at,
        "updated_at": state.last_at,
        "completed_at": state.ended_at,
        "max_iterations": state.max_iterations,
        "current_iteration": state.iteration,
        "version": state.version,
        "current_phase": _phase(state),
        "completed_phases": [agent.key for agent in state.agents if state.completed(agent.key)],
        "agents": {agent.key: _agent(state, agent) for agent in state.agents},
        **_fields(state),
        "tasks": [task.model_dump(mode="json") for task in state.plan],
        "iterations": [record.model_dump() for record in state.iterations],
        "field_history": [value.model_dump() for value in state.fields],
        "coordination": _coordination(state),
    }
    found = _plain(document, zone)
    assert isinstance(found, dict)
    return found


def _agent(state: Cycle, agent: Agent) -> dict[str, Any]:
    return {
        "status": agent.status.value,
        "started_at": agent.started_at,
        "completed_at": agent.completed_at,
        "output_files": list(agent.output_files),
        "iterations_completed": len(agent.completed_in),
        "depends_on": list(agent.depends_on),
        "ready": state.ready(agent.key),
        "can_start": state.can_start(agent.key),
        "message": agent.message,
    }


def _fields(state: Cycle) -> dict[str, Any]:
    owned = (field for entry in WORKERS.values() for field in entry.fields)
    extra = (value.name for value in state.fields if field_owner(value.name) is None)
    return {name: state.value(name) for name in dict.fromkeys((*owned, *extra))}


def _coordination(state: Cycle) -> dict[str, Any]:
    return {
        "feedback_log": [entry.model_dump() for entry in state.feedback_log],
        "decisions": [record.model_dump() for record in state.decisions],
        "pending_decisions": [opened.model_dump() for opened in state.escalations],
        "blockers": [blocker.model_dump() for blocker in state.blockers],
        "conflicts": [conflict.model_dump() for conflict in state.conflicts],
        "remaining_issues": list(state.remaining_issues),
    }


def _phase(state: Cycle) -> str:
    if state.ended:
        return "complete"
    left = (agent.key for agent in state.agents if not state.completed(agent.key))
    return next(left, "aggregation")


def _plain(value: Any, zone: timezone) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(zone).isoformat(timespec="seconds")
    if isinstance(value, BaseModel):
        return _plain(value.model_dump(), zone)
    if isinstance(value, dict):
        return {name: _plain(inner, zone) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner, zone) for inner in value]
    return value
