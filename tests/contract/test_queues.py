"""The work in each queue: ready, claimed, and how long the oldest has waited."""

import pytest

from fixloop.store.contract import Store
from fixloop.store.records import QueueLoad
from tests.fixtures.store_samples import QUEUE, claimed, created, ticket
from tests.fixtures.store_world import World

OTHER = "0a1b2c3d-43-1"


def test_ready_and_claimed_tickets_are_counted_by_queue(store: Store) -> None:
    created(store, ticket("one"), ticket("two"), ticket("three", priority=0))
    created(store, ticket("one", OTHER, queue="fixloop.fix"), ticket("later", OTHER, delay_seconds=60))
    claimed(store, "one")

    found = {each.queue: (each.ready, each.claimed) for each in store.queues()}

    assert found == {QUEUE: (2, 1), "fixloop.fix": (1, 0)}


def test_a_queue_s_age_is_that_of_its_oldest_ready_ticket(store: Store, world: World) -> None:
    created(store, ticket("one"))
    world.elapse(3.0)
    created(store, ticket("one", OTHER))

    [found] = store.queues()

    assert found.oldest_seconds == pytest.approx(3.0, abs=1.0)


def test_a_queue_without_tickets_is_not_listed(store: Store) -> None:
    created(store)

    assert store.queues() == []


def test_a_queue_whose_tickets_are_all_claimed_has_no_age(store: Store) -> None:
    created(store, ticket("one"))
    claimed(store, "one")

    assert store.queues() == [QueueLoad(QUEUE, 0, 1, 0.0)]
