"""What commands say of a damaged workflow, and how its issue starts again."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import redis

from fixloop.commands.doctor import examine
from fixloop.errors import ExitCode
from fixloop.servers.settings import Settings
from fixloop.store import keys
from tests.fixtures.command_stage import PROJECT, Agents, Said, on_redis, said
from tests.integration.test_commands_enqueue import profiles as checkout  # noqa: F401  a fixture

pytestmark = pytest.mark.slow

agents = pytest.fixture(on_redis)
Capsys = pytest.CaptureFixture[str]


@pytest.fixture
def client(redis_url: str) -> Any:
    with redis.Redis.from_url(redis_url) as found:
        yield found


def damaged(client: Any, workflow: str) -> str:
    """Its state has the wrong type."""
    client.set(keys.workflow_key(workflow), b"garbled")
    return f"fixloop:{{{keys.shard_of(workflow):02}}}:workflow:{workflow} is a string and has to be a hash"


@pytest.mark.parametrize("words", [("status",), ("log",), ("report",), ("cancel",), ("pause",), ("watch",)])
def test_a_command_on_a_damaged_workflow_says_what_is_wrong_and_what_to_do(
    agents: Agents, client: Any, capsys: Capsys, words: tuple[str, ...]
) -> None:
    workflow = agents.start()
    why = damaged(client, workflow)

    told = said(capsys, *words, workflow)

    remedy = f"`fixloop repair {workflow}` sets it aside"
    assert told == Said(ExitCode.WRONG, "", f"fixloop: workflow {workflow} is damaged: {why}; {remedy}\n")


@pytest.mark.parametrize("words", [("status",), ("inbox",)])
def test_lists_name_a_damaged_workflow_and_continue(
    agents: Agents, client: Any, capsys: Capsys, words: tuple[str, ...]
) -> None:
    workflow, other = agents.start(47), agents.start(48, script="3", fixer="outside")
    agents.run(other)
    damaged(client, workflow)

    told = said(capsys, *words)

    assert told.code == ExitCode.DONE
    assert "#48" in told.out
    assert f"fixloop: workflow {workflow} is damaged: " in told.err


def test_doctor_counts_damaged_workflows(agents: Agents, client: Any, redis_url: str, tmp_path: Path) -> None:
    settings = Settings(state_url=redis_url, cache_dir=tmp_path / "cache")
    workflow, _ = agents.start(47), agents.start(48)
    (well,) = (finding for finding in examine(settings, tmp_path) if finding.name == "workflows")
    damaged(client, workflow)

    (wrong,) = (finding for finding in examine(settings, tmp_path) if finding.name == "workflows")

    assert (well.ok, well.detail) == (True, "2 stored")
    assert (wrong.ok, wrong.detail) == (False, f"1 of 2 cannot be used: {workflow}")
    assert f"`fixloop repair {workflow}`" in wrong.remedy


def test_an_undamaged_workflow_is_not_set_aside(agents: Agents, capsys: Capsys, tmp_path: Path) -> None:
    workflow = agents.start()

    told = said(capsys, "repair", workflow)

    assert (told.code, told.out) == (ExitCode.USAGE, "")
    assert f"workflow {workflow} is not damaged" in told.err
    assert agents.store.live(PROJECT, 47) == workflow
    assert not (tmp_path / ".fixloop").exists()


def test_a_workflow_set_aside_can_be_restored_from_its_file(
    agents: Agents, client: Any, capsys: Capsys
) -> None:
    workflow = agents.start()
    agents.run(workflow)
    client.rpop(keys.history_key(workflow))
    state, history = keys.workflow_key(workflow), keys.history_key(workflow)
    before = client.hgetall(state), client.lrange(history, 0, -1)

    first = said(capsys, "repair", "47", "--project", PROJECT)
    kept = json.loads(Path(first.out.strip()).read_text())
    gone = client.exists(state, history)
    for name, data in kept["keys"].items():
        client.restore(name, 0, base64.b64decode(data))

    assert (first.code, gone) == (ExitCode.DONE, 0)
    assert (kept["workflow"], kept["problems"]) == (workflow, ["entry 8 is missing"])
    assert (client.hgetall(state), client.lrange(history, 0, -1)) == before
    second = said(capsys, "repair", workflow)
    assert Path(second.out.strip()).name == f"{workflow}.2.json"


def test_a_workflow_that_was_set_aside_is_reported_as_such(
    agents: Agents, client: Any, capsys: Capsys
) -> None:
    workflow = agents.start()
    damaged(client, workflow)
    said(capsys, "repair", workflow)

    told = said(capsys, "status", workflow)

    assert told.code == ExitCode.USAGE
    assert f"workflow {workflow} was set aside on " in told.err


@pytest.mark.usefixtures("checkout")
def test_an_issue_starts_again_once_its_damaged_workflow_is_set_aside(client: Any, capsys: Capsys) -> None:
    words = ("enqueue", "--issue", "7", "--profile", "cycle", "--task", "Log in.")
    first = said(capsys, *words).out.strip()
    why = damaged(client, first)

    refused = said(capsys, *words)
    other = said(capsys, *words[:2], "8", *words[3:])
    mended = said(capsys, "repair", first)
    second = said(capsys, *words)

    assert (refused.code, f"workflow {first} is damaged: {why}" in refused.err) == (ExitCode.WRONG, True)
    assert (other.code, mended.code, second.code) == (ExitCode.DONE,) * 3
    assert second.out.strip() == f"{first[:-1]}2"
    assert said(capsys, "audit", "verify").code == ExitCode.DONE
