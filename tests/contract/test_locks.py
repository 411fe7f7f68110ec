"""Locks as K10 has them."""

import pytest

from fixloop.errors import ProtocolError
from fixloop.store.contract import Store
from tests.fixtures.store_samples import FLOW, claimed, created, ticket
from tests.fixtures.store_world import World

FILE = "src/app.py"


@pytest.mark.proves("K10")
def test_an_absent_lock_is_granted_and_a_live_one_refused(store: Store) -> None:
    first = store.locks.acquire(FLOW, FILE, "builder", lease_seconds=60)
    other = store.locks.acquire(FLOW, FILE, "fixer", lease_seconds=60)

    assert (first.status, first.agent, first.previous, first.is_held) == ("granted", "builder", "", True)
    assert (first.expires - first.acquired).total_seconds() == pytest.approx(60)
    assert (other.status, other.token, other.agent, other.is_held) == ("refused", 0, "builder", False)
    assert other.expires == first.expires
    assert store.locks.acquire(FLOW, "README.md", "fixer").status == "granted"


@pytest.mark.proves("K10")
def test_the_same_agent_is_granted_again_with_unchanged_expiry(store: Store, world: World) -> None:
    first = store.locks.acquire(FLOW, FILE, "builder", lease_seconds=60)
    world.elapse(30)

    again = store.locks.acquire(FLOW, FILE, "builder", lease_seconds=60)

    assert (again.status, again.token, again.is_held) == ("again", first.token, True)
    world.elapse(31)
    assert store.locks.acquire(FLOW, FILE, "fixer").status == "forced"


@pytest.mark.proves("K10")
def test_an_expired_lock_is_taken_over_and_its_previous_owner_cannot_release_it(
    store: Store, world: World
) -> None:
    first = store.locks.acquire(FLOW, FILE, "builder", lease_seconds=60)
    world.elapse(61)

    forced = store.locks.acquire(FLOW, FILE, "fixer", lease_seconds=60)

    assert (forced.status, forced.previous, forced.agent) == ("forced", "builder", "fixer")
    assert forced.token > first.token
    assert store.locks.release(FLOW, FILE, first.token) == "lost"
    assert store.locks.extend(FLOW, FILE, first.token) == "lost"
    assert store.locks.acquire(FLOW, FILE, "builder").status == "refused"


@pytest.mark.proves("K10")
def test_a_released_lock_is_absent(store: Store) -> None:
    first = store.locks.acquire(FLOW, FILE, "builder")

    assert store.locks.release(FLOW, FILE, first.token) == "ok"
    assert store.locks.release(FLOW, FILE, first.token) == "lost"
    second = store.locks.acquire(FLOW, FILE, "fixer")
    assert (second.status, second.token > first.token) == ("granted", True)


@pytest.mark.proves("K10")
def test_a_lock_is_extended_before_it_expires_and_not_after(store: Store, world: World) -> None:
    first = store.locks.acquire(FLOW, FILE, "builder", lease_seconds=60)
    world.elapse(50)

    assert store.locks.extend(FLOW, FILE, first.token, lease_seconds=60) == "ok"
    world.elapse(50)
    assert store.locks.acquire(FLOW, FILE, "fixer").status == "refused"
    world.elapse(11)
    assert store.locks.extend(FLOW, FILE, first.token) == "lost"
    assert store.locks.release(FLOW, FILE, first.token) == "ok"


def test_tokens_and_fences_of_a_shard_come_from_one_counter(store: Store) -> None:
    created(store, ticket("a"))

    tokens = [store.locks.acquire(FLOW, "one", "builder").token]
    tokens.append(claimed(store, "a").fence)
    tokens.append(store.locks.acquire(FLOW, "two", "builder").token)

    assert tokens == [1, 2, 3]


def test_an_invalid_lease_is_refused(store: Store) -> None:
    for lease_seconds in (0, -1, float("nan")):
        with pytest.raises(ProtocolError, match="has to be over 0"):
            store.locks.acquire(FLOW, FILE, "builder", lease_seconds=lease_seconds)
        with pytest.raises(ProtocolError, match="has to be over 0"):
            store.locks.extend(FLOW, FILE, 1, lease_seconds=lease_seconds)


@pytest.mark.proves("K10")
def test_a_clock_that_is_turned_back_lengthens_no_lock_by_more_than_its_lease(
    store: Store, world: World
) -> None:
    first = store.locks.acquire(FLOW, FILE, "builder", lease_seconds=60)

    world.elapse(-6 * 3600)

    assert store.locks.acquire(FLOW, FILE, "fixer", lease_seconds=60).status == "refused"
    world.elapse(61)
    forced = store.locks.acquire(FLOW, FILE, "fixer", lease_seconds=60)
    assert (forced.status, forced.previous) == ("forced", "builder")
    assert store.locks.release(FLOW, FILE, first.token) == "lost"
