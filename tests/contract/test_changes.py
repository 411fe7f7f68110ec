"""Each commit is reported to readers of the store, from any cursor on, and so are possible gaps."""

import threading
import time
from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from fixloop.errors import UsageError
from fixloop.store.changes import MOST_READ
from fixloop.store.contract import Store
from fixloop.store.limits import CHANGES_KEPT
from fixloop.store.records import Change, Changes
from tests.fixtures.patience import slack
from tests.fixtures.store_samples import FLOW, ME, change, claimed, created, ticket
from tests.fixtures.store_world import RedisWorld, World

OTHERS = tuple(f"0a1b2c3d-{issue}-1" for issue in range(1, 25))


def now(store: Store) -> str:
    return store.changes("", wait_seconds=0.0).cursor


def read(store: Store, cursor: str) -> list[Change]:
    """All changes after a cursor."""
    told: list[Change] = []
    while (found := store.changes(cursor, wait_seconds=0.0)).changes:
        assert not found.gap
        told += found.changes
        cursor = found.cursor
    return told


def versions(told: Iterable[Change], workflow: str) -> list[int]:
    return [each.version for each in told if each.workflow == workflow]


def test_a_new_reader_gets_later_changes_only(store: Store) -> None:
    store.create(change(0))
    cursor = now(store)

    store.commit(change(1))

    assert read(store, cursor) == [Change(FLOW, 2)]


def test_refused_and_repeated_commits_are_no_changes(store: Store) -> None:
    created(store, ticket("one"))
    fence = claimed(store, "one").fence
    cursor = now(store)

    done = change(1, ticket=f"{FLOW}.one", owner=ME, fence=fence)
    for commit in (done, done, change(1), change(7)):
        store.commit(commit)
    store.create(change(0))

    assert read(store, cursor) == [Change(FLOW, 2)]


def test_a_removed_workflow_is_a_change_to_version_0(store: Store) -> None:
    store.create(change(0, live=True))
    cursor = now(store)
    made = store.commit(change(1, live=False))

    store.remove(FLOW, made.head, "purged")
    store.remove(FLOW, made.head, "purged")

    assert read(store, cursor) == [Change(FLOW, 2), Change(FLOW, 0)]


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(chosen=st.lists(st.sampled_from(OTHERS), max_size=30))
def test_from_any_cursor_no_change_is_missed_and_each_workflow_is_in_order(
    world: World, chosen: list[str]
) -> None:
    store, made = world.store, {}
    cursors = [now(store)]
    expected: list[Change] = []
    for workflow in chosen:
        found = store.read(workflow)
        made[workflow] = found.version if found is not None else 0
        store.commit(change(made[workflow], workflow=workflow))
        expected.append(Change(workflow, made[workflow] + 1))
        cursors.append(store.changes(cursors[-1], wait_seconds=0.0).cursor)

    for place, cursor in enumerate(cursors):
        told = read(store, cursor)
        assert sorted(told) == sorted(expected[place:])
        assert all(versions(told, each) == sorted(versions(told, each)) for each in set(chosen))


def test_more_changes_than_fit_come_in_several_answers(store: Store) -> None:
    cursor = now(store)
    for version in range(MOST_READ + 5):
        store.commit(change(version))

    first = store.changes(cursor, wait_seconds=0.0)

    assert len(first.changes) == MOST_READ
    assert versions(read(store, first.cursor), FLOW) == list(range(MOST_READ + 1, MOST_READ + 6))


def test_a_reader_that_was_away_too_long_is_told_of_a_gap(store: Store) -> None:
    never, once = now(store), ""
    # Redis keeps up to a hundred more: it removes whole blocks.
    for version in range(CHANGES_KEPT + 200):
        store.commit(change(version))
        once = once or now(store)

    for cursor in (never, once):
        found = store.changes(cursor, wait_seconds=0.0)

        assert found == Changes((), now(store), gap=True)


def test_a_waiting_reader_is_woken_by_the_next_commit(store: Store) -> None:
    cursor, woken = now(store), []

    def wait() -> None:
        woken.append((store.changes(cursor, wait_seconds=60.0).changes, time.monotonic()))

    waiting = threading.Thread(target=wait)
    waiting.start()
    committed_at = time.monotonic()
    store.create(change(0))
    waiting.join()

    [(changes, at)] = woken
    assert changes == (Change(FLOW, 1),)
    assert at - committed_at < slack(5)


def test_a_wait_without_a_change_ends_in_time_and_keeps_the_cursor(store: Store) -> None:
    store.create(change(0))
    cursor = now(store)

    found = store.changes(cursor, wait_seconds=0.05)

    assert found == Changes((), cursor)


def test_a_lost_stream_is_reported_as_a_gap(world: World) -> None:
    if not isinstance(world, RedisWorld):
        pytest.skip("memory is not lost")
    world.store.create(change(0))
    cursor = now(world.store)

    # Ids are times: no Redis is replaced within a millisecond.
    before = int(world.clock() * 1000)
    while int(world.clock() * 1000) == before:
        pass
    world.client.flushdb()
    world.store.create(change(0))

    assert world.store.changes(cursor, wait_seconds=0.0).gap


def test_a_damaged_stream_blocks_no_commit_and_is_repaired(world: World) -> None:
    if not isinstance(world, RedisWorld):
        pytest.skip("memory has one form")
    world.store.create(change(0))
    [name] = world.client.keys("fixloop:*:changes")
    world.client.set(name, "damaged")

    assert world.store.commit(change(1)).status == "ok"
    cursor = now(world.store)
    assert world.store.commit(change(2)).status == "ok"
    assert read(world.store, cursor) == [Change(FLOW, 3)]


@pytest.mark.parametrize("cursor", ["x", "1-1", ",".join(["1-1"] * 17), f"{'9' * 40}-1{',' * 15}", "1-1\n"])
def test_an_invalid_cursor_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(UsageError, match="is no cursor"):
        store.changes(cursor, wait_seconds=0.0)
