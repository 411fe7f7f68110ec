"""A held workflow: unclaimed steps wait, a running one may finish, and its deadlines stop."""

from typing import Any

import pytest

from fixloop.store.contract import Store
from fixloop.store.records import Committed
from tests.fixtures.store_samples import FLOW, LANES, ME, change, claimed, created, sweep, ticket
from tests.fixtures.store_world import World


def committed(store: Store, **more: Any) -> Committed:
    """The next commit of the workflow."""
    found = store.read(FLOW)
    assert found is not None
    answer = store.commit(change(found.version, **more))
    assert answer.status == "ok"
    return answer


def held(store: Store, *, deadline_in: float | None = None) -> None:
    """The workflow is held, perhaps with a deadline so many seconds ahead."""
    if deadline_in is not None:
        committed(store, set_deadlines={"late": store.now(FLOW).clock + deadline_in})
    committed(store, hold=True)


def unheld(store: Store, stood_seconds: float = 0.0) -> None:
    committed(store, hold=False, stood_seconds=stood_seconds)


def statuses(store: Store) -> dict[str, str]:
    found = store.read(FLOW)
    assert found is not None
    return {each.ticket.id.partition(".")[2]: each.status for each in found.tickets}


@pytest.mark.proves("A14", "K21")
def test_a_held_ticket_is_neither_claimed_nor_hinted(store: Store, world: World) -> None:
    created(store, ticket("a"), ticket("b", delay_seconds=4.0))
    held(store)

    world.elapse(4.5)
    assert sweep(store, empty_lanes=LANES).hints == ()
    world.elapse(4.5)
    assert sweep(store, empty_lanes=LANES).hints == ()

    assert store.claim(ticket("a").id, ME, "t").status == "early"
    assert store.wake(ticket("b").id) is None
    assert statuses(store) == {"a": "delayed", "b": "delayed"}


@pytest.mark.proves("A14")
def test_held_tickets_are_offered_when_the_workflow_continues(store: Store, world: World) -> None:
    created(store, ticket("a"), ticket("b", delay_seconds=4.0))
    held(store)

    unheld(store)

    assert statuses(store) == {"a": "pending", "b": "pending"}
    sweep(store)
    world.elapse(1.5)
    assert sorted(found.id for found in sweep(store, empty_lanes=LANES).unheard) == [
        ticket("a").id,
        ticket("b").id,
    ]
    assert store.claim(ticket("b").id, ME, "t").status == "ok"


@pytest.mark.proves("A14")
def test_the_owner_of_a_ticket_may_finish_it(store: Store) -> None:
    created(store, ticket("a"))
    claim = claimed(store, "a")
    held(store)

    assert store.renew(ticket("a").id, ME, claim.fence) == "ok"
    answer = store.commit(change(2, ticket=ticket("a").id, owner=ME, fence=claim.fence))

    assert answer.status == "ok"


@pytest.mark.proves("A14", "K40")
@pytest.mark.parametrize("injured", [True, False])
def test_a_dead_holder_s_ticket_waits_for_the_end_of_the_pause(
    store: Store, world: World, injured: bool
) -> None:
    created(store, ticket("a", limit_name="operation", limit_seconds=100.0))
    claim = claimed(store, "a", lease_seconds=2.0)
    held(store)

    if injured:
        store.release(ticket("a").id, ME, claim.fence, poison=True)
    else:
        sweep(store)
        world.elapse(4)
        assert sweep(store).lapsed == ()

    assert store.claim(ticket("a").id, ME, "again").status == "early"
    unheld(store)
    assert store.claim(ticket("a").id, ME, "again").status == "ok"


@pytest.mark.proves("R7")
def test_a_late_renewal_continues_with_a_ticket_that_was_held_meanwhile(store: Store, world: World) -> None:
    created(store, ticket("a", limit_name="operation", limit_seconds=4.0))
    claim = claimed(store, "a", lease_seconds=2.0)
    held(store)
    sweep(store, horizon_seconds=0)
    world.elapse(4.5)
    sweep(store, horizon_seconds=0)

    assert store.renew(ticket("a").id, ME, claim.fence) == "ok"

    assert statuses(store) == {"a": "claimed"}
    assert sweep(store, horizon_seconds=0).deadlines == ()
    unheld(store, stood_seconds=1.0)
    world.elapse(1)
    assert [due.name for due in sweep(store, horizon_seconds=0).deadlines] == ["operation"]


@pytest.mark.proves("A14", "K34", "R6")
def test_a_deadline_is_postponed_by_the_length_of_the_pause(store: Store, world: World) -> None:
    created(store)
    sweep(store)
    held(store, deadline_in=3.0)

    for _ in range(3):
        world.elapse(4)
        assert sweep(store, horizon_seconds=0).deadlines == ()
    unheld(store, stood_seconds=12.0)
    assert sweep(store, horizon_seconds=0).deadlines == ()
    world.elapse(4)

    (due,) = sweep(store, horizon_seconds=0).deadlines
    assert due.name == "late"


@pytest.mark.proves("A14")
def test_a_deadline_set_when_the_workflow_continues_is_not_moved(store: Store) -> None:
    created(store)
    held(store, deadline_in=3.0)
    due = store.now(FLOW).clock + 50.0

    committed(store, hold=False, stood_seconds=12.0, set_deadlines={"late": due})

    found = store.read(FLOW)
    assert found is not None
    assert found.deadlines["late"] == pytest.approx(due)


@pytest.mark.proves("A14")
def test_a_ticket_created_while_held_waits_too(store: Store, world: World) -> None:
    created(store)
    held(store)

    committed(store, new_tickets=(ticket("a"),), set_deadlines={"late": store.now(FLOW).clock + 1.0})
    sweep(store)
    world.elapse(4)

    swept = sweep(store, horizon_seconds=0, empty_lanes=LANES)
    assert (swept.hints, swept.deadlines) == ((), ())
    assert store.claim(ticket("a").id, ME, "t").status == "early"
    unheld(store)
    assert store.claim(ticket("a").id, ME, "t").status == "ok"
    assert [due.name for due in sweep(store, horizon_seconds=0).deadlines] == ["late"]


@pytest.mark.proves("A14", "K21")
def test_other_workflows_of_the_shard_continue(store: Store) -> None:
    other = "0a1b2c3d-42-2"
    created(store, ticket("a"))
    created(store, ticket("a", workflow=other))

    held(store)

    assert store.claim(ticket("a", workflow=other).id, ME, "t").status == "ok"
    assert store.claim(ticket("a").id, ME, "t").status == "early"
