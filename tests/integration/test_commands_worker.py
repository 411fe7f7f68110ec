"""`worker` and `flower` as real processes: they start, work, and leave nothing behind whatever ends them."""

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
import redis

from fixloop.errors import ExitCode
from fixloop.machine.process_name import role_of
from fixloop.protocol.state import WorkflowOutcome
from fixloop.store.redis_store import RedisStore
from fixloop.testing.processes import comes
from tests.fixtures.command_stage import Agents
from tests.fixtures.ports import free_port

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 90.0


@pytest.fixture
def environment(redis_url: str, tmp_path: Path) -> dict[str, str]:
    """Names an empty Redis, and scripted agents; `MARK` tells the processes of this test."""
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    return os.environ | {
        "FIXLOOP_STATE_URL": redis_url,
        "FIXLOOP_CREW": "fixloop.testing:scripted_crew",
        "FIXLOOP_FLOWER_AUTH": "me:secret",
        "FIXLOOP_CACHE_DIR": str(tmp_path / "cache"),
        "MARK": str(tmp_path),
    }


@contextmanager
def program(environment: dict[str, str], *words: str) -> Iterator["subprocess.Popen[bytes]"]:
    """`fixloop WORDS` in an empty project, in its own process group; killed at the end."""
    with said(environment).open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "fixloop.cli", *words],
            cwd=environment["MARK"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def said(environment: dict[str, str]) -> Path:
    """The stderr of `program`."""
    return Path(environment["MARK"], "stderr")


def running(mark: str) -> list[int]:
    """Processes that carry this test's mark."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"MARK={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def children(environment: dict[str, str], role: str) -> set[int]:
    """The supervised processes of that role, without what they have just forked, which has their name until it is
    another program."""
    return {
        pid for pid in running(environment["MARK"]) if role_of(pid) == role and role_of(parent(pid)) != role
    }


def parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def check(environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "fixloop.cli", "worker", "--check"]
    return subprocess.run(command, cwd=environment["MARK"], env=environment, capture_output=True, text=True)


HELD: Final = (
    r"control has (not begun to serve|said nothing for \d+ s) \(it ended once, at last killed by SIGKILL\)"
)


def test_a_worker_processes_features_reports_its_health_and_exits_cleanly(
    environment: dict[str, str],
) -> None:
    store = RedisStore(environment["FIXLOOP_STATE_URL"])
    agents = Agents(store)
    workflow = agents.start(script="1 0")
    with program(environment, "worker", "-c", "1") as worker:
        assert comes(lambda: agents.engine.state(workflow).ended, 90.0), "the workflow did not end"
        assert comes(lambda: check(environment).returncode == ExitCode.DONE, 90.0), "it is not well"
        killed = children(environment, "control")
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        assert comes(lambda: bool(children(environment, "control") - killed), 90.0), (
            "it was not started again"
        )
        (again,) = children(environment, "control") - killed
        os.kill(again, signal.SIGSTOP)
        # A quick one had sent a heartbeat before it was stopped, and is healthy until that is old.
        checks: list[subprocess.CompletedProcess[str]] = []

        def is_noticed() -> bool:
            checks.append(check(environment))
            print(checks[-1].stderr)
            return re.search(HELD, checks[-1].stderr) is not None

        assert comes(is_noticed, 90.0), "it was not noticed"
        os.kill(again, signal.SIGCONT)
        assert comes(lambda: check(environment).returncode == ExitCode.DONE, 90.0), "it does not serve again"
        worker.send_signal(signal.SIGTERM)
        worker.wait(PATIENCE_SECONDS)

    assert agents.engine.state(workflow).outcome is WorkflowOutcome.SUCCESS
    assert checks[-1].returncode == ExitCode.WRONG
    assert "control ended (killed by SIGKILL)" in said(environment).read_text()
    assert checks[-1].stderr.count("\n") == 1
    assert worker.returncode == ExitCode.DONE
    assert "fixloop enqueue --issue N" in said(environment).read_text()
    assert comes(lambda: running(environment["MARK"]) == [], 90.0), "processes were left behind"
    store.close()


def test_a_killed_worker_takes_everything_it_started_with_it(environment: dict[str, str]) -> None:
    with program(environment, "worker", "-c", "1") as worker:
        assert comes(lambda: len(running(environment["MARK"])) >= 5, 90.0), "it did not start"
        worker.kill()

        assert comes(lambda: running(environment["MARK"]) in ([], [worker.pid]), 90.0), (
            "processes were left behind"
        )


def test_without_a_worker_the_health_check_says_so_and_ends_with_1(environment: dict[str, str]) -> None:
    done = check(environment)

    assert done.returncode == ExitCode.WRONG
    assert "no worker on" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_health_check_without_redis_ends_with_4(environment: dict[str, str]) -> None:
    done = check(environment | {"FIXLOOP_STATE_URL": "redis://localhost:1/0"})

    assert done.returncode == ExitCode.AWAY
    assert done.stderr.count("\n") == 1


def test_flower_starts_where_a_project_has_its_own_config_and_ends_with_its_caller(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "__init__.py").write_text("raise SystemExit('the wrong config')\n")
    port = free_port()
    with program(environment, "flower", "--port", str(port)) as flower:
        assert comes(lambda: status(port) == 401 or flower.poll() is not None, 90.0), "it does not answer"
        assert flower.poll() is None
        flower.kill()
        flower.wait()

        assert comes(lambda: running(environment["MARK"]) == [], 90.0), "Flower was left behind"
    assert f"Flower at http://127.0.0.1:{port}, log in as me" in said(environment).read_text()


def status(port: int) -> int:
    """The status of Flower's page, 0 while there is no answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/tasks", timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return 0


def test_a_worker_for_an_unknown_kind_of_work_is_refused(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fixloop.cli", "worker", "-Q", "fixes"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert "there is no queue 'fixes'; use one of fix, unit-test, " in done.stderr
