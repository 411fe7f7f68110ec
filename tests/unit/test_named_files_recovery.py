"""Files that a killed process left unfinished are written by the next process that looks."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fixloop.engine.engine import ProfileEngine
from fixloop.profiles.handoff.engine import HANDOFF
from fixloop.profiles.handoff.events import HandoffsStarted, LockAcquired
from fixloop.protocol.agent_events import Cancelled
from fixloop.repository.snapshot import Snapshot
from tests.fixtures.memory_store import MemoryStore
from workers.recovery.named_files import Redrawing, draw

ONE, TWO = "0a1b2c3d-7-1", "0a1b2c3d-8-1"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    monkeypatch.setenv("FIXLOOP_CACHE_DIR", str(tmp_path / "cache"))
    made = MemoryStore(lambda: datetime(2026, 3, 1, tzinfo=UTC))
    (tmp_path / "shop").mkdir()
    taken = Snapshot(source=str(tmp_path / "shop"), commit="c", tree="t").model_dump_json()
    for workflow in (ONE, TWO):
        issue = int(workflow.split("-")[1])
        begun = HandoffsStarted(workflow=workflow, issue=issue, name="auth", snapshot=taken)
        ProfileEngine(made, HANDOFF).start(begun)
    return made


def state(root: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((root / "shop/.claude/state.json").read_text())
    return found


@pytest.mark.proves("K23", "R13", "S30")
def test_the_end_of_a_workflow_is_written_after_its_process_was_killed(
    store: MemoryStore, tmp_path: Path
) -> None:
    draw(store, ONE, ended=False)
    ProfileEngine(store, HANDOFF).apply(ONE, Cancelled(), operation="cancel")
    assert state(tmp_path)["status"] == "running"

    Redrawing(store).look()

    assert state(tmp_path)["status"] == "failed"
    assert list((tmp_path / "cache/drawn").iterdir()) == []


def test_a_workflow_that_waited_for_its_place_gets_it_without_a_commit(
    store: MemoryStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    draw(store, ONE, ended=False)
    draw(store, TWO, ended=False)
    assert f"are those of {ONE}" in caplog.text
    ProfileEngine(store, HANDOFF).apply(TWO, LockAcquired(sender="fixer", resource="b.py"), operation="lock")
    ProfileEngine(store, HANDOFF).apply(ONE, Cancelled(), operation="cancel")
    draw(store, ONE, ended=True)

    Redrawing(store).look()

    assert list(state(tmp_path)["locks"]) == ["b.py"]  # type: ignore[call-overload]
    assert [mark.name for mark in (tmp_path / "cache/drawn").iterdir()] == [TWO]


def test_an_obstacle_is_reported_once(
    store: MemoryStore, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.recovery.named_files.LOOK_SECONDS", 0.0)
    draw(store, ONE, ended=False)
    (tmp_path / "shop/.claude/handoffs").unlink()
    (tmp_path / "shop/.claude/handoffs").mkdir()
    ProfileEngine(store, HANDOFF).apply(ONE, Cancelled(), operation="cancel")
    redrawing = Redrawing(store)
    caplog.clear()

    redrawing.look()
    redrawing.look()

    assert caplog.text.count("is a directory that fixloop did not make") == 1
    (tmp_path / "shop/.claude/handoffs").rmdir()
    redrawing.look()
    assert state(tmp_path)["status"] == "failed"


def test_a_removed_workflow_is_forgotten(store: MemoryStore, tmp_path: Path) -> None:
    (tmp_path / "cache/drawn").mkdir(parents=True)
    (tmp_path / "cache/drawn/0a1b2c3d-9-1").touch()

    Redrawing(store).look()

    assert list((tmp_path / "cache/drawn").iterdir()) == []
