"""A workflow of a newer fixloop: this one leaves it as it is, cheaply, and a newer worker continues it."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from fixloop.engine.engine import Engine
from fixloop.engine.replay import audit
from fixloop.errors import NewerVersion
from fixloop.protocol.events import Paused
from fixloop.protocol.state import SCHEMA_VERSION
from fixloop.store.records import Commit
from tests.fixtures.command_stage import Agents
from tests.fixtures.holdings import hold
from tests.fixtures.memory_store import MemoryStore
from workers.steps.newer_versions import leave, leave_unknown, pause_seconds

NOW: Final = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
ME: Final = "host/boot/1/2/3"


class Stage:
    """A store in memory with a workflow that a newer version wrote, and time that passes."""

    def __init__(self, issue: int) -> None:
        self.now = NOW
        self.store = MemoryStore(lambda: self.now)
        self.workflow = Agents(self.store).start(issue)
        found = self.store.read(self.workflow)
        assert found is not None
        newer = json.loads(found.snapshot) | {"schema_version": SCHEMA_VERSION + 1, "unheard_of": True}
        self.snapshot = json.dumps(newer).encode()
        entry = {"at": NOW.isoformat(), "clock": 0.0, "decide": 99, "event": {"kind": "unheard-of"}}
        self.store.commit(
            Commit(workflow=self.workflow, expected_version=1, snapshot=self.snapshot, entry=entry)
        )
        (self.ticket,) = (held.ticket.id for held in found.tickets)

    def later(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.store.stay_awake()

    def claim(self) -> Any:
        return self.store.claim(self.ticket, ME, f"token-{self.now}")


@pytest.fixture
def stage(request: pytest.FixtureRequest) -> Stage:
    # An issue for each test: how often a ticket was left is remembered by the process.
    return Stage(abs(hash(request.node.name)) % 10_000 + 1)


@pytest.mark.proves("R8")
def test_an_older_worker_leaves_its_step_for_longer_each_time(stage: Stage) -> None:
    pauses = []
    for _ in range(7):
        claim = stage.claim()
        with pytest.raises(NewerVersion):
            hold(claim.ticket, claim, ME)
        assert leave(stage.store, claim, ME, NewerVersion("newer")) == "newer"
        pauses.append(0)
        while stage.claim().status == "early":
            stage.later(1)
            pauses[-1] += 1
        stage.store.release(stage.ticket, ME, stage.claim().fence)

    assert pauses == [1, 2, 4, 8, 16, 30, 30]


@pytest.mark.proves("R8")
def test_data_of_a_newer_version_is_not_touched(stage: Stage) -> None:
    leave(stage.store, stage.claim(), ME, NewerVersion("newer"))
    engine = Engine(stage.store)

    with pytest.raises(NewerVersion):
        engine.state(stage.workflow)
    with pytest.raises(NewerVersion):
        engine.apply(stage.workflow, Paused(by="ann"), operation="pause")

    found = stage.store.read(stage.workflow)
    assert found is not None
    assert (found.snapshot, found.version) == (stage.snapshot, 2)
    assert [held.deaths for held in found.tickets] == [0]
    told = audit(stage.store, stage.workflow)
    assert (told.problems, told.entries, told.replayed) == ((), 2, 0)


def test_an_unknown_task_is_left_to_newer_workers_too(stage: Stage) -> None:
    leave_unknown(stage.store, ME, "fixloop.validation.validate", stage.ticket)

    assert stage.claim().status == "early"


@pytest.mark.parametrize(
    ("task", "ticket"),
    [
        ("fixloop.validation.ponder", ""),
        ("fixloop.validation.ponder", "no ticket"),
        ("fixloop.validation.ponder", "0a1b2c3d-1-1.gone"),
    ],
)
def test_a_message_not_from_a_newer_version_delays_no_step(stage: Stage, task: str, ticket: str) -> None:
    with pytest.raises(ValueError, match=r"no ticket id|no workflow|not the task of"):
        leave_unknown(stage.store, ME, task, ticket or stage.ticket)

    assert stage.claim().status == "ok"


def test_the_number_of_remembered_steps_is_bounded() -> None:
    pause_seconds("first")
    assert pause_seconds("first") == 2.0

    for number in range(10_001):
        pause_seconds(f"other-{number}")

    assert pause_seconds("first") == 1.0
