"""Many simultaneous calls: exactly one succeeds."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from fixloop.store.contract import Store
from tests.fixtures.store_samples import FLOW, change, claimed, created, sweep_all, ticket

MANY = 20


def at_once(act: Callable[[int], str]) -> Counter[str]:
    """The results of `MANY` threads that start together."""
    start = Barrier(MANY)

    def run(number: int) -> str:
        start.wait(60)
        return act(number)

    with ThreadPoolExecutor(MANY) as pool:
        return Counter(pool.map(run, range(MANY)))


@pytest.mark.proves("R7", "R8")
def test_one_of_many_claimers_wins(store: Store) -> None:
    created(store, ticket("a"))

    answers = at_once(lambda number: store.claim(ticket("a").id, f"owner {number}", "t").status)

    assert answers == {"ok": 1, "busy": MANY - 1}


@pytest.mark.proves("R4", "R5")
def test_one_of_many_commits_on_a_version_wins(store: Store) -> None:
    head = created(store).head

    answers = at_once(lambda number: store.commit(change(1, head=head, snapshot=b"%d" % number)).status)

    assert answers == {"ok": 1, "conflict": MANY - 1}
    assert len(store.history(FLOW)) == 2
    assert store.verify(FLOW) == []


@pytest.mark.proves("R8")
def test_many_commits_of_one_claim_write_once(store: Store) -> None:
    created(store, ticket("a"))
    claim = claimed(store, "a", owner="me")
    commit = change(1, head=claim.head, ticket=ticket("a").id, owner="me", fence=claim.fence)

    answers = at_once(lambda number: f"{store.commit(commit).status} {store.commit(commit).version}")

    assert answers == {"ok 2": 1, "dup 2": MANY - 1}
    assert len(store.history(FLOW)) == 2


def test_many_starts_of_one_feature_make_one_workflow(store: Store) -> None:
    def start(number: int) -> str:
        return store.create(change(0, workflow=f"0a1b2c3d-42-{number + 1}", live=True)).status

    assert at_once(start) == {"ok": 1, "exists": MANY - 1}
    assert len(list(store.workflows())) == 1


def test_many_allocations_are_all_different(store: Store) -> None:
    numbers = at_once(lambda _: str(store.allocate_issue("0a1b2c3d")))

    assert set(numbers) == {str(number) for number in range(1, MANY + 1)}


def test_one_of_many_agents_gets_a_lock(store: Store) -> None:
    answers = at_once(lambda number: store.locks.acquire(FLOW, "file", f"agent {number}").status)

    assert answers == {"granted": 1, "refused": MANY - 1}


def test_one_of_many_sweepers_gets_the_shards(store: Store) -> None:
    answers = at_once(lambda number: str(store.sweep(3, owner=f"owner {number}").mine))

    assert answers == {"True": 1, "False": MANY - 1}
    assert [swept.mine for swept in sweep_all(store, owner="one more")].count(False) == 1
