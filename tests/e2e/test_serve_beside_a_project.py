"""`fixloop serve` in a project's own folder, with an embedded Redis: an agent without a shell checks the checkout."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.fixtures.project import RIGHT, Project
from tests.integration.test_mcp import TOOLS, called

pytestmark = pytest.mark.slow


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    return Project(tmp_path / "shop")


@pytest.fixture
def url(shop: Project) -> Iterator[str]:
    with shop.start("serve", "--port", "0", "-c", "0") as process:
        assert process.stderr is not None
        found = re.search(r"http://127\.0\.0\.1:\d+", process.stderr.readline())
        assert found is not None
        yield found[0]
        process.terminate()
        process.communicate(timeout=60)


def test_an_agent_checks_the_checkout_over_http(shop: Project, url: str) -> None:
    agent = ("token", "create", "coder", "--role", "agent", "--agent", "coder")
    mine = shop.fixloop(*agent).out.strip()
    elsewhere = shop.fixloop(*agent, "--project", "ffffffff").out.strip()

    tools, wrong = asyncio.run(talk(url, mine, "."))
    shop.write("calc.py", RIGHT)
    _, right = asyncio.run(talk(url, mine, "."))
    _, outside = asyncio.run(talk(url, mine, ".."))
    _, refused = asyncio.run(talk(url, elsewhere, "."))

    assert sorted(tools) == TOOLS
    assert (wrong["status"], right["status"]) == ("failed", "passed")
    assert "1 + 2 is not 3" in wrong["text"]
    assert outside["status"] == "refused"
    assert "has no work in project" in refused["reasons"][0]


async def talk(url: str, token: str, path: str) -> tuple[list[str], dict[str, Any]]:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(transport, read_timeout_seconds=60) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            return names, await called(client, "check", path=path)
