"""`/mcp` of a real server, asked by the SDK's own client in both eras of the protocol."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from fixloop.serve.access import scopes_of
from fixloop.serve.tokens import Tokens
from fixloop.store.connection import Connection
from tests.fixtures.command_stage import PROJECT, Agents, empty_store
from tests.fixtures.serve_process import Server, serving
from tests.integration.test_mcp import ERAS, called

pytestmark = pytest.mark.slow

TOOLS = ["claim_work", "decline", "get_failure", "heartbeat", "status", "submit_fix"]
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


class World:
    """A server, and agents with tokens."""

    def __init__(self, served: Server, agents: Agents, tokens: Tokens) -> None:
        self.served, self.agents, self._tokens = served, agents, tokens

    def token(self, agent: str = "coder", projects: tuple[str, ...] = (), role: str = "agent") -> str:
        scopes = scopes_of(role, agent if role == "agent" else "")
        return self._tokens.create(agent, scopes, projects, days=1)

    def asked(self, token: str, mode: str, act: Callable[[Client], Coroutine[Any, Any, Any]]) -> Any:
        async def talk() -> Any:
            headers = {"Authorization": f"Bearer {token}"}
            async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
                transport = streamable_http_client(f"{self.served.url}/mcp", http_client=http)
                async with Client(transport, mode=mode, read_timeout_seconds=60) as client:
                    return await act(client)

        return asyncio.run(talk())

    def waiting(self, issue: int, **more: Any) -> str:
        """A workflow that waits for a fix from outside."""
        workflow = self.agents.start(issue, script="1 0", fixer="outside", **more)
        self.agents.run(workflow)
        return workflow


@pytest.fixture
def world(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with (
        empty_store(redis_url, tmp_path, monkeypatch) as store,
        closing(Connection(redis_url)) as connection,
        serving(redis_url, tmp_path) as served,
    ):
        yield World(served, Agents(store), Tokens(connection))


@pytest.mark.parametrize("mode", ERAS)
def test_work_is_claimed_and_declined_from_elsewhere(world: World, mode: str) -> None:
    workflow = world.waiting(47)

    async def act(client: Client) -> Any:
        names = sorted(tool.name for tool in (await client.list_tools()).tools)
        claim = await called(client, "claim_work", wait_seconds=5)
        mine = {"claim": claim["claim"], "fence": claim["fence"]}
        failure = await called(client, "get_failure", claim=claim["claim"], number="F1")
        beat = await called(client, "heartbeat", **mine)
        done = await called(client, "decline", **mine, kind="blocked", text="there is no database")
        return names, [claim, failure, beat, done, await called(client, "status")]

    names, told = world.asked(world.token(), mode, act)

    assert names == TOOLS
    assert [each["status"] for each in told] == ["claimed", "found", "held", "accepted", "found"]
    assert world.agents.engine.state(workflow).escalation is not None


@pytest.mark.parametrize("mode", ERAS)
def test_each_request_is_its_own_token_s(world: World, mode: str) -> None:
    workflows = [world.waiting(issue, agent=agent) for issue, agent in ((47, "ann"), (48, "ben"))]
    others = world.waiting(49)

    async def both() -> Any:
        async def claim(agent: str) -> Any:
            headers = {"Authorization": f"Bearer {tokens[agent]}"}
            async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
                transport = streamable_http_client(f"{world.served.url}/mcp", http_client=http)
                async with Client(transport, mode=mode) as client:
                    return [await called(client, "claim_work", wait_seconds=1) for _ in range(5)]

        return await asyncio.gather(*(claim(agent) for agent in tokens))

    tokens = {agent: world.token(agent) for agent in ("ann", "ben")}
    anns, bens = asyncio.run(both())

    assert {each["workflow_id"] for each in anns} <= {workflows[0], others}
    assert {each["workflow_id"] for each in bens} <= {workflows[1], others}
    assert workflows[0] in {each["workflow_id"] for each in anns}
    assert workflows[1] in {each["workflow_id"] for each in bens}


def test_an_agent_of_another_project_finds_nothing_and_a_viewer_claims_nothing(world: World) -> None:
    world.waiting(47)

    async def act(client: Client) -> Any:
        claim = (await client.call_tool("claim_work", {"wait_seconds": 0})).structured_content
        status = (await client.call_tool("status", {})).structured_content
        return claim, status

    elsewhere = world.asked(world.token(projects=("ffffffff",)), "legacy", act)
    viewer = world.asked(world.token(role="viewer"), "legacy", act)

    assert elsewhere[0]["status"] == "none"
    assert elsewhere[1]["workflows"] == []
    assert viewer[0]["status"] == "error"
    assert "takes no work" in viewer[0]["reasons"][0]
    assert [each["workflow_id"] for each in viewer[1]["workflows"]] == [f"{PROJECT}-47-1"]


def test_only_a_token_authenticates_an_mcp_client(world: World) -> None:
    with httpx.Client(base_url=world.served.url, timeout=60) as client:
        headers = {"Accept": "application/json, text/event-stream"}
        sign_in = client.get("/sign-in")
        code = world.served.sign_in.split("code=")[1]
        form = {"code": code, "csrf": sign_in.cookies["fixloop_form"]}
        assert client.post("/sign-in", data=form).status_code == 303
        assert "fixloop_session" in client.cookies

        by_cookie = client.post("/mcp", json=HELLO, headers=headers)
        by_nonsense = client.post("/mcp", json=HELLO, headers={**headers, "Authorization": "Bearer fl_x"})
        by_token = client.post(
            "/mcp", json=HELLO, headers={**headers, "Authorization": f"Bearer {world.token()}"}
        )
        elsewhere = client.post(
            "/mcp",
            json=HELLO,
            headers={**headers, "Authorization": f"Bearer {world.token()}", "Host": "evil.example"},
        )

    assert (by_cookie.status_code, by_nonsense.status_code) == (401, 401)
    assert by_cookie.headers["WWW-Authenticate"] == "Bearer"
    assert by_cookie.json()["type"] == "/problems/not-signed-in"
    assert by_token.json()["result"]["serverInfo"]["name"] == "fixloop"
    assert elsewhere.status_code == 400
