"""The memory of Redis that a workflow waiting for a fix takes, with the configuration we ship."""

from typing import Any

import pytest
import redis

from bench.stage import ROOT, redis_server
from bench.waiting import WaitingWorkflows, workflow_of
from fixloop.engine.replay import audit
from fixloop.servers.keeper import Assignment, _arguments
from fixloop.store.keys import workflow_key

pytestmark = pytest.mark.slow
BEFORE, WORKFLOWS = 50, 100


def test_a_waiting_workflow_takes_little_more_than_its_failure() -> None:
    with redis_server() as url:
        client: Any = redis.Redis.from_url(url)
        waiting = WaitingWorkflows(url)
        for number in range(BEFORE):
            waiting.make(number)
        before = client.info("memory")["used_memory"]
        for number in range(BEFORE, BEFORE + WORKFLOWS):
            waiting.make(number)
        used = client.info("memory")["used_memory"] - before
        encoding = client.object("encoding", workflow_key(workflow_of(BEFORE)))
        found = audit(waiting.store, workflow_of(BEFORE))
        client.close()

    # Tables that double now and then count here; `python -m bench.waiting` has the figure.
    assert used / WORKFLOWS < 3000
    assert encoding in (b"ziplist", b"listpack")
    assert (found.problems, found.replayed) == ((), 3)


def test_the_embedded_server_keeps_a_workflow_in_one_piece_too() -> None:
    lines = (ROOT / "config" / "redis.conf").read_text("utf-8").splitlines()
    shipped = [line.split() for line in lines if line.startswith("hash-max-ziplist")]
    told = _arguments(Assignment(server="redis-server", data="/data", socket="/socket"))

    assert len(shipped) == 2
    assert all(told[told.index(f"--{name}") + 1] == value for name, value in shipped)
