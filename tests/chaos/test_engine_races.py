"""
Twenty agents race for one handoff, one lock, one field: exactly one gets it.

Five rounds in `make quick`, 50 in `make test`, 1,000 in `make chaos`.
The race for a number of a chat is in `test_chat_races.py`.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from hashlib import sha256
from threading import Barrier
from typing import Final, Protocol

import pytest
from hypothesis import settings

from fixloop.engine.engine import ProfileEngine
from fixloop.profiles.cycle.engine import CYCLE
from fixloop.profiles.cycle.events import CycleStarted
from fixloop.profiles.handoff.engine import HANDOFF
from fixloop.profiles.handoff.events import HandoffsStarted, LockAcquired
from fixloop.profiles.handoff.state import Handoffs
from fixloop.store.contract import Store
from fixloop.store.redis_store import RedisStore
from tests.chaos.engine_racer import attempt, name_of
from tests.fixtures.memory_store import MemoryStore
from tests.fixtures.profile_runs import SCRIPTS
from tests.fixtures.store_world import START
from tests.proofs import ROOT

RACERS: Final = 20
_ROUNDS: Final = {"quick": 5, "chaos": 1000}
PROCESSES: Final = 4

Answers = dict[int, str]


class Racers(Protocol):
    """Where a race is run."""

    @property
    def store(self) -> Store: ...
    def race(self, kind: str, workflow: str, what: str) -> Answers: ...


class Threads:
    """Over the store in memory."""

    def __init__(self) -> None:
        self.store: Store = MemoryStore(lambda: START)
        self._together = Barrier(RACERS)
        self._pool = ThreadPoolExecutor(RACERS)

    def race(self, kind: str, workflow: str, what: str) -> Answers:
        def run(number: int) -> str:
            self._together.wait(90)
            return attempt(self.store, kind, workflow, number, what)

        return dict(enumerate(self._pool.map(run, range(RACERS))))

    def end(self) -> None:
        self._pool.shutdown()


class Processes:
    """Over Redis."""

    def __init__(self, url: str) -> None:
        self.store: Store = RedisStore(url)
        self._racers = [self._start(url, range(at, RACERS, PROCESSES)) for at in range(PROCESSES)]
        for racer in self._racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"

    def _start(self, url: str, numbers: range) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "tests.chaos.engine_racer", url, *map(str, numbers)]
        return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def race(self, kind: str, workflow: str, what: str) -> Answers:
        for racer in self._racers:
            assert racer.stdin is not None
            racer.stdin.write(json.dumps([kind, workflow, what]) + "\n")
            racer.stdin.flush()
        lines = [racer.stdout.readline() for racer in self._racers if racer.stdout]
        return {int(number): answer for line in lines for number, answer in json.loads(line).items()}

    def end(self) -> None:
        for racer in self._racers:
            racer.communicate(timeout=60)
        self.store.close()


@pytest.fixture(scope="module", params=["memory", pytest.param("redis", marks=pytest.mark.slow)])
def racers(request: pytest.FixtureRequest) -> Iterator[Racers]:
    with ExitStack() as ending:
        in_memory = request.param == "memory"
        made = Threads() if in_memory else Processes(request.getfixturevalue("redis_url"))
        ending.callback(made.end)
        yield made


def rounds(kind: str) -> Iterator[str]:
    """The workflow of each round; each kind of race has its own project."""
    count = _ROUNDS.get(settings.get_current_profile_name(), 50)
    return (f"{sha256(kind.encode()).hexdigest()[:8]}-{number + 1}-1" for number in range(count))


def handoffs(store: Store, workflow: str) -> ProfileEngine[Handoffs]:
    """A handoff waits for the builder, who is an outside agent."""
    engine = ProfileEngine(store, HANDOFF)
    issue = int(workflow.split("-")[1])
    engine.start(HandoffsStarted(workflow=workflow, issue=issue, name="race"))
    results = SCRIPTS["handoff"].results()
    engine.apply(workflow, next(results["planner"]), operation="planned")
    return engine


def won(answers: Answers, *, by: str) -> list[int]:
    assert len(answers) == RACERS
    return [number for number, answer in answers.items() if answer == by]


@pytest.mark.heavy
@pytest.mark.proves("D17", "D18", "S27")
def test_exactly_one_of_twenty_agents_gets_a_handoff(racers: Racers) -> None:
    for workflow in rounds("handoff"):
        engine = handoffs(racers.store, workflow)
        (message,) = HANDOFF.load(snapshot(racers.store, workflow)).messages

        answers = racers.race("handoff", workflow, message.message_id)

        (winner,) = won(answers, by="ok")
        lost = {answer for number, answer in answers.items() if number != winner}
        assert lost == {f"refused: handoff {message.message_id} is accepted already"}
        state = HANDOFF.load(snapshot(racers.store, workflow))
        assert [event.event for event in state.events].count("handoff_accepted") == 1
        assert engine.store.verify(workflow) == []


@pytest.mark.heavy
@pytest.mark.proves("D26", "D31", "S25", "K10")
def test_exactly_one_of_twenty_agents_gets_a_lock(racers: Racers) -> None:
    for workflow in rounds("lock"):
        handoffs(racers.store, workflow)

        answers = racers.race("lock", workflow, "src/auth.ts")

        (winner,) = {name_of(number) for number in won(answers, by="granted")}
        others = {answer for number, answer in answers.items() if name_of(number) != winner}
        assert others == {"pending"}
        state = HANDOFF.load(snapshot(racers.store, workflow))
        assert {resource: lock.agent for resource, lock in state.locks.items()} == {"src/auth.ts": winner}
        assert (state.tokens, state.takeovers) == (1, ())


@pytest.mark.heavy
@pytest.mark.proves("D19", "D45", "K10")
def test_of_twenty_writers_only_the_lock_holder_changes_a_field(racers: Racers) -> None:
    for workflow in rounds("written field"):
        engine = handoffs(racers.store, workflow)
        engine.apply(workflow, LockAcquired(sender="fixer", resource="state.json"), operation="lock")

        answers = racers.race("written field", workflow, "notes.auth")

        winners = won(answers, by="written")
        assert winners == [number for number in range(RACERS) if name_of(number) == "fixer"]
        lost = {answer for number, answer in answers.items() if number not in winners}
        assert all("writes notes.auth without the lock of state.json" in answer for answer in lost)
        state = HANDOFF.load(snapshot(racers.store, workflow))
        assert state.metadata["notes.auth"] in winners
        assert state.written == {"notes.auth": len(winners)}


@pytest.mark.heavy
@pytest.mark.proves("C61", "C62", "C23")
def test_exactly_one_of_twenty_results_sets_a_field(racers: Racers) -> None:
    for workflow in rounds("reported field"):
        issue = int(workflow.split("-")[1])
        started = CycleStarted(workflow=workflow, issue=issue, name="race", cycle_id=f"cycle-{issue}")
        ProfileEngine(racers.store, CYCLE).start(started)

        answers = racers.race("reported field", workflow, "OAuth")

        (winner,) = won(answers, by="ok")
        assert sum("nothing was asked of it" in answer for answer in answers.values()) == RACERS - 1
        state = CYCLE.load(snapshot(racers.store, workflow))
        assert [kept.value for kept in state.fields if kept.name == "requirements"] == [f"OAuth {winner}"]


def snapshot(store: Store, workflow: str) -> bytes:
    found = store.read(workflow)
    assert found is not None
    return found.snapshot
