"""`fixloop mcp` as agents use it: a real process, called by the SDK's own client with both handshakes."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from tests.fixtures.command_stage import PROJECT
from tests.fixtures.serve_stage import Stage, on_redis

pytestmark = pytest.mark.slow

stage = pytest.fixture(on_redis)
TOOLS = ["check", "claim_work", "decline", "get_failure", "heartbeat", "status", "submit_fix"]
MOST_TOKENS = 2500
ERAS = ["legacy", "2026-07-28"]


def asked(stage: Stage, mode: str, act: Callable[[Client], Coroutine[Any, Any, Any]]) -> Any:
    """The result of `act` with a client of `fixloop mcp` in this directory."""

    async def talk() -> Any:
        words = ["-P", "-m", "fixloop.cli", "mcp", "--agent", "coder"]
        told = StdioServerParameters(
            command=sys.executable, args=words, env=dict(os.environ), cwd=str(Path.cwd())
        )
        async with Client(told, mode=mode, read_timeout_seconds=60) as client:
            return await act(client)

    return asyncio.run(talk())


async def called(client: Client, name: str, **given: Any) -> dict[str, Any]:
    answer = await client.call_tool(name, given)
    assert not answer.is_error, answer
    found: dict[str, Any] = answer.structured_content or {}
    inner: dict[str, Any] = found.get("result", found)
    return inner


@pytest.fixture
def own_project(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> str:
    """A workflow of this directory's project that waits for a fix from outside."""
    workflow = f"{stage.session.project.hash8}-47-1"
    stage.agents.start(47, script="1 0", fixer="outside", workflow=workflow)
    stage.agents.run(workflow)
    return workflow


@pytest.mark.parametrize("mode", ERAS)
def test_work_is_claimed_read_and_declined(stage: Stage, own_project: str, mode: str) -> None:
    async def act(client: Client) -> list[dict[str, Any]]:
        claim = await called(client, "claim_work", wait_seconds=5)
        mine = {"claim": claim["claim"], "fence": claim["fence"]}
        failure = await called(client, "get_failure", claim=claim["claim"], number="F1")
        beat = await called(client, "heartbeat", **mine)
        stale = await called(client, "heartbeat", claim=claim["claim"], fence=claim["fence"] + 7)
        patch = await called(client, "submit_fix", **mine, patch=" ")
        done = await called(client, "decline", **mine, kind="blocked", text="there is no database")
        none = await called(client, "claim_work", wait_seconds=0)
        return [claim, failure, beat, stale, patch, done, none, await called(client, "status")]

    told = asked(stage, mode, act)

    assert [each["status"] for each in told] == [
        "claimed",
        "found",
        "held",
        "too_late",
        "unchanged",
        "accepted",
        "none",
        "found",
    ]
    assert all(each["next"] for each in told)
    assert told[0]["workflow_id"] == own_project
    assert stage.agents.engine.state(own_project).escalation is not None


def test_an_agent_s_words_are_limited_as_over_http(stage: Stage, own_project: str) -> None:
    async def act(client: Client) -> list[bool]:
        claim = await called(client, "claim_work", wait_seconds=5)
        mine = {"claim": claim["claim"], "fence": claim["fence"]}
        calls: list[tuple[str, dict[str, Any]]] = [
            ("decline", {**mine, "kind": "blocked", "text": "x" * 5001}),
            ("submit_fix", {**mine, "patch": " ", "summary": "x" * 5001}),
            ("get_failure", {"claim": claim["claim"], "number": "9" * 5000}),
            ("heartbeat", {"claim": claim["claim"], "fence": 2**60}),
        ]
        return [(await client.call_tool(name, given)).is_error for name, given in calls]

    assert asked(stage, "legacy", act) == [True] * 4
    assert stage.agents.engine.state(own_project).escalation is None


@pytest.mark.parametrize("mode", ERAS)
def test_there_are_seven_short_tools_and_none_decides(stage: Stage, mode: str) -> None:
    async def act(client: Client) -> list[Any]:
        return [tool.model_dump(mode="json", exclude_none=True) for tool in (await client.list_tools()).tools]

    tools = asked(stage, mode, act)

    assert sorted(tool["name"] for tool in tools) == TOOLS
    # Four characters are about a token.
    assert len(json.dumps(tools)) / 4 <= MOST_TOKENS


def test_a_check_covers_this_directory_and_nothing_above(stage: Stage) -> None:
    (Path.cwd() / "fixloop.toml").write_text('base = "none"\n[specialist.test-runner]\ncommand = "true"\n')

    async def act(client: Client) -> list[dict[str, Any]]:
        return [await called(client, "check"), await called(client, "check", path="../..")]

    here, above = asked(stage, "legacy", act)

    assert here["status"] == "passed", here
    assert above["status"] == "refused"


def test_a_check_takes_no_module_of_the_checkout_for_one_of_its_own(stage: Stage) -> None:
    (Path.cwd() / "fixloop.toml").write_text('base = "none"\n[specialist.test-runner]\ncommand = "true"\n')
    (Path.cwd() / "typer.py").write_text("open('ran', 'w')\nraise SystemExit(0)\n")

    async def act(client: Client) -> dict[str, Any]:
        return await called(client, "check")

    told = asked(stage, "legacy", act)

    assert told["status"] == "passed"
    assert told["text"]
    assert not (Path.cwd() / "ran").exists()


def test_work_of_other_projects_is_not_given_out(stage: Stage) -> None:
    stage.agents.start(47, script="1 0", fixer="outside")
    stage.agents.run(f"{PROJECT}-47-1")

    async def act(client: Client) -> dict[str, Any]:
        return await called(client, "claim_work", wait_seconds=0)

    assert asked(stage, "legacy", act)["status"] == "none"
