"""A workflow that works for another, at the command line: it has the other's issue, and is named by its id."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fixloop.engine.bridging import child_of
from tests.fixtures.command_stage import PROJECT, Agents, on_redis, said

pytestmark = pytest.mark.slow

PARENT = f"{PROJECT}-47-1.vas.1.1"
CHILD = child_of(PARENT)


@pytest.fixture
def agents(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agents]:
    yield from on_redis(redis_url, tmp_path, monkeypatch)


def waiting(agents: Agents) -> None:
    """The parent workflow, and a child that waits for a person."""
    agents.start(47)
    agents.start(workflow=CHILD, script="a; fix: blocked", name="a; fix: blocked", parent=PARENT)
    agents.run(CHILD)


def test_a_child_s_question_is_in_the_inbox_and_answered_by_its_id(agents: Agents, capsys: Any) -> None:
    waiting(agents)

    items = json.loads(said(capsys, "inbox", "--json").out)["items"]
    [item] = [item for item in items if item["workflow_id"] == CHILD]

    assert f"fixloop decide {CHILD} skip" in item["commands"]
    assert said(capsys, "decide", CHILD, "skip").code == 0
    assert agents.engine.state(CHILD).paused is False


def test_an_issue_means_the_parent_workflow_from_any_directory(agents: Agents, capsys: Any) -> None:
    waiting(agents)

    # The current directory is a project without an issue 47.
    told = json.loads(said(capsys, "status", "47", "--json").out)

    assert told["workflow_id"] == f"{PROJECT}-47-1"
