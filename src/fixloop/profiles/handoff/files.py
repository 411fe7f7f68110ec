"""The named files of a handoff workflow, rendered from its state (D14, D15, D20-D22, D47, K14, K23, R13)."""

import json
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

from fixloop.files.atomic import File, Folders
from fixloop.profiles.handoff.engine import HANDOFF
from fixloop.profiles.handoff.events import HandoffsRestored
from fixloop.profiles.handoff.state import Handoffs
from fixloop.protocol.durations import iso_stamp
from fixloop.protocol.event import USER
from fixloop.protocol.ids import message_uid
from fixloop.statefiles.named_files import Files
from fixloop.statefiles.rendering import Artifacts, ProfileFiles

HANDOFFS: Final = ".claude/handoffs"
"""The folder of handoffs, each in one of its subfolders (D14)."""
STATE_FILE: Final = ".claude/state.json"
"""The shared state (D19)."""
FOLDERS: Final = ("pending", "accepted", "completed")


class Named(NamedTuple):
    """One file and its content."""

    path: str
    """Relative to the folder of the workflow."""
    text: str


def named_files(state: Handoffs) -> Iterator[Named]:
    """Every file: handoffs in their folders, events, the source of the metrics, and `state.json` last."""
    for message in state.messages:
        path = f"{HANDOFFS}/{message.status.folder}/handoff-{message.message_id}.json"
        yield Named(path, _json(message.document))
    yield Named(".claude/events.ndjson", "".join(json.dumps(event.document) + "\n" for event in state.events))
    yield Named(STATE_FILE, _json(state_document(state)))


def state_document(state: Handoffs) -> dict[str, Any]:
    """The shared state (D20); the agents' own fields follow those of the protocol (D45)."""
    last = state.messages[-1].message_id if state.messages else None
    document = {
        "schema_version": "1.0.0",
        "current_workflow": {
            # A UUID of version 4, derived, so that a rebuilt file has the same one (D22).
            "id": f"workflow-{message_uid(state.workflow, 0)}",
            "type": state.kind.value,
            "started": iso_stamp(state.started_at),
            "spec": state.spec,
        },
        "current_agent": state.current_agent or None,
        "last_handoff": f"handoff-{last}" if last else None,
        "locks": {
            resource: {
                "agent": lock.agent,
                "acquired": iso_stamp(lock.acquired),
                "expires": iso_stamp(lock.expires),
            }
            for resource, lock in state.locks.items()
        },
        "iteration": state.iteration,
        "agents": {
            # `last_active` is absent for an agent that never ran (D21).
            agent.name: {"status": agent.status}
            | ({"last_active": iso_stamp(agent.last_active)} if agent.last_active is not None else {})
            for agent in state.agents
        },
        "status": state.status,
        "waiting_for": USER if state.questions else None,
    }
    return document | {name: value for name, value in state.metadata.items() if name not in document}


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def drawn(snapshot: bytes, artifacts: Artifacts) -> Files:
    """The files of a state: handoffs are replaced as one folder, the others one by one."""
    files, inside = [], {}
    for named in named_files(HANDOFF.load(snapshot)):
        path = PurePosixPath(named.path)
        if path.is_relative_to(HANDOFFS):
            inside[path.relative_to(HANDOFFS).as_posix()] = named.text.encode()
        else:
            files.append(File.of(named.path, named.text.encode()))
    return Files(files, {HANDOFFS: Folders(FOLDERS, inside)})


FILES: Final = ProfileFiles(
    drawn=drawn,
    ignored={".claude/.gitignore": "/handoffs\n/.handoffs.*\n/events.ndjson\n/state.json\n/.gitignore\n"},
    restored=HandoffsRestored,
    place="handoff",
    swapped=HANDOFFS,
)
