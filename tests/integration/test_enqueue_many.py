"""Many features submitted by one call, on real repositories and a real Redis."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

import fixloop
from fixloop.errors import ExitCode
from fixloop.store.redis_store import RedisStore
from tests.fixtures.command_stage import said
from tests.fixtures.redis_server import RedisServer
from tests.fixtures.repositories import make_repository, write

pytestmark = pytest.mark.slow

Capsys = pytest.CaptureFixture[str]
CHECKS = '[specialist.test-runner]\ncommand = "true"\n'


@pytest.fixture
def store(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RedisStore]:
    """An empty Redis; the current directory is a checkout, next to another."""
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    for name in ("shop", "bank"):
        make_repository(tmp_path / name, {"fixloop.toml": CHECKS, "calc.py": ""})
    monkeypatch.chdir(tmp_path / "shop")
    monkeypatch.setenv("FIXLOOP_STATE_URL", redis_url)
    monkeypatch.setenv("FIXLOOP_CACHE_DIR", str(tmp_path / "cache"))
    store = RedisStore(redis_url)
    yield store
    store.close()


def lines(path: Path, *features: Any) -> str:
    path.write_text("".join(f"{json.dumps(feature)}\n" for feature in features))
    return str(path)


def git(folder: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_each_line_is_one_workflow_and_a_repeated_file_creates_no_more(
    store: RedisStore, tmp_path: Path, capsys: Capsys
) -> None:
    file = lines(
        tmp_path / "many", {"issue": 7, "name": "login"}, {"issue": 8}, {"repo": str(tmp_path / "bank")}
    )

    first, again = said(capsys, "enqueue", "--from", file), said(capsys, "enqueue", "--from", file)

    workflows = first.out.split()
    assert (first.code, len(workflows)) == (ExitCode.DONE, 3)
    assert [store.live(name.partition("-")[0], int(name.split("-")[1])) for name in workflows] == workflows
    assert dict(store.workflows(live_only=True))[workflows[0]]["name"] == "login"
    # The last line has no issue: each time it is another feature.
    assert again.out.split()[:2] == workflows[:2]
    assert "1 submitted, 2 already submitted, 0 refused" in again.err
    for name in workflows[:2]:
        kept = git(tmp_path / "shop", "rev-parse", f"refs/fixloop/{name.split('-')[1]}/base")
        assert kept in store.history(name)[0].body["event"]["tip"]
        assert store.verify(name) == []


def test_an_unusable_line_is_reported_and_the_others_are_submitted(
    store: RedisStore, tmp_path: Path, capsys: Capsys
) -> None:
    file = tmp_path / "many"
    wrong = ['{"issue": 0}', "nonsense", '{"issue": 5, "colour": 1}', "[1]", '{"issue": 6, "ref": "no-such"}']
    file.write_text("\n".join(['{"issue": 1}', *wrong, '{"issue": 2}']))

    told = said(capsys, "enqueue", "--from", str(file))

    assert (told.code, len(told.out.split())) == (ExitCode.USAGE, 2)
    for number, said_of in enumerate(
        ("no issue number", "not valid JSON", "'colour'", "must be an object", "no branch, tag or commit"), 2
    ):
        [line] = [each for each in told.err.splitlines() if f"line {number}" in each]
        assert said_of in line
    assert "2 submitted, 0 already submitted, 5 refused" in told.err


def test_an_issue_live_on_another_tree_is_refused_and_keeps_its_base(
    store: RedisStore, tmp_path: Path, capsys: Capsys
) -> None:
    file = lines(tmp_path / "many", {"issue": 1})
    said(capsys, "enqueue", "--from", file)
    kept = git(tmp_path / "shop", "rev-parse", "refs/fixloop/1/base")
    write(tmp_path / "shop", {"calc.py": "changed = True\n"})

    refused = said(capsys, "enqueue", "--from", file)
    lines(tmp_path / "many", {"issue": 1, "restart": True})
    restarted = said(capsys, "enqueue", "--from", file)

    assert (refused.code, restarted.code) == (ExitCode.USAGE, ExitCode.DONE)
    assert "live on another tree" in refused.err
    assert restarted.out.strip().endswith("-1-2")
    assert git(tmp_path / "shop", "rev-parse", "refs/fixloop/1/base") != kept


def test_options_are_defaults_for_the_lines(store: RedisStore, tmp_path: Path, capsys: Capsys) -> None:
    file = lines(tmp_path / "many", {"issue": 1}, {"issue": 2, "name": "own"})

    told = said(capsys, "enqueue", "--from", file, "--name", "usual")
    both = said(capsys, "enqueue", "--from", file, "--issue", "3")
    neither = said(capsys, "enqueue")

    names = dict(store.workflows(live_only=True))
    assert [names[workflow]["name"] for workflow in told.out.split()] == ["usual", "own"]
    assert (both.code, neither.code) == (ExitCode.USAGE, ExitCode.USAGE)


def test_the_python_api_yields_each_workflow_and_sends_hints_together(
    store: RedisStore, redis_url: str, tmp_path: Path
) -> None:
    features = ({"issue": number} for number in range(1, 1202))

    told = list(fixloop.enqueue_many(features, directory=tmp_path / "shop"))

    assert [each.issue for each in told] == list(range(1, 1202))
    assert all(each.created and not each.error for each in told)
    with redis.Redis.from_url(redis_url) as client:
        waiting = sum(client.llen(key) for key in client.scan_iter("fixloop.test-runner*"))
    assert waiting == 1201


def test_an_issue_that_is_named_twice_is_one_workflow(
    store: RedisStore, tmp_path: Path, capsys: Capsys
) -> None:
    file = lines(tmp_path / "many", {"issue": 1, "name": "first"}, {"issue": 1}, {"issue": 2})

    told = said(capsys, "enqueue", "--from", file)

    first, again, other = told.out.split()
    assert (told.code, first == again, first == other) == (ExitCode.DONE, True, False)
    assert "2 submitted, 1 already submitted, 0 refused" in told.err
    assert dict(store.workflows())[first]["name"] == "first"


def test_an_unwritable_repository_fails_only_its_own_lines(
    store: RedisStore, tmp_path: Path, capsys: Capsys
) -> None:
    refs = tmp_path / "bank" / ".git" / "refs"
    (refs / "fixloop").write_text("in the way of a folder")
    file = lines(tmp_path / "many", {"issue": 1, "repo": str(tmp_path / "bank")}, {"issue": 2})

    told = said(capsys, "enqueue", "--from", file)

    assert (told.code, len(told.out.split())) == (ExitCode.USAGE, 1)
    assert "line 1, issue 1: cannot write refs/fixloop" in told.err
    assert "1 submitted, 0 already submitted, 1 refused" in told.err


def test_an_option_of_another_profile_is_refused_and_not_ignored(
    store: RedisStore, tmp_path: Path, capsys: Capsys
) -> None:
    file = lines(tmp_path / "many", {"issue": 1, "task": "a login"})

    told = said(capsys, "enqueue", "--from", file)

    assert told.code == ExitCode.USAGE
    assert "line 1: 'task' goes with profile cycle or handoff, not with validation" in told.err


def test_features_without_a_repository_use_the_directory(
    store: RedisStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    [told] = fixloop.enqueue_many([{"issue": 1}], directory="bank")

    assert store.history(told.workflow)[0].body["event"]["project"] == str(tmp_path / "bank")


def test_a_broker_that_fails_meanwhile_loses_only_hints(
    store: RedisStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = RedisServer().start()
    try:
        monkeypatch.setenv("FIXLOOP_BROKER_URL", broker.url)
        found = fixloop.enqueue_many({"issue": number} for number in range(1, 1602))
        told = [next(found)]
        broker.signal(signal.SIGKILL)
        told += found
    finally:
        broker.end()

    assert [each.error for each in told] == [""] * 1601
    assert all(store.live(each.workflow.partition("-")[0], each.issue) for each in told)


def test_a_redirected_stdout_gets_the_workflows_and_the_terminal_the_count(
    store: RedisStore, tmp_path: Path
) -> None:
    file, out = lines(tmp_path / "many", {"issue": 1}, {"issue": 2}), tmp_path / "out"
    terminal, errors = pty.openpty()
    with out.open("wb") as stdout:
        command = [str(Path(sys.executable).with_name("fixloop")), "enqueue", "--from", file]
        environment = os.environ | {"TERM": "xterm"}
        done = subprocess.run(command, stdout=stdout, stderr=errors, env=environment, check=False)
    os.close(errors)
    os.close(terminal)

    assert done.returncode == ExitCode.DONE
    assert len(out.read_text().split()) == 2
