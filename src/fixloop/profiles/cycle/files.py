"""The named files of a cycle, rendered from its state (C4, C8-C14, C24-C30, C41, K14, K23, U10, U12).

A file is text, or parts that a store keeps by digest; the same state gives the same files.
"""

import json
from collections.abc import Iterator
from datetime import datetime, timezone
from hashlib import sha256
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from fixloop.errors import InfrastructureError
from fixloop.files.atomic import File
from fixloop.profiles.cycle.documents import progress_path
from fixloop.profiles.cycle.engine import CYCLE
from fixloop.profiles.cycle.events import CycleRestored
from fixloop.profiles.cycle.messages import one_line
from fixloop.profiles.cycle.records import archive_name, version_of
from fixloop.profiles.cycle.state import Cycle
from fixloop.profiles.cycle.workers import WORKERS, field_owner, worker
from fixloop.statefiles.named_files import Files
from fixloop.statefiles.rendering import ARTIFACT, Artifacts, ProfileFiles

_OUTPUTS: Final = {"ra": "RA requirements", "ep": "EP plan", "cd": "CD code changes", "vas": "VAS results"}


class Named(NamedTuple):
    """One file and its content."""

    path: str
    """Relative to the folder of the cycle."""
    parts: tuple[str, ...]
    """In order: text, or the digest of an artifact after `sha256:`."""


def state_path(cycle_id: str) -> str:
    """The path of the shared state (C4)."""
    return f".workflow/.cycle/{cycle_id}.json"


def named_files(state: Cycle) -> Iterator[Named]:
    """Every file in the order of writing: the archive first, so that every version of a document always exists
    somewhere (C14); the state file last, so that it never names a missing document."""

    def named(agent: str, name: str, *parts: str) -> Named:
        return Named(progress_path(state.cycle_id, agent, name), parts)

    for old in state.archive:
        name = archive_name(old.name, version_of(old.version))
        yield named(old.agent, f"history/{name}", ARTIFACT + old.digest)
    for document in state.documents:
        yield named(document.agent, document.name, ARTIFACT + document.digest)
    for agent, name in dict.fromkeys((part.agent, part.name) for part in state.logs):
        parts = (part for part in state.logs if (part.agent, part.name) == (agent, name))
        yield named(agent, name, *(part.text or ARTIFACT + part.digest for part in parts))
    yield named("coordination", "feedback.md", coordination_log(state))
    text = json.dumps(state_document(state), indent=2, ensure_ascii=False) + "\n"
    yield Named(state_path(state.cycle_id), (text,))


def coordination_log(state: Cycle) -> str:
    """`feedback.md`: the current timeline, decisions, blockers and dependencies (C24-C29)."""
    zone = state.limits.zone

    def head(at: datetime, who: str, text: str) -> str:
        return f"- [{at.astimezone(zone):%H:%M:%S}] {who}: {one_line(text)}\n"

    def output(key: str) -> str:
        version = f" (v{state.primary(key)[1]})" if state.documents_of(key) else ""
        return _OUTPUTS.get(key, worker(key).name) + version

    timeline = (head(entry.at, entry.actor, entry.text) for entry in state.timeline)
    decisions = (
        head(record.at, record.made_by.upper(), record.description)
        + f"  - Decision: {one_line(record.chosen_option)}\n"
        f"  - Rationale: {one_line(record.rationale)}\n"
        f"  - Impact: {one_line(record.impact)}\n"
        for record in state.decisions
    )
    blockers = (
        head(record.at, "Blocker", record.description)
        + f"  - Reported by: {worker(record.reported_by).name}\n"
        f"  - Resolution: {one_line(record.resolution) or 'none yet'}\n"
        f"  - Status: {record.status.capitalize()}\n"
        for record in state.blockers
    )
    dependencies = (
        f"- {worker(agent.key).name} depends on: {output(other)}\n"
        for agent in state.agents
        for other in agent.depends_on
    )
    return (
        f"# Feedback & Coordination Log - Version {state.version}\n"
        f"\n## Timeline\n{''.join(timeline)}"
        f"\n## Decision Records\n{''.join(decisions)}"
        f"\n## Blockers & Resolutions\n{''.join(blockers)}"
        f"\n## Cross-Agent Dependencies\n{''.join(dependencies)}"
    )


def state_document(state: Cycle) -> dict[str, Any]:
    """The shared state for agents (C2, C30, C41, C45-C48, U10); times in the cycle's zone (C60)."""
    left = (agent.key for agent in state.agents if not state.completed(agent.key))
    owned = (field for entry in WORKERS.values() for field in entry.fields)
    extra = (value.name for value in state.fields if field_owner(value.name) is None)
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
        "current_phase": "complete" if state.ended else next(left, "aggregation"),
        "completed_phases": [agent.key for agent in state.agents if state.completed(agent.key)],
        "agents": {
            agent.key: {
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
            for agent in state.agents
        },
        **{name: state.value(name) for name in dict.fromkeys((*owned, *extra))},
        "tasks": [task.model_dump(mode="json") for task in state.plan],
        "iterations": state.iterations,
        "field_history": state.fields,
        "coordination": {
            "feedback_log": state.feedback_log,
            "decisions": state.decisions,
            "pending_decisions": state.escalations,
            "blockers": state.blockers,
            "conflicts": state.conflicts,
            "remaining_issues": state.remaining_issues,
        },
    }
    return {name: _plain(value, state.limits.zone) for name, value in document.items()}


def _plain(value: Any, zone: timezone) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(zone).isoformat(timespec="seconds")
    if isinstance(value, BaseModel):
        return _plain(value.model_dump(), zone)
    if isinstance(value, dict):
        return {name: _plain(inner, zone) for name, inner in value.items()}
    return [_plain(inner, zone) for inner in value] if isinstance(value, list | tuple) else value


def _drawn(snapshot: bytes, artifacts: Artifacts) -> Files:
    state = CYCLE.load(snapshot)

    def content(part: str) -> bytes:
        found = artifacts(part.removeprefix(ARTIFACT)) if part.startswith(ARTIFACT) else part.encode()
        if found is None:
            raise InfrastructureError(f"document {part} of {state.workflow} is missing from the store")
        return found

    def file(path: str, parts: tuple[str, ...]) -> File:
        return File(path, sha256("\0".join(parts).encode()).hexdigest(), lambda: tuple(map(content, parts)))

    own = [progress_path(state.cycle_id, agent.key, "").rstrip("/") for agent in state.agents]
    return Files([file(*named) for named in named_files(state)], folders=own)


FILES: Final = ProfileFiles(
    drawn=_drawn, ignored={".workflow/.cycle/.gitignore": "*\n"}, restored=CycleRestored, parts=named_files
)
