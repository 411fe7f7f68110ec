"""Two workers that share nothing but Redis and the repository's URL, and one of them dies in mid-fix."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.machine import Machine, machines, needs_namespaces
from tests.fixtures.project import TOML, Project, environment, until
from tests.fixtures.redis_server import RedisServer

pytestmark = pytest.mark.slow

CALC = "def add(a, b):\n    return a - b\n\n\ndef twice(a):\n    return a * 3\n"
RIGHT = CALC.replace("a - b", "a + b").replace("a * 3", "a * 2")
TESTS = (
    "import calc\n\n\ndef adds():\n    assert calc.add(1, 2) == 3\n\n\n"
    "def doubles():\n    assert calc.twice(2) == 4\n"
)
FIXER = '''\
"""Fixes one function at a time; on a machine that is to be lost, it never comes to the end of the second."""
import os, pathlib, time
calc, home = pathlib.Path("calc.py"), pathlib.Path(os.environ["HOME"], "said")
text = calc.read_text()
if "a - b" in text:
    text = text.replace("a - b", "a + b")
else:
    if (home / "doomed").exists():
        calc.write_text("half done")
        (home / "in-mid-fix").touch()
        time.sleep(600)
    text = text.replace("a * 3", "a * 2")
calc.write_text(text)
'''
PORT = 6399
HOSTS = [False, True] if os.environ.get("CRASH_ALL") == "1" else [False]
"""With separate processes and host names, the dead machine's step is taken over after its lease of 9 s."""


@contextmanager
def served(folder: Path, address: str) -> Iterator[str]:
    """The repositories in `folder` at an address that anybody may push to; yields its URL."""
    daemon = subprocess.Popen(
        [
            *("git", "daemon", "--reuseaddr", f"--listen={address}"),
            *("--export-all", "--enable=receive-pack", f"--base-path={folder}", str(folder)),
        ],
        env=environment(folder / "home"),
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield f"git://{address}"
    finally:
        daemon.terminate()
        daemon.wait()


def steps(machine: Machine) -> list[str]:
    """The steps that were finished on a machine, such as `fix.1`, in order."""
    lines = [line.partition(" fixloop.steps: ")[2] for line in machine.log.splitlines()]
    tickets = [line.removesuffix(" is done") for line in lines if line.endswith(" is done")]
    return [".".join(ticket.split(".")[2:4]) for ticket in tickets if ".report." not in ticket]


def story(project: Project, issue: int) -> list[tuple[Any, ...]]:
    """The messages of a workflow, without times and issue numbers."""
    entries = project.fixloop("log", str(issue), "--json").document["entries"]
    names = ("sender", "recipient", "message_type", "summary", "status_before", "status_after", "iteration")
    return [tuple(entry[name] for name in names) for entry in entries]


@pytest.mark.proves("S30", "K40")
@pytest.mark.parametrize("own_hosts", HOSTS)
def test_a_worker_continues_when_another_machine_is_lost_mid_fix(tmp_path: Path, own_hosts: bool) -> None:
    needs_namespaces()
    here = tmp_path / "here"
    toml = f'[fixer]\ncommand = "{sys.executable} fixer.py"\n{TOML}'
    with machines(tmp_path, here, own_hosts=own_hosts) as (address, first, second):
        server = RedisServer("--port", str(PORT), "--bind", address, "--protected-mode", "no").start()
        redis_url = f"redis://{address}:{PORT}"
        project = Project(
            here / "shop",
            toml=toml,
            calc=CALC,
            files={"test_calc.py": TESTS, "fixer.py": FIXER},
            variables={"FIXLOOP_STATE_URL": redis_url},
        )
        project.git("clone", "--quiet", "--bare", ".", str(here / "served/shop.git"))
        try:
            with served(here / "served", address) as base:
                (second.home / "said").mkdir()
                (second.home / "said/doomed").touch()
                first.worker(redis_url, "-c", "1", "-Q", "test-runner")
                second.worker(redis_url, "-c", "1", "-Q", "fix")
                words = ("--repo", f"{base}/shop.git", "--ref", "main", "--push")
                assert project.fixloop("enqueue", "--issue", "1", *words).code == 0

                until((second.home / "said/in-mid-fix").exists, what="the second fix")
                assert (steps(first), steps(second)) == (["validate.1", "recheck.2"], ["fix.1"])
                second.kill()
                first.worker(redis_url, "-c", "1", "-Q", "fix")
                ended = project.fixloop("watch", "1")

                assert (ended.code, "pushed as fixloop/1" in ended.out) == (0, True), first.log + second.log
                assert steps(first)[2:] == ["fix.2", "recheck.3", "push.3"]
                assert project.fixloop("enqueue", "--issue", "2", *words).code == 0
                assert project.fixloop("watch", "2").code == 0
                assert story(project, 1) == story(project, 2)
        finally:
            server.end()
    project.git("fetch", "--quiet", str(here / "served/shop.git"), "fixloop/1:one", "fixloop/2:two")
    assert project.git("show", "one:calc.py") == RIGHT
    assert project.git("rev-parse", "one^{tree}") == project.git("rev-parse", "two^{tree}")
    assert (
        project.git("rev-list", "--count", "one").strip()
        == project.git("rev-list", "--count", "two").strip()
        == "3"
    )
