"""Which death counts as poison: only that of a process whose own worker survives (K40)."""

import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import pytest

from fixloop.machine.owner import identity, machine
from tests.fixtures.command_stage import Agents
from tests.fixtures.memory_store import MemoryStore
from workers.recovery.release import released

DEAD: Final = f"{machine()}/{os.getpid()}/1"
"""This process' number, at another time."""
ME: Final = identity()


@pytest.fixture
def other() -> Iterator[str]:
    """Another live supervisor of this machine."""
    process = subprocess.Popen(["sleep", "60"])
    yield identity(process.pid)
    process.kill()
    process.wait()


def belonging_to(supervisor: str) -> str:
    """A dead process of a supervisor."""
    return f"{DEAD}@{':'.join(supervisor.rsplit('/', 2)[1:])}"


def held_by(owner: str) -> tuple[MemoryStore, str]:
    """A store with one workflow, whose step `owner` holds."""
    store = MemoryStore(lambda: datetime(2026, 3, 1, 9, 0, tzinfo=UTC))
    found = store.read(Agents(store).start())
    assert found is not None
    (ticket,) = (held.ticket.id for held in found.tickets)
    assert store.claim(ticket, owner, "token").status == "ok"
    return store, ticket


def deaths(store: MemoryStore) -> int:
    ((workflow, _),) = store.workflows()
    found = store.read(workflow)
    assert found is not None
    return found.tickets[0].deaths


def given_back(store: MemoryStore, *, poison: bool = True, pid: int | None = None) -> list[str]:
    return [ticket.id for ticket in released(store, ME, poison=poison, pid=pid)]


@pytest.mark.proves("K40")
@pytest.mark.parametrize("poison", [True, False])
def test_a_death_among_a_worker_s_processes_counts_if_the_rest_survived(poison: bool) -> None:
    store, ticket = held_by(belonging_to(ME))

    assert given_back(store, poison=poison) == [ticket]

    assert deaths(store) == poison


@pytest.mark.proves("K40")
def test_a_death_in_another_live_worker_is_left_to_it(other: str) -> None:
    store, _ = held_by(belonging_to(other))

    assert given_back(store) == []

    assert store.owners() != {}


@pytest.mark.proves("K40")
@pytest.mark.parametrize(
    "owner",
    [belonging_to(f"{machine()}/{os.getpid()}/2"), DEAD],
    ids=["its supervisor is dead", "it names none"],
)
def test_the_steps_of_a_worker_that_died_whole_are_offered_again_and_not_counted(owner: str) -> None:
    store, ticket = held_by(owner)

    assert given_back(store) == [ticket]

    assert deaths(store) == 0


def test_a_main_process_releases_only_the_tickets_of_its_own_processes(other: str) -> None:
    for owner in (belonging_to(other), DEAD):
        store, _ = held_by(owner)
        assert given_back(store, pid=os.getpid()) == []
    store, ticket = held_by(belonging_to(ME))

    assert given_back(store, pid=os.getpid() + 1) == []
    assert given_back(store, pid=os.getpid()) == [ticket]


def test_the_ticket_of_a_live_process_is_not_released() -> None:
    store, _ = held_by(f"{ME}@1:1")

    assert given_back(store) == []
