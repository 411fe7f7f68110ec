"""Cycles and workflows of handoffs for the commands to look at: a store, the real engine, and agents by script."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fixloop.engine.engine import ProfileEngine
from fixloop.engine.profile import AnyEvent
from fixloop.profiles.cycle import events as cyc
from fixloop.profiles.cycle.engine import CYCLE
from fixloop.profiles.handoff import events as hnd
from fixloop.profiles.handoff.engine import HANDOFF
from fixloop.store.contract import Store
from tests.contract import profile_runs
from tests.unit.command_stage import PROJECT, empty_store

CYCLE_ID = "cycle-v1-20260122T100000-abc123"


class Profiles:
    """Workflows of both profiles in one store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.cycles = ProfileEngine(store, CYCLE)
        self.handoffs = ProfileEngine(store, HANDOFF)

    def cycle(self, issue: int = 7, **further: Any) -> str:
        """A new cycle; all its agents are outside."""
        told: dict[str, Any] = {
            "workflow": f"{PROJECT}-{issue}-1",
            "project": "ledger",
            "issue": issue,
            "name": "OAuth login",
            "cycle_id": CYCLE_ID,
        }
        event = cyc.CycleStarted(**told | further)
        self.cycles.start(event)
        return event.workflow

    def handoff(self, issue: int = 9, **further: Any) -> str:
        """A new workflow of handoffs; all its agents are outside."""
        told: dict[str, Any] = {
            "workflow": f"{PROJECT}-{issue}-1",
            "project": "ledger",
            "issue": issue,
            "name": "Add user auth",
        }
        event = hnd.HandoffsStarted(**told | further)
        self.handoffs.start(event)
        return event.workflow

    def bring(self, workflow: str, *events: AnyEvent) -> Any:
        """Events from outside; the state after them."""
        cycle = b'"cycle"' in self.snapshot(workflow)[:40]
        engine: ProfileEngine[Any] = self.cycles if cycle else self.handoffs
        for event in events:
            engine.apply(workflow, event, operation=os.urandom(8).hex())
        return engine.state(workflow)

    def whole(self, name: str) -> str:
        """The script of a profile to its end; the id of its workflow."""
        profile_runs.run(self.store, profile_runs.SCRIPTS[name])
        return profile_runs.FLOW

    def snapshot(self, workflow: str) -> bytes:
        found = self.store.read(workflow)
        assert found is not None
        return found.snapshot


def on_redis(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Profiles]:
    """Workflows of both profiles on `empty_store`."""
    with empty_store(redis_url, tmp_path, monkeypatch) as store:
        yield Profiles(store)
