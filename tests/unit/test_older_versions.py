"""Data of older versions: it loads, it is shown, and the loop continues. Data of newer ones is not touched."""

import base64
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from fixloop.engine.hints import arguments
from fixloop.engine.history import said
from fixloop.engine.profile import load_state
from fixloop.errors import NewerVersion, ProtocolError
from fixloop.protocol.event import Moment
from fixloop.protocol.events import KINDS as EVENT_KINDS, DecisionMade, FixCompleted, Paused, event_from_json
from fixloop.protocol.log import full_log
from fixloop.protocol.messages import Decision, Message, RevalidationTrigger
from fixloop.protocol.rendering import render_whole
from fixloop.protocol.state import SCHEMA_VERSION, Completion, State
from fixloop.protocol.ticket import Ticket
from fixloop.protocol.validation import decide
from fixloop.store.archive.files import Archive
from fixloop.store.archive.read_through import with_archive
from fixloop.store.archive.record import stored_of
from tests.fixtures.memory_store import MemoryStore
from tests.fixtures.message_samples import SAMPLES
from tests.unit.golden_schema import FOLDER, PRESENT, schemas, text
from workers.steps.execution import STEP_HANDLERS

if os.environ.get("UPDATE_GOLDEN"):
    (FOLDER / f"{PRESENT}.json").write_text(text(), encoding="utf-8")

OLDER: Final[list[tuple[str, dict[str, Any]]]] = [
    (path.stem, json.loads(path.read_text(encoding="utf-8"))) for path in sorted(FOLDER.glob("*.json"))
]
WHOLE: Final = [version for version, kept in OLDER if "record" in kept]
"""Version 1 kept neither events nor whole workflows."""
MESSAGES: Final = [(version, name) for version, kept in OLDER for name in kept["messages"]]


def kept(version: str) -> dict[str, Any]:
    return dict(OLDER)[version]


def state(version: str, name: str) -> State:
    return load_state(json.dumps(kept(version)["states"][name]).encode())


def later(since: State) -> Moment:
    """Well after every time in the state."""
    return Moment(since.last_at + timedelta(minutes=10), 10_000.0)


@pytest.mark.parametrize(("version", "name"), MESSAGES)
def test_an_older_message_loads_and_is_shown(version: str, name: str) -> None:
    message = Message.model_validate(kept(version)["messages"][name])

    assert render_whole(message).startswith("## ")
    assert message.message_id in full_log([message], issue=101, feature="x", outcome=None)


@pytest.mark.parametrize(
    ("version", "name"), [(version, name) for version, data in OLDER for name in data["states"]]
)
def test_an_older_state_loads_and_is_written_as_it_was(version: str, name: str) -> None:
    found = state(version, name)

    written = json.loads(found.model_dump_json(exclude_defaults=True))
    assert written == kept(version)["states"][name]


@pytest.mark.parametrize("version", [version for version, _ in OLDER])
def test_a_loop_that_an_older_version_began_takes_its_fix(version: str) -> None:
    waiting = state(version, "awaiting-fix")
    completion = Completion(iteration=1, by="agent", fixes=("it",), files=("a.py",), tip="c1", tree="tree-1")

    outcome = decide(waiting, FixCompleted(specialist="test-runner", completion=completion), later(waiting))

    trigger = outcome.messages[-1].body
    assert isinstance(trigger, RevalidationTrigger)
    assert len(trigger.previous_failures) == 2
    assert outcome.state.active.runs[0].fixes == ("it",)


@pytest.mark.parametrize("version", [version for version, _ in OLDER])
@pytest.mark.parametrize("name", ["escalated", "error"])
def test_a_decision_on_an_older_escalation_is_carried_out(version: str, name: str) -> None:
    paused = state(version, name)

    outcome = decide(paused, DecisionMade(decision=Decision.EXTEND, by="ann"), later(paused))

    assert not outcome.state.paused
    assert outcome.steps


def test_the_present_schema_has_a_golden_file_that_later_versions_will_load() -> None:
    """Change what is stored, and say so: see "Changing what is stored" in CONTRIBUTING.md."""
    assert dict(OLDER)[PRESENT]["schemas"] == schemas(), (
        "what is stored has changed: with the schema of a released version raise SCHEMA_VERSION first, "
        "then UPDATE_GOLDEN=1 pytest tests/unit/test_older_versions.py"
    )
    assert set(dict(OLDER)[PRESENT]["events"]) == set(EVENT_KINDS)
    assert set(dict(OLDER)[PRESENT]["messages"]) == set(SAMPLES)


@pytest.mark.parametrize("version", WHOLE)
def test_every_older_event_loads_as_it_was(version: str) -> None:
    for kind, stored in kept(version)["events"].items():
        event = event_from_json(json.dumps(stored))

        assert (event.kind, event.model_dump(mode="json", exclude_defaults=True) | {"kind": kind}) == (
            kind,
            stored,
        )


@pytest.mark.parametrize("version", WHOLE)
def test_every_older_ticket_can_be_carried_out(version: str) -> None:
    tickets = [Ticket.model_validate(stored) for stored in kept(version)["tickets"]]

    assert tickets
    for ticket in tickets:
        assert STEP_HANDLERS["validation"].steps[ticket.step].retries >= 0
        assert set(arguments(ticket)) == {"ticket", "issue", "specialist", "iteration"}


@pytest.mark.parametrize("version", WHOLE)
def test_an_older_history_verifies_and_is_shown_in_full(version: str, tmp_path: Path) -> None:
    stored = stored_of(base64.b64decode(kept(version)["record"]))
    archive = Archive(tmp_path)
    archive.append(stored, datetime(2026, 3, 1, tzinfo=UTC))
    store = with_archive(MemoryStore(lambda: datetime(2026, 3, 2, tzinfo=UTC)), archive)

    assert store.verify(stored.workflow) == []
    entries = store.history(stored.workflow)
    assert len(entries) == stored.version
    assert all(event_from_json(json.dumps(entry.body["event"])) for entry in entries)
    assert all(line.rendered.startswith("## ") for line in said(entries))
    found = store.read(stored.workflow)
    assert found is not None
    assert load_state(found.snapshot).ended


def test_a_snapshot_names_its_schema() -> None:
    older = state("version-1", "awaiting-fix")
    assert older.schema_version == 1

    taken = decide(older, Paused(by="ann"), later(older)).state

    assert json.loads(taken.model_dump_json(exclude_defaults=True))["schema_version"] == SCHEMA_VERSION


@pytest.mark.parametrize("more", [{}, {"status": "of a kind that is not known yet", "specialists": {}}])
def test_a_snapshot_of_a_newer_version_is_refused_in_one_sentence(more: dict[str, Any]) -> None:
    snapshot = kept("version-1")["states"]["awaiting-fix"] | {"schema_version": SCHEMA_VERSION + 1} | more

    with pytest.raises(NewerVersion) as refused:
        load_state(json.dumps(snapshot).encode())

    assert str(refused.value) == (
        f"workflow 0f0f0f0f-101-1 was written by a newer fixloop (schema {SCHEMA_VERSION + 1}, this one reads "
        f"up to {SCHEMA_VERSION}); it was left as it is: upgrade this one"
    )


@pytest.mark.parametrize("snapshot", [b"", b"[]", b"\xff", b'{"schema_version": "x"}', b'{"workflow": 1}'])
def test_an_invalid_snapshot_is_not_taken_for_a_newer_version(snapshot: bytes) -> None:
    with pytest.raises(ProtocolError, match="its snapshot cannot be read") as refused:
        load_state(snapshot)

    assert not isinstance(refused.value, NewerVersion)
