"""A server is killed while it sends events: another continues, and no event is missing or out of order.

Each piece that passes between it and Redis meanwhile is a place to die. A sixtieth of them in `make test`, all with
CRASH_ALL=1.
"""

import os
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fixloop.serve.published import published
from fixloop.store.connection import Connection
from fixloop.store.locks import TURN_SECONDS
from fixloop.store.webhooks import Webhooks
from tests.fixtures.command_stage import Agents, empty_store
from tests.fixtures.patience import slack
from tests.fixtures.serve_process import Relay, serving
from tests.fixtures.webhook_receiver import receiving

pytestmark = pytest.mark.slow

EACH = 1 if os.environ.get("CRASH_ALL") else 60
WORKFLOWS = 2
LISTED = ("--webhook-target", "127.0.0.1")


def test_every_event_arrives_while_servers_are_being_killed(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        empty_store(redis_url, tmp_path, monkeypatch) as store,
        closing(Connection(redis_url)) as connection,
        closing(Relay(redis_url, tmp_path)) as relay,
        receiving() as receiver,
    ):
        agents, webhooks = Agents(store), Webhooks(connection)
        endpoint = webhooks.add("out", receiver.url)
        receiver.secret = endpoint.secrets[0][0]
        expected, place, kills = 0, 1, 0
        while True:
            for number in range(WORKFLOWS):
                expected += play(agents, 100 * place + number)
            with serving(relay.url, tmp_path, *LISTED) as server:
                relay.arm(server, place)
                is_through = told(receiver, expected, server.process)
                passed = relay.passed
            # A dead server's turn would have to run out first.
            webhooks.turns.end(endpoint.id)
            relay.arm(None)
            if is_through and passed < place:
                break
            kills += not is_through
            place += EACH
        with serving(redis_url, tmp_path, *LISTED) as server:
            assert told(receiver, expected, server.process)

        by_workflow: dict[str, list[str]] = {}
        for event in receiver.taken:
            ids = by_workflow.setdefault(event["subject"], [])
            if event["id"] not in ids:
                ids.append(event["id"])
        assert kills >= 2
        for workflow, fields in store.workflows():
            entries = store.history(workflow)
            right = [each.id for entry in entries for each in published(workflow, fields, entry)]
            assert by_workflow[workflow] == right, "all of it, in its order"


def play(agents: Agents, issue: int) -> int:
    """A workflow up to its escalation; returns how many events it tells of."""
    workflow = agents.start(issue, script="1 1 1")
    agents.run(workflow)
    entries = agents.store.history(workflow)
    return sum(1 for entry in entries for _ in published(workflow, {}, entry))


def told(receiver: Any, count: int, process: Any) -> bool:
    """Whether so many events have arrived before the server died."""
    give_up = time.monotonic() + slack(40)
    while len({each["id"] for each in receiver.taken}) < count:
        if process.poll() is not None:
            return False
        assert time.monotonic() < give_up, f"{len(receiver.taken)} of {count}"
        time.sleep(0.02)
    return True


@pytest.mark.skipif(
    not os.environ.get("CRASH_ALL"), reason="it waits for a turn to run out; CRASH_ALL=1 runs it"
)
def test_another_server_soon_takes_over_from_a_dead_one(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        empty_store(redis_url, tmp_path, monkeypatch) as store,
        closing(Connection(redis_url)) as connection,
        receiving() as receiver,
    ):
        agents, webhooks = Agents(store), Webhooks(connection)
        receiver.secret = webhooks.add("out", receiver.url).secrets[0][0]
        with serving(redis_url, tmp_path, *LISTED) as first, serving(redis_url, tmp_path, *LISTED) as second:
            count = play(agents, 1)
            assert told(receiver, count, first.process)
            first.kill()
            count += play(agents, 2)
            began = time.monotonic()
            assert told(receiver, count, second.process)

        assert time.monotonic() - began < TURN_SECONDS + slack(10)
        assert len(receiver.taken) == count, "each once: marks are read anew with the turn"
