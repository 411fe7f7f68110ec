"""Finding workflows: by feature, by issue number, all of them."""

import pytest

from fixloop.errors import UsageError
from fixloop.store.contract import Store
from fixloop.store.keys import project_hash, workflow_id
from tests.fixtures.store_samples import change, ticket


def start(store: Store, project: str, issue: int, number: int, status: str = "PENDING") -> str:
    workflow = workflow_id(project, issue, number)
    answer = store.create(change(0, workflow=workflow, live=True, fields={"status": status}))
    assert answer.status == "ok"
    return workflow


def end(store: Store, workflow: str) -> None:
    store.commit(change(1, workflow=workflow, live=False, fields={"status": "ENDED"}))


def test_the_latest_workflow_of_a_feature_is_found_live_or_ended(store: Store) -> None:
    project = project_hash("https://example.org/shop.git")
    assert store.latest(project, 7) is None
    assert store.next_number(project, 7) == 1

    for number in range(1, 12):
        end(store, start(store, project, 7, number))

    assert store.latest(project, 7) == workflow_id(project, 7, 11)
    assert store.next_number(project, 7) == 12
    assert store.latest(project, 70) is None
    assert store.latest("ffffffff", 7) is None


def test_an_issue_is_searched_in_all_projects(store: Store) -> None:
    found = []
    for project in map(project_hash, ("a", "b", "c")):
        end(store, start(store, project, 7, 1))
        found.append(start(store, project, 7, 2))
        start(store, project, 8, 1)

    assert store.search(7) == sorted(found)
    assert store.search(9) == []


def test_all_workflows_are_listed_with_their_fields(store: Store) -> None:
    expected = {}
    for issue in range(1, 300):
        workflow = start(store, "0a1b2c3d", issue, 1)
        expected[workflow] = {"status": "PENDING"}
    end(store, workflow_id("0a1b2c3d", 5, 1))

    everything = dict(store.workflows())
    live = dict(store.workflows(live_only=True))

    assert everything == {**expected, workflow_id("0a1b2c3d", 5, 1): {"status": "ENDED"}}
    assert live == {
        name: fields for name, fields in expected.items() if name != workflow_id("0a1b2c3d", 5, 1)
    }


def test_the_lowest_number_never_used_is_allocated_once(store: Store) -> None:
    for used in (2, 3, 1_000_000):
        store.use_issue("0a1b2c3d", used)

    assert [store.allocate_issue("0a1b2c3d") for _ in range(3)] == [1, 4, 5]
    store.use_issue("0a1b2c3d", 6)
    assert [store.allocate_issue("0a1b2c3d") for _ in range(2)] == [7, 8]
    assert store.allocate_issue("ffffffff") == 1


def test_an_invalid_project_or_issue_is_refused(store: Store) -> None:
    for project, issue in [("shop", 7), ("0a1b2c3d", -7)]:
        with pytest.raises(UsageError, match="is no workflow id"):
            store.latest(project, issue)
        with pytest.raises(UsageError, match="is no workflow id"):
            store.live(project, issue)


def test_the_id_of_the_stored_data_does_not_change(store: Store) -> None:
    assert store.data_id() == store.data_id() != ""


def test_the_store_answers(store: Store) -> None:
    store.ping()

    assert ticket("a").id.startswith(ticket("a").workflow)
