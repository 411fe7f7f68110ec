"""`fixloop serve` is killed between a request and its answer: the same key gets the first answer from another server.

Each piece that passes between it and Redis meanwhile is a place to die, before or after what the piece does. A sixth
of them in `make test`, all with CRASH_ALL=1.
"""

import os
import re
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from fixloop.intake.project import project_at
from fixloop.serve.tokens import Link, Tokens
from fixloop.store.connection import Connection
from fixloop.store.contract import Store
from tests.fixtures.command_stage import Agents, empty_store
from tests.fixtures.repositories import make_repository
from tests.fixtures.serve_process import Relay, Server, client_of, serving

pytestmark = pytest.mark.slow

EACH = 1 if os.environ.get("CRASH_ALL") else 6


class Request(NamedTuple):
    """A request that changes one workflow, and its event."""

    workflow: str
    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    event: str

    def send(self, client: httpx.Client, key: str) -> httpx.Response:
        """A link's form has no key: the link is one."""
        if self.path.startswith("/a/"):
            return client.post(self.path, data=self.body, headers=self.headers, follow_redirects=True)
        return client.post(self.path, json=self.body, headers={**self.headers, "Idempotency-Key": key})


class Scene(NamedTuple):
    """The parts of requests."""

    agents: Agents
    client: httpx.Client
    tokens: Tokens
    repository: Path


def decision(scene: Scene, issue: int) -> Request:
    """A workflow that waits for a decision is aborted."""
    workflow = scene.agents.start(issue, script="1 1 1")
    state = scene.agents.run(workflow)
    found = scene.agents.store.read(workflow)
    assert state.escalation is not None
    assert found is not None
    body = {"escalation": state.escalation.message_id, "decision": "abort", "reason": "enough"}
    headers = {"If-Match": f'"{found.version}"'}
    return Request(workflow, f"/v1/workflows/{workflow}/decisions", body, headers, "decision-made")


def by_link(scene: Scene, issue: int) -> Request:
    """The same by the link in a message."""
    asked = decision(scene, issue)
    escalation, version = asked.body["escalation"], int(asked.headers["If-Match"].strip('"'))
    link = scene.tokens.link(Link("anna", asked.workflow, escalation, version, ("abort", "skip")))
    return Request(asked.workflow, f"/a/{link}", asked.body, {"Accept": "text/html"}, asked.event)


def paused(scene: Scene, issue: int) -> Request:
    """A workflow is paused."""
    workflow = scene.agents.start(issue)
    body = {"command": "pause", "reason": "the lab is closed"}
    return Request(workflow, f"/v1/workflows/{workflow}/commands", body, {}, "paused")


def submitted(scene: Scene, issue: int) -> Request:
    """A feature is submitted."""
    workflow = f"{project_at(scene.repository).hash8}-{issue}-1"
    body = {"repo": str(scene.repository), "issue": issue}
    return Request(workflow, "/v1/workflows", body, {}, "workflow-started")


def declined_work(scene: Scene, issue: int) -> Request:
    """A fix that was claimed is declined."""
    workflow = scene.agents.start(issue, script="1 0", fixer="outside")
    scene.agents.run(workflow)
    claim = scene.client.post("/v1/claims?wait_seconds=20").json()
    assert claim["workflow_id"] == workflow, claim
    body = {"fence": claim["fence"], "kind": "blocked", "text": "there is no database"}
    return Request(workflow, f"/v1/claims/{claim['claim']}/decline", body, {}, "blocker-signalled")


@pytest.mark.parametrize("made", [decision, by_link, paused, submitted, declined_work])
def test_a_repeated_request_gets_the_first_answer_wherever_the_server_died(
    made: Callable[[Scene, int], Request], redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = "[specialist.test-runner]\ncommand = 'true'\n"
    repository = make_repository(tmp_path / "shop", {"fixloop.toml": check})
    listed = ("--repository", str(repository))
    with (
        empty_store(redis_url, tmp_path, monkeypatch) as store,
        closing(Relay(redis_url, tmp_path)) as relay,
        serving(redis_url, tmp_path, *listed) as second,
        client_of(second, redis_url) as spare,
        closing(Connection(redis_url)) as connection,
    ):
        scene = Scene(Agents(store), spare, Tokens(connection), repository)
        with serving(relay.url, tmp_path, *listed) as first, like(spare, first) as client:
            undisturbed, pieces = measured(made(scene, 1), relay, client)
        assert undisturbed
        assert pieces > 10

        for number, at in enumerate(range(1, pieces + 1, EACH), start=2):
            request = made(scene, number)
            with serving(relay.url, tmp_path, *listed) as first, like(spare, first) as client:
                client.get("/v1/inbox")
                relay.arm(first, at)
                with suppress(httpx.TransportError):
                    request.send(client, f"key-{at}")
                relay.arm(None)

            answer = request.send(spare, f"key-{at}")

            assert answer.status_code in (200, 201), (at, answer.text)
            assert told(answer) == undisturbed, at
            assert count(store, request) == 1, at


def measured(request: Request, relay: Relay, client: httpx.Client) -> tuple[dict[str, Any], int]:
    """The answer to an undisturbed request, and the number of pieces that pass for it."""
    client.get("/v1/inbox")
    relay.arm(None)
    answer = request.send(client, "key-0")
    assert answer.status_code in (200, 201), answer.text
    return told(answer), relay.passed


def told(answer: httpx.Response) -> dict[str, Any]:
    """The part of an answer that is the same for each workflow; notes come only with the first."""
    if answer.headers["Content-Type"].startswith("text/html"):
        return dict(re.findall("<b>(anna \\(link\\))</b> decided <b>(.*?)</b>", answer.text))
    named = ("decision", "by", "version", "status", "next")
    return {name: value for name, value in answer.json().items() if name in named}


def like(client: httpx.Client, server: Server) -> httpx.Client:
    """The same caller at another server."""
    return httpx.Client(base_url=server.url, headers=client.headers, timeout=90)


def count(store: Store, request: Request) -> int:
    return sum(entry.body["event"]["kind"] == request.event for entry in store.history(request.workflow))
