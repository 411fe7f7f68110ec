"""A ticket is held by one owner at a time, and never lost."""

import os

import pytest

from fixloop.errors import ProtocolError, UsageError
from fixloop.machine.owner import identity, machine
from fixloop.store.contract import Store
from fixloop.store.records import Lane
from tests.fixtures.store_samples import (
    FLOW,
    LANES,
    ME,
    QUEUE,
    change,
    claimed,
    created,
    sweep,
    sweep_all,
    ticket,
)
from tests.fixtures.store_world import World
from workers.recovery.release import released

DEAD = f"{machine()}/{os.getpid()}/1"
"""This process' number, at another time."""


def test_a_claim_returns_everything_to_work_on(store: Store) -> None:
    answer = created(store, ticket("a", specialist="security", iteration=2))

    claim = claimed(store, "a")

    assert (claim.version, claim.head, claim.snapshot) == (1, answer.head, b'{"after":1}')
    assert claim.ticket == ticket("a", specialist="security", iteration=2)
    assert (claim.fence, claim.deaths, claim.away_seconds) == (1, 0, 0.0)
    assert store.owners() == {ticket("a").id: (ME, 1)}


@pytest.mark.proves("R8")
def test_a_repeated_claim_gets_its_first_answer(store: Store) -> None:
    created(store, ticket("a"))

    first, again = claimed(store, "a"), claimed(store, "a")

    assert again.fence == first.fence
    assert (again.version, again.head, again.ticket) == (first.version, first.head, first.ticket)


def test_a_second_claim_is_busy_until_the_lease_expires(store: Store, world: World) -> None:
    created(store, ticket("a"))
    first = claimed(store, "a", lease_seconds=9.0)

    world.elapse(8.5)
    assert store.claim(ticket("a").id, "another", "t").status == "busy"
    world.elapse(1.0)
    taken = store.claim(ticket("a").id, "another", "t")

    assert (taken.status, taken.fence) == ("ok", first.fence + 1)
    assert store.renew(ticket("a").id, ME, first.fence) == "lost"


def test_a_committed_or_unknown_ticket_is_gone(store: Store) -> None:
    created(store, ticket("a"))
    claim = claimed(store, "a")
    store.commit(change(1, ticket=ticket("a").id, owner=ME, fence=claim.fence))

    assert store.claim(ticket("a").id, ME, "t").status == "gone"
    assert store.claim(ticket("never").id, ME, "t").status == "gone"
    assert store.claim("ffffffff-1-1.a", ME, "t").status == "gone"
    assert store.renew(ticket("a").id, ME, claim.fence) == "lost"
    assert store.release(ticket("a").id, ME, claim.fence) is None
    assert store.owners() == {}


def test_a_renewed_lease_lasts_longer(store: Store, world: World) -> None:
    created(store, ticket("a"))
    claim = claimed(store, "a")

    for _ in range(4):
        world.elapse(3)
        assert store.renew(ticket("a").id, ME, claim.fence) == "ok"
        assert sweep(store).lapsed == ()

    assert store.claim(ticket("a").id, "another", "t").status == "busy"


@pytest.mark.proves("K40")
def test_an_expired_lease_is_offered_again_and_its_slow_holder_may_continue(
    store: Store, world: World
) -> None:
    created(store, ticket("a"))
    claim = claimed(store, "a", lease_seconds=3.0)
    sweep(store)
    world.elapse(4)

    assert sweep(store).lapsed == (ticket("a"),)
    assert store.owners() == {}
    assert store.renew(ticket("a").id, ME, claim.fence) == "ok"
    assert store.claim(ticket("a").id, "another", "t").status == "busy"
    assert store.commit(change(1, ticket=ticket("a").id, owner=ME, fence=claim.fence)).status == "ok"


def test_a_slow_holder_may_commit_after_its_lease_was_swept_if_nobody_claimed(
    store: Store, world: World
) -> None:
    created(store, ticket("a"))
    claim = claimed(store, "a", lease_seconds=3.0)
    sweep(store)
    world.elapse(4)
    sweep(store)

    assert store.commit(change(1, ticket=ticket("a").id, owner=ME, fence=claim.fence)).status == "ok"
    assert sweep(store, empty_lanes=LANES).hints == ()


@pytest.mark.proves("K40")
def test_a_released_ticket_has_a_new_fence_and_counts_only_poison(store: Store) -> None:
    created(store, ticket("a"))
    first = claimed(store, "a")

    assert store.release(ticket("a").id, ME, first.fence) == ticket("a")
    assert store.release(ticket("a").id, ME, first.fence) is None
    assert store.renew(ticket("a").id, ME, first.fence) == "lost"
    second = claimed(store, "a")
    assert store.release(ticket("a").id, ME, second.fence, poison=True) == ticket("a")
    third = claimed(store, "a")

    assert [claim.fence for claim in (first, second, third)] == [1, 2, 3]
    assert [claim.deaths for claim in (first, second, third)] == [0, 0, 1]


@pytest.mark.proves("K40")
def test_the_claims_of_dead_owners_are_released_and_no_others(store: Store) -> None:
    flows = [f"0a1b2c3d-{issue}-1" for issue in range(1, 9)]
    for place, flow in enumerate(flows):
        created(store, ticket("a", workflow=flow))
        claimed(store, "a", flow, owner=DEAD if place % 2 else identity())

    given_back = released(store, "", poison=False)

    assert sorted(found.workflow for found in given_back) == flows[1::2]
    assert sorted(store.owners()) == [f"{flow}.a" for flow in flows[::2]]
    assert released(store, "", poison=False) == []


def test_a_delayed_ticket_is_neither_claimed_nor_hinted_early(store: Store, world: World) -> None:
    created(store, ticket("a", delay_seconds=4.0))
    sweep(store)

    world.elapse(3)
    assert store.claim(ticket("a").id, ME, "t").status == "early"
    assert sweep(store, empty_lanes=LANES).hints == ()
    world.elapse(2)
    swept = sweep(store)

    assert (swept.ready, swept.hints) == (
        (ticket("a", delay_seconds=4.0),),
        (ticket("a", delay_seconds=4.0),),
    )
    assert sweep(store).hints == ()
    assert store.claim(ticket("a").id, ME, "t").status == "ok"


def test_a_delayed_ticket_is_claimed_at_once_when_it_is_woken(store: Store, world: World) -> None:
    created(store, ticket("a"))
    first = claimed(store, "a")
    store.release(ticket("a").id, ME, first.fence, delay_seconds=60.0)
    assert store.claim(ticket("a").id, ME, "t").status == "early"

    assert store.wake(ticket("a").id) == ticket("a")

    assert claimed(store, "a", token="again").fence == first.fence + 1
    assert store.wake(ticket("a").id) is None
    assert store.wake(ticket("never").id) is None
    sweep(store)
    assert sweep(store).ready == ()


def test_a_ticket_that_was_woken_is_hinted_when_no_hint_arrived(store: Store, world: World) -> None:
    created(store, ticket("a"))
    store.release(ticket("a").id, ME, claimed(store, "a").fence, delay_seconds=60.0)
    sweep(store)
    store.wake(ticket("a").id)

    world.elapse(2.0)

    assert [found.id for found in sweep(store, empty_lanes=LANES).unheard] == [ticket("a").id]


def test_a_delayed_ticket_may_be_claimed_on_time_before_any_sweep(store: Store, world: World) -> None:
    created(store, ticket("a", delay_seconds=4.0))
    world.elapse(4.5)

    assert store.claim(ticket("a").id, ME, "t").status == "ok"
    assert sweep(store).hints == ()


@pytest.mark.proves("K34")
def test_a_limit_runs_from_each_claim_and_not_between_claims(store: Store, world: World) -> None:
    limited = ticket("a", limit_name="operation", limit_seconds=100.0)
    created(store, limited)
    assert deadline(store) is None

    first = claimed(store, "a")
    assert deadline(store) == pytest.approx(first.moment.clock + 100)
    world.elapse(2)
    assert claimed(store, "a").fence == first.fence
    assert deadline(store) == pytest.approx(first.moment.clock + 100)
    store.release(limited.id, ME, first.fence)
    assert deadline(store) is None
    second = claimed(store, "a")
    assert deadline(store) == pytest.approx(second.moment.clock + 100)
    store.commit(change(1, ticket=limited.id, owner=ME, fence=second.fence))
    assert deadline(store) is None


@pytest.mark.proves("K34")
def test_the_limit_of_a_lapsed_lease_is_not_due_until_its_holder_comes_back(
    store: Store, world: World
) -> None:
    created(store, ticket("a", limit_name="operation", limit_seconds=4.0))
    claim = claimed(store, "a", lease_seconds=2.0)
    sweep(store, horizon_seconds=0)
    world.elapse(4.5)

    swept = sweep(store, horizon_seconds=0)
    assert (len(swept.lapsed), swept.deadlines) == (1, ())
    assert store.renew(ticket("a").id, ME, claim.fence) == "ok"
    assert [due.name for due in sweep(store, horizon_seconds=0).deadlines] == ["operation"]


def deadline(store: Store) -> float | None:
    found = store.read(FLOW)
    assert found is not None
    return found.deadlines.get("operation")


def test_a_ticket_alone_in_an_empty_queue_is_hinted_again_after_a_second(store: Store, world: World) -> None:
    created(store, ticket("a"), ticket("b", queue="fixloop.fix"))
    sweep(store)

    assert sweep(store, empty_lanes=LANES).unheard == ()
    world.elapse(1.5)
    assert sweep(store, empty_lanes=[Lane("fixloop.f", 3), Lane(QUEUE, 6)]).unheard == ()
    assert sweep(store, empty_lanes=LANES).unheard == (ticket("a"),)
    assert sweep(store, empty_lanes=LANES).unheard == ()
    world.elapse(1.5)
    assert sweep(store, empty_lanes=LANES).unheard == (ticket("a"),)


def test_age_alone_never_hints_again(store: Store, world: World) -> None:
    created(store, *(ticket(f"t{number:02}") for number in range(30)))

    for _ in range(20):
        world.elapse(4)
        assert sweep(store).hints == ()


@pytest.mark.parametrize(("younger", "hinted"), [(9, False), (10, True)])
def test_a_ticket_is_hinted_again_when_ten_younger_ones_were_claimed(
    store: Store, younger: int, hinted: bool
) -> None:
    created(store, *(ticket(f"t{number:02}") for number in range(30)))
    for number in range(1, younger + 1):
        claimed(store, f"t{number:02}")

    assert sweep(store).unheard == ((ticket("t00"),) if hinted else ())
    assert sweep(store).unheard == ()


def test_older_tickets_and_those_of_other_queues_do_not_overtake(store: Store) -> None:
    others = [ticket(f"o{number:02}", queue="fixloop.fix") for number in range(12)]
    urgent = [ticket(f"u{number:02}", priority=0) for number in range(12)]
    created(store, *(ticket(f"a{number:02}") for number in range(12)), ticket("b"), *others, *urgent)

    for prefix in "aou":
        for number in range(12):
            claimed(store, f"{prefix}{number:02}")

    assert sweep(store).hints == ()


def test_a_sweep_is_bounded(store: Store, world: World) -> None:
    created(store, *(ticket(f"t{number:03}", delay_seconds=1.0) for number in range(250)))
    sweep(store)
    world.elapse(2)

    assert [len(sweep(store).ready) for _ in range(3)] == [200, 50, 0]


@pytest.mark.parametrize("ticket_id", ["", "a", FLOW, f"{FLOW}.", "0a1b2c3d-42.a", "x" * 5000])
def test_an_invalid_ticket_id_is_refused_in_one_sentence(store: Store, ticket_id: str) -> None:
    with pytest.raises(UsageError, match="is no ticket id"):
        store.claim(ticket_id, ME, "t")
    with pytest.raises(UsageError, match="is no ticket id"):
        store.renew(ticket_id, ME, 1)


def test_a_claim_or_renewal_that_cannot_be_distinguished_from_another_is_refused(store: Store) -> None:
    created(store, ticket("a"))

    for owner, token in [("", "t"), (ME, ""), ("a\nb", "t"), (ME, "a\nb")]:
        with pytest.raises(ProtocolError, match="needs an owner and a token"):
            store.claim(ticket("a").id, owner, token)
    with pytest.raises(ProtocolError, match="a lease of 0 s"):
        store.claim(ticket("a").id, ME, "t", lease_seconds=0)
    with pytest.raises(ProtocolError, match="an owner and a fence"):
        store.renew(ticket("a").id, "", 0)
    with pytest.raises(ProtocolError, match="an owner and a fence"):
        store.release(ticket("a").id, "", 0)
    assert [swept.hints for swept in sweep_all(store)] == [()] * 16


def test_a_sweep_names_the_lanes_where_tickets_wait(store: Store) -> None:
    created(store, ticket("a"))

    first, second = sweep(store).lanes, sweep(store).lanes
    claimed(store, "a")

    assert (first, second) == ((Lane(QUEUE, 3),), (Lane(QUEUE, 3),))
    assert sweep(store).lanes == ()


@pytest.mark.proves("K40", "S30")
@pytest.mark.parametrize("how", ["released", "lapsed", "overtaken"])
def test_a_ticket_offered_again_keeps_its_place_in_the_queue(store: Store, world: World, how: str) -> None:
    created(store, *(ticket(f"t{number:02}") for number in range(30)))
    if how == "overtaken":
        for number in range(1, 11):
            claimed(store, f"t{number:02}")
    else:
        claim = claimed(store, "t00")
        if how == "released":
            store.release(ticket("t00").id, ME, claim.fence)
        world.elapse(9.5 if how == "lapsed" else 0.0)
    sweep(store)
    world.elapse(1.5)

    assert sweep(store).lanes == (Lane(QUEUE, 0), Lane(QUEUE, 3))
    assert sweep(store, empty_lanes=[Lane(QUEUE, 0)]).unheard == (ticket("t00"),)


def test_a_delayed_ticket_is_offered_in_an_empty_lane(store: Store, world: World) -> None:
    created(store, ticket("late", delay_seconds=1.0), *(ticket(f"t{number}") for number in range(9)))
    sweep(store)
    world.elapse(1.5)
    assert len(sweep(store).ready) == 1
    world.elapse(1.5)

    found = sweep(store, empty_lanes=[Lane(QUEUE, 0)]).unheard

    assert [each.id for each in found] == [ticket("late").id]
