"""Cycles and handoffs that older versions wrote: they load, verify and continue. Those of newer ones are left alone."""

import base64
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from fixloop.engine.engine import ProfileEngine
from fixloop.engine.profile import profile_named
from fixloop.engine.replay import audit
from fixloop.errors import NewerVersion
from fixloop.protocol.event import Moment
from fixloop.statefiles.named_files import Record, read_record, write_record
from fixloop.statefiles.rebuild import rebuild
from fixloop.statefiles.rendering import drawn
from fixloop.statefiles.sync import project
from fixloop.store.archive.files import Archive
from fixloop.store.archive.read_through import with_archive
from fixloop.store.archive.record import stored_of
from fixloop.store.records import Commit
from tests.fixtures.memory_store import MemoryStore
from tests.fixtures.profile_runs import FLOW, SCRIPTS
from tests.unit.golden_profiles import KINDS, folder_of, schemas, text

if os.environ.get("UPDATE_GOLDEN"):
    for _name, _kind in KINDS.items():
        folder_of(_name).mkdir(exist_ok=True)
        (folder_of(_name) / f"version-{_kind.version}.json").write_text(text(_name), encoding="utf-8")

OLDER: Final[dict[tuple[str, str], dict[str, Any]]] = {
    (name, path.stem): json.loads(path.read_text(encoding="utf-8"))
    for name in KINDS
    for path in sorted(folder_of(name).glob("*.json"))
}
STATES: Final = [(*where, state) for where, kept in OLDER.items() for state in kept["states"]]


def snapshot(name: str, version: str, state: str) -> bytes:
    return json.dumps(OLDER[name, version]["states"][state], separators=(",", ":")).encode()


@pytest.mark.parametrize(("name", "version", "state"), STATES)
def test_an_older_state_loads_and_is_written_as_it_was(name: str, version: str, state: str) -> None:
    stored = snapshot(name, version, state)

    found = profile_named(name).load(stored)

    assert json.loads(found.model_dump_json(exclude_defaults=True)) == json.loads(stored)
    assert stored.startswith(b'{"profile":"%s"' % name.encode())


@pytest.mark.proves("K23")
@pytest.mark.parametrize(("name", "version", "state"), STATES)
def test_the_files_of_an_older_state_are_written(name: str, version: str, state: str) -> None:
    files = drawn(snapshot(name, version, state), lambda digest: digest.encode())

    assert all(file.content is not None for file in files.files)
    assert files.files[-1].path.endswith(".json")


@pytest.mark.parametrize(("name", "version"), OLDER)
def test_every_older_event_loads_as_it_was(name: str, version: str) -> None:
    for kind, stored in OLDER[name, version]["events"].items():
        event = profile_named(name).read_event(json.dumps(stored))

        written = event.model_dump(mode="json", exclude_defaults=True) | {"kind": kind}
        assert (event.kind, written) == (kind, stored)


@pytest.mark.parametrize(("name", "version"), OLDER)
def test_an_older_workflow_can_be_ended(name: str, version: str) -> None:
    profile = profile_named(name)
    for state in OLDER[name, version]["states"]:
        found = profile.load(snapshot(name, version, state))
        later = Moment(found.last_at + timedelta(minutes=10), 10_000.0)
        if not found.ended:
            ended = profile.decide(found, profile.read_event('{"kind": "cancelled"}'), later)
            assert ended.state.ended


@pytest.mark.parametrize(("name", "version"), OLDER)
def test_an_older_history_verifies_and_every_decision_is_replayed(
    name: str, version: str, tmp_path: Path
) -> None:
    stored = stored_of(base64.b64decode(OLDER[name, version]["record"]))
    archive = Archive(tmp_path)
    archive.append(stored, datetime(2026, 3, 1, tzinfo=UTC))
    store = with_archive(MemoryStore(lambda: datetime(2026, 3, 2, tzinfo=UTC)), archive)

    assert store.verify(stored.workflow) == []
    assert audit(store, stored.workflow).problems == ()
    found = store.read(stored.workflow)
    assert found is not None
    assert profile_named(name).load(found.snapshot).ended


@pytest.mark.parametrize("name", KINDS)
def test_the_present_schema_has_a_golden_file_that_later_versions_will_load(name: str) -> None:
    """Change what is stored, and say so: see "Changing what is stored" in CONTRIBUTING.md."""
    kept = OLDER[name, f"version-{KINDS[name].version}"]

    assert kept["schemas"] == schemas(name), (
        "what is stored has changed: with the schema of a released version raise SCHEMA_VERSION first, "
        "then UPDATE_GOLDEN=1 pytest tests/unit/test_older_profiles.py"
    )
    assert set(kept["events"]) == set(KINDS[name].kinds)


def newer(name: str) -> bytes:
    """A snapshot of the next schema, with a status that this version does not know."""
    state = json.loads(snapshot(name, f"version-{KINDS[name].version}", "begun"))
    more = {"schema_version": KINDS[name].version + 1, "status": "dreaming", "workflow": FLOW}
    return json.dumps(state | more, separators=(",", ":")).encode()


def _apply(store: MemoryStore, name: str, root: Path) -> None:
    event = profile_named(name).read_event('{"kind": "cancelled"}')
    ProfileEngine(store, profile_named(name)).apply(FLOW, event, operation="cancel")


def _read(store: MemoryStore, name: str, root: Path) -> None:
    ProfileEngine(store, profile_named(name)).state(FLOW)


def _rebuild(store: MemoryStore, name: str, root: Path) -> None:
    record = Record(workflow=FLOW, profile=name, issue=7, version=3, snapshot=newer(name).decode())
    (root / ".fixloop/files").mkdir(parents=True)
    write_record(root / ".fixloop/files" / f"{'handoff' if name == 'handoff' else FLOW}.json", record)
    rebuild(MemoryStore(lambda: datetime(2026, 3, 2, tzinfo=UTC)), root, 7)


@pytest.mark.proves("K23")
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("act", [_apply, _read, _rebuild])
def test_data_of_a_newer_version_is_refused_and_left_unchanged(
    name: str, act: Callable[[MemoryStore, str, Path], None], tmp_path: Path
) -> None:
    store = MemoryStore(lambda: datetime(2026, 3, 2, tzinfo=UTC))
    begun = Commit(workflow=FLOW, expected_version=0, snapshot=newer(name), entry=_ENTRY)
    store.create(begun)

    with pytest.raises(
        NewerVersion, match=r"newer fixloop \(schema 2, this one reads up to 1\); it was left"
    ):
        act(store, name, tmp_path)

    found = store.read(FLOW)
    assert found is not None
    assert (found.snapshot, found.version, len(store.history(FLOW))) == (newer(name), 1, 1)


@pytest.mark.proves("K23", "R13")
@pytest.mark.parametrize("name", KINDS)
def test_files_of_a_newer_version_are_not_written_by_an_older_one(name: str, tmp_path: Path) -> None:
    store = MemoryStore(lambda: datetime(2026, 3, 2, tzinfo=UTC))
    ProfileEngine(store, profile_named(name)).start(SCRIPTS[name].begin)
    project(store, FLOW, root=tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    found = store.read(FLOW)
    assert found is not None
    store.commit(
        Commit(
            workflow=FLOW,
            expected_version=1,
            head=found.head,
            snapshot=newer(name),
            entry=_ENTRY,
            operation="new",
        )
    )

    projected = project(store, FLOW, root=tmp_path)

    assert (projected.written, "upgrade this one" in projected.problem) == (False, True)
    assert {path: path.read_bytes() for path in before} == before
    (record,) = (tmp_path / ".fixloop/files").glob("*.json")
    assert read_record(record).version == 1


_ENTRY: Final = {"at": "2026-03-01T00:00:00Z"}


@pytest.mark.parametrize("text", ['{"kind": "dreamt"}', '{"kind": ["paused"]}', "{}", "[]", "nothing"])
@pytest.mark.parametrize("name", KINDS)
def test_a_stored_event_of_no_known_kind_is_refused(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"no event|expected"):
        profile_named(name).read_event(text)
