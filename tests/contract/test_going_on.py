"""A commit may claim the following ticket at the same time, and returns what a claim returns."""

from typing import Any

import pytest

from fixloop.errors import ProtocolError
from fixloop.store.contract import Store
from fixloop.store.keys import shard_of
from fixloop.store.limits import LEASE_SECONDS
from fixloop.store.records import Committed
from tests.fixtures.store_samples import FLOW, LANES, ME, QUEUE, change, claimed, created, sweep, ticket
from tests.fixtures.store_world import World

ELSEWHERE = "0a1b2c3d-43-1"
"""A workflow of another shard."""


def gone_on(store: Store, version: int = 1, **more: Any) -> Committed:
    """Commit `a`, which `b` follows, and ask for that."""
    held = store.owners().get(ticket("a").id) or (ME, claimed(store, "a").fence)
    following = more.pop("following", ticket("b"))
    names = {
        "ticket": ticket("a").id,
        "owner": ME,
        "fence": held[1],
        "claim": following.id,
        "token": "token-b",
    }
    return store.commit(change(version, **names, new_tickets=(following,), **more))


@pytest.mark.proves("R7", "R8")
def test_a_commit_claims_what_follows_as_a_claim_would(store: Store) -> None:
    created(store, ticket("a"))

    answer = gone_on(store)

    claim = answer.claim
    assert claim is not None
    assert answer.status == "ok"
    assert (claim.status, claim.version, claim.head, claim.snapshot) == ("ok", 2, answer.head, b'{"after":2}')
    assert (claim.ticket, claim.fence, claim.deaths) == (ticket("b"), 2, 0)
    assert store.owners() == {ticket("b").id: (ME, 2)}
    again = claimed(store, "b", token="token-b")
    assert (again.fence, again.snapshot, again.context) == (claim.fence, claim.snapshot, claim.context)


def test_a_continued_ticket_is_committed_with_its_fence(store: Store) -> None:
    created(store, ticket("a"))
    claim = gone_on(store).claim
    assert claim is not None

    names = {"ticket": ticket("b").id, "owner": ME, "fence": claim.fence}
    answer = store.commit(change(2, head=claim.head, context=claim.context, **names))

    assert answer.status == "ok"
    assert store.verify(FLOW) == []


@pytest.mark.proves("R7")
def test_a_step_that_only_sends_messages_is_claimed_past_waiting_tickets(store: Store) -> None:
    created(store, ticket("a"), ticket("waits"))

    assert gone_on(store, past_waiting=True).claim is not None


@pytest.mark.proves("R8")
def test_a_repeated_commit_gets_its_claim_again(store: Store) -> None:
    created(store, ticket("a"))
    claimed(store, "a")
    first = gone_on(store)

    fence = 1
    names = {
        "ticket": ticket("a").id,
        "owner": ME,
        "fence": fence,
        "claim": ticket("b").id,
        "token": "token-b",
    }
    again = store.commit(change(1, **names, new_tickets=(ticket("b"),)))
    other = store.commit(change(1, **{**names, "token": "another"}, new_tickets=(ticket("b"),)))

    assert first.claim is not None
    assert again.claim is not None
    assert (again.status, again.claim.fence) == ("dup", first.claim.fence)
    assert (other.status, other.claim) == ("dup", None)


@pytest.mark.parametrize(
    ("waiting", "is_before"),
    [
        ({}, True),
        ({"priority": 0}, True),
        ({"priority": 6}, False),
        ({"queue": f"{QUEUE}.other"}, False),
        ({"delay_seconds": 60.0}, False),
    ],
)
@pytest.mark.parametrize("workflow", ["0a1b2c3d-42-2", ELSEWHERE])
def test_an_equally_urgent_ticket_older_than_the_workflow_goes_first(
    store: Store, world: World, waiting: dict[str, Any], is_before: bool, workflow: str
) -> None:
    created(store, ticket("waits", workflow, **waiting))
    world.elapse(1.0)
    created(store, ticket("a"))

    answer = gone_on(store)

    assert (answer.status, answer.claim is None) == ("ok", is_before)
    assert shard_of(ELSEWHERE) != shard_of(FLOW)
    assert store.claim(ticket("b").id, "another", "t").status == ("ok" if is_before else "busy")


@pytest.mark.parametrize(("priority", "is_before"), [(0, True), (3, False)])
def test_a_more_urgent_ticket_younger_than_the_workflow_goes_first(
    store: Store, world: World, priority: int, is_before: bool
) -> None:
    created(store, ticket("a", priority=3))
    world.elapse(1.0)
    created(store, ticket("waits", ELSEWHERE, priority=priority))

    assert (gone_on(store, following=ticket("b", priority=3)).claim is None) == is_before


def test_the_longest_waiting_ticket_decides(store: Store, world: World) -> None:
    created(store, ticket("first", ELSEWHERE))
    world.elapse(1.0)
    created(store, ticket("a"))
    world.elapse(1.0)
    created(store, ticket("last", "0a1b2c3d-42-2"))

    assert gone_on(store).claim is None


def test_a_claimed_ticket_does_not_count_as_waiting(store: Store) -> None:
    created(store, ticket("a"))
    created(store, ticket("taken", ELSEWHERE))
    claimed(store, "taken", ELSEWHERE)

    assert gone_on(store).claim is not None


def test_an_urgent_ticket_that_arrives_late_is_not_passed_over(store: Store) -> None:
    created(store, ticket("a"))
    for number in range(100):
        created(store, ticket("waits", f"0a1b2c3d-{100 + number}-1", priority=6))
    created(store, ticket("late", ELSEWHERE, priority=0))

    assert gone_on(store).claim is None


def test_a_commit_claims_nothing_of_a_held_workflow(store: Store) -> None:
    created(store, ticket("a"))
    claimed(store, "a")
    store.commit(change(1, operation="pause", hold=True))

    answer = gone_on(store, version=2)

    assert (answer.status, answer.claim) == ("ok", None)


def test_a_commit_does_not_claim_a_delayed_ticket(store: Store) -> None:
    created(store, ticket("a"))

    assert gone_on(store, following=ticket("b", delay_seconds=5.0)).claim is None


def test_the_limit_of_a_continued_ticket_runs_from_its_commit(store: Store) -> None:
    created(store, ticket("a"))

    claim = gone_on(
        store,
        following=ticket("b", limit_name="operation", limit_seconds=60.0),
        set_deadlines={"operation": 1.0},
    ).claim

    found = store.read(FLOW)
    assert found is not None
    assert claim is not None
    assert found.deadlines == {"operation": pytest.approx(claim.moment.clock + 60.0, abs=0.01)}


@pytest.mark.proves("K40")
def test_a_continued_ticket_is_offered_again_when_its_lease_expires(store: Store, world: World) -> None:
    created(store, ticket("a"))
    gone_on(store)
    sweep(store)
    world.elapse(LEASE_SECONDS / 2)
    assert sweep(store, empty_lanes=LANES).hints == ()

    world.elapse(LEASE_SECONDS / 2)
    sweep(store)

    assert store.owners() == {}
    assert store.claim(ticket("b").id, "another", "t").status == "ok"


def test_a_conflict_claims_nothing(store: Store) -> None:
    created(store, ticket("a"))
    claimed(store, "a")
    store.commit(change(1, operation="other"))

    answer = gone_on(store)

    assert (answer.status, answer.claim) == ("conflict", None)


@pytest.mark.parametrize("wrong", [{"claim": "0a1b2c3d-42-1.other"}, {"token": ""}, {"owner": "a\nb"}])
def test_a_commit_claims_only_its_own_tickets_and_needs_a_token(store: Store, wrong: dict[str, Any]) -> None:
    created(store, ticket("a"))
    names = {"ticket": ticket("a").id, "owner": ME, "fence": 1, "claim": ticket("b").id, "token": "t"}

    with pytest.raises(ProtocolError):
        store.commit(change(1, **{**names, **wrong}, new_tickets=(ticket("b"),)))
