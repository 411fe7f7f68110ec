"""The named files of a handoff workflow, drawn from its state (D14, D15, D20-D22, D47, K14, K23, R13).

Nothing is written here; the same state gives the same files.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final, NamedTuple

from fixloop.profiles.handoff.records import EventRecord, Lock, Message
from fixloop.profiles.handoff.state import Agent, Handoffs
from fixloop.protocol.agents import USER
from fixloop.protocol.durations import iso_stamp
from fixloop.protocol.ids import message_uid

HANDOFFS: Final = ".claude/handoffs"
"""Where handoffs lie, each in one of the folders (D14)."""
STATE_FILE: Final = ".claude/state.json"
"""The shared state (D19)."""
FOLDERS: Final = ("pending", "accepted", "completed")


class Named(NamedTuple):
    """One file and what stands in it."""

    path: str
    """Relative to the folder that the workflow belongs to."""
    text: str


def named_files(state: Handoffs) -> Iterator[Named]:
    """Every file: handoffs in their folders, events, metrics' source, and `state.json` last."""
    for message in state.messages:
        path = f"{HANDOFFS}/{message.status.folder}/handoff-{message.message_id}.json"
        yield Named(path, _json(message_document(message)))
    events = "".join(json.dumps(event_document(event)) + "\n" for event in state.events)
    yield Named(".claude/events.ndjson", events)
    yield Named(STATE_FILE, _json(state_document(state)))


def message_document(message: Message) -> dict[str, Any]:
    """A message as the seed writes it (D1)."""
    document = message.model_dump(mode="json", by_alias=True, exclude={"reason"})
    document["timestamp"] = iso_stamp(message.timestamp)
    return document | ({"reason": message.reason} if message.reason else {})


def message_text(message: Message) -> str:
    """A message in full, as a person reads it."""
    return json.dumps(message_document(message), indent=2, ensure_ascii=False)


def event_document(event: EventRecord) -> dict[str, Any]:
    """One of the six events as the seed writes it (D47)."""
    return {
        "event": event.event,
        "agent": event.agent,
        "timestamp": iso_stamp(event.timestamp),
        "context": {"workflow": event.workflow.value, "spec": event.spec},
    }


def state_document(state: Handoffs) -> dict[str, Any]:
    """The shared state (D20); agents' own fields follow the protocol's (D45)."""
    last = state.messages[-1].message_id if state.messages else None
    document = {
        "schema_version": "1.0.0",
        "current_workflow": {
            "id": f"workflow-{workflow_uuid(state)}",
            "type": state.kind.value,
            "started": iso_stamp(state.started_at),
            "spec": state.spec,
        },
        "current_agent": state.current_agent or None,
        "last_handoff": f"handoff-{last}" if last else None,
        "locks": {resource: _lock(lock) for resource, lock in state.locks.items()},
        "iteration": state.iteration,
        "agents": {agent.name: _agent(agent) for agent in state.agents},
        "status": state.status,
        "waiting_for": USER if state.questions else None,
    }
    return document | {name: value for name, value in state.metadata.items() if name not in document}


def workflow_uuid(state: Handoffs) -> str:
    """The workflow's id as a UUID of version 4, derived: a rebuilt file says the same (D22)."""
    return message_uid(state.workflow, 0)


def _agent(agent: Agent) -> dict[str, Any]:
    """`last_active` is absent for one that never ran (D21)."""
    return {"status": agent.status} | _when("last_active", agent.last_active)


def _lock(lock: Lock) -> dict[str, Any]:
    return {
        "agent": lock.agent,
        "acquired": iso_stamp(lock.acquired),
        "expires": iso_stamp(lock.expires),
    }


def _when(name: str, at: datetime | None) -> dict[str, str]:
    return {name: iso_stamp(at)} if at is not None else {}


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
