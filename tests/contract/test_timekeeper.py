"""Which workflows have clocks without a worker, as the script of a timekeeper decides it in a real Redis."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
import redis

from fixloop.machine.timekeeper import Clocks
from fixloop.protocol.ticket import Ticket
from fixloop.store.contract import Store
from fixloop.store.keys import shard_of, workflow_key
from tests.fixtures.store_samples import FLOW, change, claimed, created, sweep, ticket
from tests.fixtures.store_world import RedisWorld

pytestmark = pytest.mark.slow

TOLD = f"{FLOW}.deliver"
NEIGHBOUR = next(
    name for name in (f"0a1b2c3d-{issue}-1" for issue in range(43, 1000)) if shard_of(name) == shard_of(FLOW)
)
"""A workflow of the same shard."""


@pytest.fixture
def world(redis_url: str) -> Iterator[RedisWorld]:
    real = RedisWorld(redis_url)
    yield real
    real.close()


@pytest.fixture
def clocks(world: RedisWorld, redis_url: str) -> Iterator[Clocks]:
    with closing(Clocks(urlsplit(redis_url).path)) as made:
        yield made


def telling(step: str = "deliver", **more: Any) -> Ticket:
    return ticket(step, step=step, queue="fixloop.control", **more)


def waiting(store: Store, *tickets: Ticket, due_in: float = 60) -> None:
    """A live workflow with these tickets and two deadlines."""
    due = now(store) + due_in
    created(store, *tickets, set_deadlines={"fix": due, "iteration": due + 30}, live=True)


def now(store: Store) -> float:
    return store.now(FLOW).clock


def kept(clocks: Clocks) -> list[str]:
    return [each.workflow for each in clocks.kept()]


def test_a_workflow_without_a_ticket_is_kept_until_its_first_deadline(store: Store, clocks: Clocks) -> None:
    waiting(store)

    (found,) = clocks.kept()

    assert (found.workflow, found.shard, found.tells) == (FLOW, shard_of(FLOW), False)
    assert 50 < found.due <= 60


def test_nothing_is_kept_for_a_workflow_that_ended_or_has_no_deadline(store: Store, clocks: Clocks) -> None:
    created(store, live=True)
    assert kept(clocks) == []
    store.commit(change(1, set_deadlines={"fix": now(store) + 60}))
    assert kept(clocks) == [FLOW]

    store.commit(change(2, live=False))

    assert kept(clocks) == []


@pytest.mark.parametrize("step", ["validate", "fix", "recheck", "report", "work", "push"])
def test_work_for_a_worker_process_is_not_kept(step: str, store: Store, clocks: Clocks) -> None:
    waiting(store, ticket("a", step=step))
    assert kept(clocks) == []

    claimed(store, "a")

    assert kept(clocks) == []


@pytest.mark.parametrize("step", ["deliver", "escalate", "notify"])
def test_a_notifying_ticket_is_done_once_claimed(step: str, store: Store, clocks: Clocks) -> None:
    waiting(store, telling(step))
    assert [each.tells for each in clocks.kept()] == [True]

    claimed(store, step)

    assert [each.tells for each in clocks.kept()] == [False]


def test_a_delayed_notifying_ticket_is_waited_for(store: Store, clocks: Clocks) -> None:
    created(store, telling(delay_seconds=30.0), live=True)

    (found,) = clocks.kept()

    assert (found.tells, found.due) == (False, float("inf"))


def test_checking_whether_a_parent_still_waits_is_no_work(store: Store, clocks: Clocks) -> None:
    waiting(store, telling("attend"))

    assert [(each.workflow, each.tells) for each in clocks.kept()] == [(FLOW, False)]


def test_a_paused_workflow_has_no_clocks(store: Store, clocks: Clocks) -> None:
    waiting(store)

    store.commit(change(1, hold=True))
    assert kept(clocks) == []
    store.commit(change(2, hold=False))

    assert kept(clocks) == [FLOW]


@pytest.mark.parametrize("damage", [("d:fix", "soon"), (f"t:{TOLD}", "{["), (f"s:{TOLD}", "?"), ("", "")])
def test_a_damaged_workflow_hides_no_other(
    damage: tuple[str, str], store: Store, clocks: Clocks, redis_url: str
) -> None:
    waiting(store, telling())
    created(store, workflow=NEIGHBOUR, set_deadlines={"fix": now(store) + 60}, live=True)
    field, value = damage

    with closing(cast(Any, redis.Redis.from_url(redis_url))) as client:
        if field:
            assert client.hset(workflow_key(FLOW), field, value) == 0
        else:
            client.delete(workflow_key(FLOW))
            client.lpush(workflow_key(FLOW), "no hash")

    assert NEIGHBOUR in kept(clocks)


@pytest.mark.proves("B17")
def test_a_damaged_workflow_keeps_no_deadline_of_another_from_a_sweep(store: Store, redis_url: str) -> None:
    for workflow in (FLOW, NEIGHBOUR):
        created(store, workflow=workflow, set_deadlines={"fix": now(store)})
    with closing(cast(Any, redis.Redis.from_url(redis_url))) as client:
        client.hset(workflow_key(FLOW), "d:fix", "soon")

    swept = sweep(store)

    assert [due.workflow for due in swept.deadlines] == [NEIGHBOUR]
    assert swept.damaged == (FLOW,)


@pytest.mark.proves("K34")
def test_a_timekeeper_keeps_clocks_running_until_a_worker_sweeps(
    store: Store, clocks: Clocks, world: RedisWorld
) -> None:
    waiting(store, due_in=60)
    assert clocks.sweep(shard_of(FLOW))
    assert sweep(store).mine is False

    for _ in range(10):
        world.elapse(3)
        assert clocks.sweep(shard_of(FLOW))
    assert 29 < clocks.kept()[0].due < 31

    world.elapse(2.5)
    assert [due.name for due in sweep(store).deadlines] == ["fix"]
    assert not clocks.sweep(shard_of(FLOW))
