"""A process that is killed while it writes files: what it left is no edit, and the next one finishes."""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fixloop.engine.engine import ProfileEngine
from fixloop.engine.profile import profile_named
from fixloop.errors import RefusedError
from fixloop.protocol.event import Moment
from fixloop.statefiles.named_files import NamedFiles
from fixloop.statefiles.rebuild import lost, rebuild
from fixloop.statefiles.sync import place_of, project
from tests.contract.test_named_files import tree_of, versions
from tests.fixtures.memory_store import MemoryStore
from tests.fixtures.profile_runs import FLOW

EVERY = {"cycle": 5, "handoff": 3}
"""The distance between the renames of a whole workflow at which a process is killed."""

pytestmark = pytest.mark.slow


class Killed(BaseException):
    """Nothing catches it, as nothing catches a SIGKILL."""


class Reaper:
    """Kills the process that makes one rename: before it, or right after."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = 0
        self.at = 0
        self.after = False
        self._rename: Callable[..., None] = os.rename
        monkeypatch.setattr(os, "rename", self._renamed)

    def _renamed(self, *args: Any, **options: Any) -> None:
        self.made += 1
        fatal = self.made == self.at
        if fatal and not self.after:
            raise Killed
        self._rename(*args, **options)
        if fatal:
            raise Killed


def empty_store() -> MemoryStore:
    return MemoryStore(lambda: datetime(2026, 3, 1, tzinfo=UTC))


def go(store: MemoryStore, root: Path, name: str) -> bool:
    """A workflow until its end or until the writer of its files is killed; returns whether it was."""
    root.mkdir()
    try:
        for _ in versions(store, root, name):
            pass
    except Killed:
        return True
    return False


def go_on(store: MemoryStore, name: str) -> None:
    """One more version, if possible: the killed one is no longer the last."""
    profile = profile_named(name)
    if not profile.load(snapshot(store)).ended:
        paused = profile.read_event('{"kind": "paused", "sender": "user"}')
        ProfileEngine(store, profile).apply(FLOW, paused, operation="pause")


def snapshot(store: MemoryStore) -> bytes:
    found = store.read(FLOW)
    assert found is not None
    return found.snapshot


def states(store: MemoryStore, name: str) -> list[Any]:
    """All that was committed, from the events of the history."""
    profile, state, found = profile_named(name), None, []
    for entry in store.history(FLOW):
        now = Moment(datetime.fromisoformat(entry.body["at"]), entry.body["clock"])
        state = profile.decide(state, profile.read_event(json.dumps(entry.body["event"])), now).state
        found.append(state)
    return found


@pytest.mark.proves("R13", "K23", "S30")
@pytest.mark.parametrize("name", ["cycle", "handoff"])
@pytest.mark.parametrize("after", [False, True])
def test_a_projection_killed_at_any_point_is_completed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, after: bool
) -> None:
    reaper = Reaper(monkeypatch)
    assert not go(empty_store(), tmp_path / "undisturbed", name)
    all_renames = reaper.made
    assert all_renames > 20

    for at in range(1, all_renames + 1, EVERY[name]):
        store, root = empty_store(), tmp_path / f"{at}"
        reaper.made, reaper.at, reaper.after = 0, at, after
        assert go(store, root, name)
        if at % 2:
            go_on(store, name)

        projected = project(store, FLOW, root=root)
        alone = tmp_path / f"{at} alone"
        alone.mkdir()
        assert project(store, FLOW, root=alone).written

        assert (projected.problem, projected.edits) == ("", ())
        assert tree_of(root) == tree_of(alone)


@pytest.mark.proves("K23", "R13", "R14")
@pytest.mark.parametrize("name", ["cycle", "handoff"])
@pytest.mark.parametrize("after", [False, True])
def test_redis_is_rebuilt_from_files_that_a_killed_process_left_half_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, after: bool
) -> None:
    reaper = Reaper(monkeypatch)
    assert not go(empty_store(), tmp_path / "undisturbed", name)
    all_renames = reaper.made

    for at in range(2 * EVERY[name], all_renames + 1, EVERY[name]):
        store, again, root = empty_store(), empty_store(), tmp_path / f"{at}"
        reaper.made, reaper.at, reaper.after = 0, at, after
        assert go(store, root, name)
        if not lost(again, root):
            continue  # its end was written
        if NamedFiles(root, place_of(snapshot(store), FLOW)).intended.ended:
            with pytest.raises(RefusedError, match="ended; there is nothing to go on with"):
                rebuild(again, root, 7)
            continue

        assert rebuild(again, root, 7) == FLOW

        rebuilt = profile_named(name).load(snapshot(again))
        assert any(rebuilt.agents == state.agents for state in states(store, name))
