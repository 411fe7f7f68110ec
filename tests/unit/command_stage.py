"""Workflows for the commands to look at: a store, the real engine, and scripted agents that act when told to."""

import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from fixloop.cli import main
from fixloop.engine.engine import Engine, Holding, hold
from fixloop.protocol.events import Event, MessageStored, PersonNotified, ReportDelivered, WorkflowStarted
from fixloop.protocol.state import State
from fixloop.store.contract import Store
from fixloop.store.redis_store import RedisStore
from fixloop.testing import ScriptedCrew

OWNER = "host/boot/1/2/3"
PROJECT = "0a1b2c3d"


class Agents:
    """Carries out a workflow's tickets one by one, in this process."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.engine = Engine(store)
        self._crew = ScriptedCrew()

    def start(self, issue: int = 47, *, script: str = "3 1 0", number: int = 1, **further: Any) -> str:
        """A new workflow of the test-runner alone; its runs fail as `script` says."""
        told: dict[str, Any] = {
            "workflow": f"{PROJECT}-{issue}-{number}",
            "project": "ledger",
            "issue": issue,
            "name": f"scripted {script}",
            "specialists": ("test-runner",),
            "fixer": "command",
            "tip": "commit-0",
            "tree": "tree-0",
        }
        event = WorkflowStarted(**{**told, **further})
        self.engine.start(event)
        return event.workflow

    def run(self, workflow: str, steps: int = 100) -> State:
        """Do at most so many steps."""
        for _ in range(steps):
            if not self._step(workflow):
                break
        return self.engine.state(workflow)

    def apply(self, workflow: str, event: Event) -> State:
        """An event from outside."""
        self.engine.apply(workflow, event, operation=os.urandom(8).hex())
        return self.engine.state(workflow)

    def _step(self, workflow: str) -> bool:
        found = self.store.read(workflow)
        assert found is not None
        for held in found.tickets:
            claim = self.store.claim(held.ticket.id, OWNER, os.urandom(8).hex())
            if claim.status == "ok" and claim.ticket is not None:
                holding = hold(claim.ticket, claim, OWNER)
                self.engine.finish(holding, self._done(holding), claim.moment)
                return True
        return False

    def _done(self, holding: Holding) -> Event:
        ticket = holding.ticket
        work = SimpleNamespace(holding=holding, store=self.store, cancelled=lambda: False)
        if ticket.step == "report":
            return ReportDelivered(specialist=ticket.specialist, iteration=ticket.iteration)
        if ticket.step == "notify":
            return PersonNotified(detail="told")
        if ticket.step == "deliver":
            delivery = holding.state.delivery
            return MessageStored(message_id=delivery.message_id if delivery is not None else "")
        done = self._crew.fix(work) if ticket.step == "fix" else self._crew.check(work)
        assert done is not None, "nobody cancels here"
        return done


@contextmanager
def empty_store(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """An empty Redis, named by the settings; the current directory is a project of its own."""
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    monkeypatch.setenv("FIXLOOP_STATE_URL", redis_url)
    monkeypatch.setenv("FIXLOOP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    with closing(RedisStore(redis_url)) as store:
        yield store


def on_redis(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agents]:
    """Agents on `empty_store`."""
    with empty_store(redis_url, tmp_path, monkeypatch) as store:
        yield Agents(store)


@dataclass(frozen=True)
class Said:
    """What one call of the program said."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


def said(capsys: Any, *words: str) -> Said:
    """`fixloop WORDS` in this process."""
    code = main(list(words))
    captured = capsys.readouterr()
    return Said(code, captured.out, captured.err)
