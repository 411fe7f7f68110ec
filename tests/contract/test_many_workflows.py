"""Several workflows that are created by one call, in both stores."""

import pytest

from fixloop.store.contract import Store
from fixloop.store.keys import shard_of
from fixloop.store.records import Commit
from tests.fixtures.store_samples import change, created

PROJECT = "0a1b2c3d"


def beginning(issue: int) -> Commit:
    return change(0, workflow=f"{PROJECT}-{issue}-1", live=True)


@pytest.mark.proves("R4")
def test_each_workflow_of_a_batch_is_created_as_if_alone(store: Store) -> None:
    created(store, workflow=f"{PROJECT}-2-1", live=True)

    answers = store.create_all([beginning(1), beginning(2), beginning(3)])

    assert [(answer.status, answer.other) for answer in answers] == [
        ("ok", ""),
        ("exists", f"{PROJECT}-2-1"),
        ("ok", ""),
    ]
    for issue in (1, 2, 3):
        assert store.live(PROJECT, issue) == f"{PROJECT}-{issue}-1"
        assert store.verify(f"{PROJECT}-{issue}-1") == []
    assert len({shard_of(f"{PROJECT}-{issue}-1") for issue in (1, 2, 3)}) > 1


def test_only_the_first_workflow_of_an_issue_in_a_batch_is_created(store: Store) -> None:
    answers = store.create_all([beginning(1), beginning(1)])

    assert [answer.status for answer in answers] == ["ok", "exists"]


def test_an_empty_batch_creates_nothing(store: Store) -> None:
    assert store.create_all([]) == []
    assert store.next_numbers(PROJECT, []) == []


@pytest.mark.proves("G1")
def test_next_numbers_follow_the_existing_ones_and_are_not_allocated(store: Store) -> None:
    created(store, workflow=f"{PROJECT}-2-1", live=True)
    created(store, workflow=f"{PROJECT}-5-3")

    assert store.next_numbers(PROJECT, [1, 2, 5]) == [1, 2, 4]
    assert store.allocate_issue(PROJECT) not in (1, 2, 5)
