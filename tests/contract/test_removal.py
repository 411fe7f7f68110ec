"""Ended workflows are found by their end and removed whole; their numbers stay known."""

from datetime import timedelta

import pytest

from fixloop.store.chain import problems
from fixloop.store.contract import Store
from fixloop.store.records import Stored
from tests.fixtures.store_samples import FLOW, ME, change, claimed, created, ticket
from tests.fixtures.store_world import World

OTHER = "0a1b2c3d-42-2"
ISSUE = ("0a1b2c3d", 42)


def ended(store: Store, workflow: str = FLOW, **more: object) -> Stored:
    """A workflow that began and ended, as it is stored."""
    store.create(change(0, workflow=workflow, live=True))
    answer = store.commit(change(1, workflow=workflow, live=False, **more))
    assert answer.status == "ok"
    found = store.stored(workflow)
    assert found is not None
    return found


def names(store: Store, seconds: float = 60.0) -> list[str]:
    """The workflows that ended before this many seconds from now."""
    return [workflow for workflow, _ in store.ended(store.now(FLOW).at + timedelta(seconds=seconds))]


@pytest.mark.proves("G26")
def test_a_workflow_is_found_by_when_it_ended(store: Store) -> None:
    store.create(change(0, live=True))
    assert names(store) == []

    store.commit(change(1, live=False))

    assert names(store) == [FLOW]
    assert names(store, seconds=-60.0) == []


def test_later_commits_do_not_change_when_a_workflow_ended(store: Store, world: World) -> None:
    ended(store)
    ((_, at),) = store.ended(store.now(FLOW).at + timedelta(seconds=60))

    store.commit(change(2, live=False))

    assert store.ended(store.now(FLOW).at + timedelta(seconds=60)) == [(FLOW, at)]


@pytest.mark.proves("G26")
def test_a_stored_workflow_can_be_verified_by_itself(store: Store) -> None:
    own, shared = store.put_artifact(FLOW, b"a log"), store.put_artifact(FLOW, b"gates", shared=True)
    unnamed = store.put_artifact(FLOW, b"of a step that was not committed")
    body = {"at": "2026-03-01T09:00:00Z", "artifacts": [own, shared], "text": "x" * 100}

    found = ended(store, entry=body, fields={"status": "ENDED"})

    assert problems(found, found.artifacts.get) == []
    assert found.artifacts == {own: b"a log", shared: b"gates", unnamed: b"of a step that was not committed"}
    assert found.fields == {"status": "ENDED"}
    assert store.stored(OTHER) is None


@pytest.mark.proves("G26")
def test_a_removed_workflow_leaves_only_what_others_share(store: Store) -> None:
    own, shared = store.put_artifact(FLOW, b"a log"), store.put_artifact(FLOW, b"gates", shared=True)
    store.put_artifact(OTHER, b"a log")
    found = ended(store)
    created(store, workflow=OTHER)

    assert store.remove(FLOW, found.head, "archived") == "ok"

    assert (store.read(FLOW), store.history(FLOW), store.stored(FLOW)) == (None, [], None)
    assert store.get_artifact(FLOW, own) is None
    assert (store.get_artifact(OTHER, own), store.get_artifact(OTHER, shared)) == (b"a log", b"gates")
    assert (names(store), [workflow for workflow, _ in store.workflows()]) == ([], [OTHER])
    assert store.remove(FLOW, found.head, "archived") == "gone"


@pytest.mark.proves("G26")
def test_a_removed_workflow_s_number_is_not_reused(store: Store) -> None:
    found = ended(store)

    store.remove(FLOW, found.head, "archived")

    assert (store.latest(*ISSUE), store.next_number(*ISSUE)) == (None, 2)
    retired = store.retired(*ISSUE)
    assert retired is not None
    assert (retired.workflow, retired.how) == (FLOW, "archived")
    assert store.retired("0a1b2c3d", 43) is None


def test_the_newest_of_several_removed_workflows_is_remembered(store: Store) -> None:
    first, second = ended(store), ended(store, OTHER)

    store.remove(OTHER, second.head, "archived")
    store.remove(FLOW, first.head, "purged")
    retired = store.retired(*ISSUE)
    assert retired is not None
    assert (retired.workflow, retired.how) == (OTHER, "archived")

    store.remove(OTHER, second.head, "purged")
    retired = store.retired(*ISSUE)
    assert retired is not None
    assert (retired.workflow, retired.how) == (OTHER, "purged")
    assert store.next_number(*ISSUE) == 3


@pytest.mark.proves("G26")
def test_a_workflow_that_is_live_or_changed_meanwhile_is_not_removed(store: Store) -> None:
    live = created(store, ticket("a"), live=True)
    assert store.remove(FLOW, live.head, "purged") == "live"
    claim = claimed(store, "a")
    store.commit(change(1, ticket=ticket("a").id, owner=ME, fence=claim.fence, live=False))

    assert store.remove(FLOW, live.head, "archived") == "changed"

    assert len(store.history(FLOW)) == 2
    assert store.retired(*ISSUE) is None


@pytest.mark.proves("G26")
def test_nobody_has_a_ticket_of_a_removed_workflow(store: Store) -> None:
    found = ended(store, new_tickets=(ticket("late"),))
    assert store.claim(f"{FLOW}.late", ME, "a", lease_seconds=10.0).status == "ok"
    assert store.owners() == {f"{FLOW}.late": (ME, 1)}

    assert store.remove(FLOW, found.head, "archived") == "ok"

    assert store.owners() == {}
