"""A commit is all or nothing, once, and on the version it was decided on."""

from typing import Any

import pytest

from fixloop.errors import ProtocolError, UsageError
from fixloop.store.contract import Store
from fixloop.store.keys import workflow_id
from fixloop.store.records import Commit, Snapshot
from tests.fixtures.store_samples import FLOW, ME, change, claimed, created, ticket

SECOND = "0a1b2c3d-42-2"


def standing(store: Store, workflow: str = FLOW) -> Snapshot:
    found = store.read(workflow)
    assert found is not None
    return found


def without_time(found: Snapshot) -> tuple[Any, ...]:
    return found.version, found.snapshot, found.head, found.fields, found.tickets, found.deadlines


def test_a_created_workflow_is_read_back_whole(store: Store) -> None:
    due = store.now(FLOW).clock + 60
    answer = created(
        store, ticket("a"), fields={"status": "PENDING", "owner": "engine"}, set_deadlines={"late": due}
    )

    found = standing(store)

    assert (answer.status, answer.version, found.version, found.snapshot) == ("ok", 1, 1, b'{"after":1}')
    assert found.head == answer.head != ""
    assert found.fields == {"status": "PENDING", "owner": "engine"}
    assert [held.ticket for held in found.tickets] == [ticket("a")]
    assert found.deadlines == pytest.approx({"late": due})


def test_reading_an_unknown_workflow_gives_none(store: Store) -> None:
    assert store.read(FLOW) is None
    assert store.history(FLOW) == []
    assert store.verify(FLOW) == []
    assert store.commit(change(3)).status == "gone"


@pytest.mark.proves("R4", "R5")
def test_a_commit_decided_on_an_old_version_gets_the_current_one_to_decide_again(store: Store) -> None:
    created(store)
    second = store.commit(change(1))

    answer = store.commit(change(1, snapshot=b"{}"))

    assert (answer.status, answer.version, answer.head, answer.snapshot) == (
        "conflict",
        2,
        second.head,
        b'{"after":2}',
    )
    assert store.commit(change(2, head=answer.head)).status == "ok"


@pytest.mark.proves("R8")
def test_a_repeated_commit_of_a_ticket_gets_its_first_answer_and_writes_nothing(store: Store) -> None:
    created(store, ticket("a"))
    claim = claimed(store, "a")
    commit = change(
        1, head=claim.head, ticket=ticket("a").id, owner=ME, fence=claim.fence, new_tickets=(ticket("b"),)
    )

    first = store.commit(commit)
    store.commit(change(2))
    before = standing(store)
    again = store.commit(commit)

    assert (first.status, again.status) == ("ok", "dup")
    assert (again.version, again.head) == (first.version, first.head)
    assert without_time(standing(store)) == without_time(before)


@pytest.mark.proves("R8")
def test_a_repeated_operation_gets_its_first_answer_however_late(store: Store) -> None:
    created(store)
    first = store.commit(change(1, operation="cancel by Ann"))
    for version in range(2, 30):
        assert store.commit(change(version)).status == "ok"

    again = store.commit(change(30, operation="cancel by Ann"))

    assert (again.status, again.version, again.head) == ("dup", 2, first.head)
    assert standing(store).version == 30


@pytest.mark.proves("R7", "K10")
def test_a_commit_by_a_fence_that_lost_its_ticket_is_refused_and_counted(store: Store) -> None:
    created(store, ticket("a"))
    late = claimed(store, "a")
    store.release(ticket("a").id, ME, late.fence)
    claimed(store, "a", owner="another", token="other")
    before = standing(store)

    answer = store.commit(change(1, ticket=ticket("a").id, owner=ME, fence=late.fence))

    assert answer.status == "stale"
    assert without_time(standing(store)) == without_time(before)
    assert standing(store).stale == before.stale + 1


def test_a_commit_of_a_ticket_that_another_fence_committed_finds_it_gone(store: Store) -> None:
    created(store, ticket("a"))
    late = claimed(store, "a")
    store.release(ticket("a").id, ME, late.fence)
    second = claimed(store, "a", token="other")
    store.commit(change(1, ticket=ticket("a").id, owner=ME, fence=second.fence))

    answer = store.commit(change(2, ticket=ticket("a").id, owner=ME, fence=late.fence))

    assert answer.status == "gone"
    assert standing(store).version == 2


def test_withdrawn_tickets_cannot_be_claimed_renewed_or_committed(store: Store) -> None:
    created(
        store,
        ticket("a", limit_name="operation", limit_seconds=60.0),
        ticket("b"),
        ticket("c", delay_seconds=5.0),
    )
    claim = claimed(store, "a")

    answer = store.commit(change(1, drop_all_tickets=True, new_tickets=(ticket("d"),)))

    assert answer.status == "ok"
    assert store.renew(ticket("a").id, ME, claim.fence) == "cancelled"
    assert store.commit(change(2, ticket=ticket("a").id, owner=ME, fence=claim.fence)).status == "stale"
    assert [store.claim(ticket(name).id, ME, "t").status for name in "abc"] == ["gone"] * 3
    assert [held.ticket.id for held in standing(store).tickets] == [ticket("d").id]
    assert standing(store).deadlines == {}
    assert store.owners() == {}


def test_only_the_named_tickets_are_withdrawn_and_never_the_committed_one(store: Store) -> None:
    created(store, *map(ticket, "abc"))
    claim = claimed(store, "a")

    answer = store.commit(
        change(
            1,
            ticket=ticket("a").id,
            owner=ME,
            fence=claim.fence,
            drop_tickets=(ticket("a").id, ticket("b").id, f"{FLOW}.never"),
        )
    )

    assert answer.status == "ok"
    assert [held.ticket.id for held in standing(store).tickets] == [ticket("c").id]
    assert store.commit(change(1, ticket=ticket("a").id, owner=ME, fence=claim.fence)).status == "dup"


def test_a_commit_replaces_and_clears_deadlines(store: Store) -> None:
    now = store.now(FLOW).clock
    created(store, set_deadlines={"a": now + 10, "b": now + 20, "c": now + 30})

    store.commit(change(1, clear_deadlines=("a", "never"), set_deadlines={"b": now + 25}))
    assert standing(store).deadlines == pytest.approx({"b": now + 25, "c": now + 30})

    store.commit(change(2, clear_all_deadlines=True, set_deadlines={"d": now + 40}))
    assert standing(store).deadlines == pytest.approx({"d": now + 40})


def test_a_feature_has_one_live_workflow_and_another_after_its_end(store: Store) -> None:
    created(store, live=True)

    refused = store.create(change(0, workflow=SECOND, live=True))
    assert (refused.status, refused.other) == ("exists", FLOW)
    assert store.read(SECOND) is None
    assert store.live("0a1b2c3d", 42) == FLOW

    store.commit(change(1, live=False))
    assert store.live("0a1b2c3d", 42) is None
    assert store.create(change(0, workflow=SECOND, live=True)).status == "ok"
    assert store.live("0a1b2c3d", 42) == SECOND
    assert store.commit(change(2, live=False)).status == "ok"
    assert store.live("0a1b2c3d", 42) == SECOND


def test_creating_the_same_workflow_twice_names_the_live_one_or_conflicts(store: Store) -> None:
    created(store, live=True, operation="start")

    assert store.create(change(0, live=True, operation="start")).status == "dup"
    again = store.create(change(0, live=True))
    assert (again.status, again.other) == ("exists", FLOW)
    store.commit(change(1, live=False))
    assert store.create(change(0, live=True)).status == "conflict"


def test_the_same_issue_number_in_two_projects_does_not_conflict(store: Store) -> None:
    other = workflow_id("ffffffff", 42, 1)
    created(store, live=True)

    assert store.create(change(0, workflow=other, live=True)).status == "ok"


@pytest.mark.parametrize(
    "more",
    [
        {"ticket": f"{FLOW}.a"},
        {"ticket": f"{FLOW}.a", "owner": ME},
        {"ticket": f"{FLOW}.a", "fence": 3},
        {"new_tickets": (ticket("a", workflow=SECOND),)},
        {"new_tickets": (ticket("a"), ticket("a", step="fix"))},
        {"fields": {"version": "7"}},
        {"fields": {"t:x": "7"}},
        {"entry": {"at": "now", "prev": "0"}},
        {"entry": {"at": "now", "thing": object()}},
        {"set_deadlines": {"a\nb": 1.0}},
        {"head": "abc"},
    ],
)
def test_a_commit_that_contradicts_itself_is_refused(store: Store, more: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        store.commit(change(0, **more))
    assert store.read(FLOW) is None


def test_creating_expects_version_0(store: Store) -> None:
    with pytest.raises(ProtocolError, match="expects version 0, not 2"):
        store.create(change(2))


@pytest.mark.parametrize(
    "workflow", ["", "42", "0a1b2c3d-42", "0A1B2C3D-42-1", "0a1b2c3d-42-1.x", "0a1b2c3d-x-1"]
)
def test_an_invalid_workflow_id_is_refused_in_one_sentence(store: Store, workflow: str) -> None:
    with pytest.raises(UsageError, match="is no workflow id"):
        store.read(workflow)
    with pytest.raises(UsageError, match="is no workflow id"):
        store.commit(Commit(workflow=workflow, expected_version=0, snapshot=b"{}", entry={}))
