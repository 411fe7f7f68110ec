"""Workers that share a shard with damaged workflows: undamaged ones continue, even those only the sweeper knows of."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
import redis

from fixloop.store import keys
from fixloop.store.packing import NOTHING, pack
from tests.fixtures.deployment import PROJECT, Deployment, fresh_database

pytestmark = pytest.mark.slow

SHARD: Final = keys.shard_of(f"{PROJECT}-101-1")
KEYS: Final = keys.shard_keys(SHARD)


def as_string(client: Any, workflow: str) -> None:
    client.set(keys.workflow_key(workflow), b"garbled")


def field(name: str, value: bytes) -> Callable[[Any, str], None]:
    """The new value of the first field with this prefix."""

    def garble(client: Any, workflow: str) -> None:
        found = next(
            each for each in client.hkeys(keys.workflow_key(workflow)) if each.startswith(name.encode())
        )
        client.hset(keys.workflow_key(workflow), found, value)

    return garble


def due(client: Any, workflow: str) -> None:
    client.hset(keys.workflow_key(workflow), "d:iteration", b"soon")
    client.zadd(KEYS.due, {workflow: 0})


def claimed_by_an_unknown_owner(client: Any, workflow: str) -> None:
    ticket = next(name[2:] for name in client.hkeys(keys.workflow_key(workflow)) if name.startswith(b"t:"))
    client.zadd(KEYS.leases, {ticket: 0})
    client.hset(KEYS.owners, ticket, b"\xff nobody")
    client.hset(keys.workflow_key(workflow), b"s:" + ticket, b"c\nx\n")


DAMAGES: Final[dict[str, Callable[[Any, str], object]]] = {
    "no state": lambda client, workflow: client.delete(keys.workflow_key(workflow)),
    "a state of another kind": as_string,
    "no history": lambda client, workflow: client.delete(keys.history_key(workflow)),
    "a history of another kind": lambda client, workflow: client.set(keys.history_key(workflow), b"x"),
    "a garbled snapshot": field("snapshot", b"garbled"),
    "a snapshot of nothing": field("snapshot", pack(b"{}", NOTHING)),
    "a nested snapshot": field("snapshot", pack(b'{"a":' + b"[" * 100_000, NOTHING)),
    "a version that is none": field("version", b"many"),
    "a ticket that is none": field("t:", b"{}"),
    "a ticket for nobody": field("t:", b'{"id":"x","queue":"q|","priority":"z"}'),
    "a ticket in no state": field("s:", b"?"),
    "a due time that is none": due,
    "a claim by nobody": claimed_by_an_unknown_owner,
}


@pytest.fixture
def deployment(redis_url: str, tmp_path: Path) -> Iterator[Deployment]:
    made = Deployment(fresh_database(redis_url), tmp_path)
    try:
        yield made
    finally:
        made.end()


def issues() -> Iterator[int]:
    """Those whose workflows share a shard."""
    return (issue for issue in count(101) if keys.shard_of(f"{PROJECT}-{issue}-1") == SHARD)


@pytest.mark.proves("B17", "R7", "S30")
def test_workers_report_a_damaged_workflow_once_and_continue_with_the_others(deployment: Deployment) -> None:
    chosen = issues()
    damaged = [deployment.begin("2 1 0", issue=next(chosen)).workflow for _ in DAMAGES]
    with redis.Redis.from_url(deployment.url) as client:
        for workflow, damage in zip(damaged, DAMAGES.values(), strict=True):
            damage(client, workflow)
        for name in (KEYS.pending, KEYS.leases, KEYS.due, KEYS.delayed):
            client.zadd(name, {b"\xff": 0, b"|": 0, b".": 0})
        client.hset(KEYS.owners, b"\xff", b"\xff")
    hinted = deployment.begin("2 1 0", issue=next(chosen)).workflow
    unheard = deployment.begin("1 0", issue=next(chosen), hinted=False).workflow

    deployment.start()
    deployment.finished(hinted, unheard)

    told = deployment.log()
    assert "Traceback" not in told
    assert "ended (" not in told
    named = [line for line in told.splitlines() if " is damaged: " in line]
    assert named
    assert len(named) == len({(line.split()[2], line.split(" WARNING ")[-1]) for line in named})
    assert deployment.story(hinted)
