"""`fixloop serve` is killed between a request and its answer: the same key gets the first answer from another server.

Each piece that passes between it and Redis while it decides is a place to die, before or after what the piece does.
A third of them in `make test`, all with CRASH_ALL=1.
"""

import os
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from fixloop.store.redis_store import RedisStore
from tests.fixtures.command_stage import Agents, empty_store
from tests.fixtures.serve_process import Relay, Server, client_of, serving

pytestmark = pytest.mark.slow

SAID = ("workflow_id", "decision", "by", "version")
EACH = 1 if os.environ.get("CRASH_ALL") else 3


def sent(client: httpx.Client, workflow: str, escalation: str, version: int, key: str) -> Any:
    return client.post(
        f"/v1/workflows/{workflow}/decisions",
        json={"escalation": escalation, "decision": "abort", "reason": "enough"},
        headers={"If-Match": f'"{version}"', "Idempotency-Key": key},
    )


def waiting(agents: Agents, issue: int) -> tuple[str, str, int]:
    """A workflow that waits for a decision: its id, the escalation's, and the version."""
    workflow = agents.start(issue, script="1 1 1")
    state = agents.run(workflow)
    found = agents.store.read(workflow)
    assert state.escalation is not None
    assert found is not None
    return workflow, state.escalation.message_id, found.version


def test_a_repeated_request_gets_the_first_answer_wherever_the_server_died(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with empty_store(redis_url, tmp_path, monkeypatch) as store, closing(Relay(redis_url, tmp_path)) as relay:
        agents = Agents(store)
        with serving(redis_url, tmp_path) as second, client_of(second, redis_url) as spare:
            undisturbed, pieces = measured(agents, relay, tmp_path, redis_url, spare)
            assert pieces > 10

            for number, at in enumerate(range(1, pieces + 1, EACH), start=2):
                workflow, escalation, version = waiting(agents, number)
                with serving(relay.url, tmp_path) as first, like(spare, first) as client:
                    client.get("/v1/inbox")
                    relay.arm(first, at)
                    with suppress(httpx.TransportError):
                        sent(client, workflow, escalation, version, f"key-{at}")
                    relay.arm(None)

                answer = sent(spare, workflow, escalation, version, f"key-{at}")

                assert answer.status_code == 200, (at, answer.text)
                told = {name: answer.json()[name] for name in SAID if name != "workflow_id"}
                assert told == undisturbed, at
                assert decisions(store, workflow) == 1, at


def like(client: httpx.Client, server: Server) -> httpx.Client:
    """The same caller at another server."""
    return httpx.Client(base_url=server.url, headers=client.headers, timeout=30)


def measured(
    agents: Agents, relay: Relay, folder: Path, redis_url: str, known: httpx.Client
) -> tuple[dict[str, Any], int]:
    """What an undisturbed decision is answered with, and how many pieces pass for it."""
    workflow, escalation, version = waiting(agents, 1)
    with serving(relay.url, folder) as server, like(known, server) as client:
        client.get("/v1/inbox")
        relay.arm(None)
        answer = sent(client, workflow, escalation, version, "key-0").json()
        return {name: answer[name] for name in SAID if name != "workflow_id"}, relay.passed


def decisions(store: Any, workflow: str) -> int:
    assert isinstance(store, RedisStore)
    return sum(entry.body["event"]["kind"] == "decision-made" for entry in store.history(workflow))
