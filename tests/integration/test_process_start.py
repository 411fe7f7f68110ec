"""A process forked from its supervisor: it starts like a program, and its end is reported like one's."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

pytestmark = pytest.mark.slow

ROOT: Final = Path(__file__).resolve().parents[2]
LOADED: Final = """
import json, os, sys
import kombu.common
from tests.integration.forked_processes import opened
from workers.app import app
from workers.processes.preload import load
from workers.process import _process_of
load()
print(json.dumps({
    "threads": len(os.listdir("/proc/self/task")),
    "open": sorted(opened()),
    "names": [kombu.common._node_id, vars(app).get("oid"), getattr(app._local, "oid", None)],
    "pool": app._pool,
    "processes": _process_of.cache_info().currsize,
    "crew": [name for name in ("workers.commands.crew", "fixloop.testing.crew") if name in sys.modules],
}))
"""

LATE: Final = """
import os, time
from celery.signals import worker_process_init
from workers import roles

def start(*_, **__):
    if os.fork() == 0:
        while os.getppid() == main:
            time.sleep(0.01)
        worker_process_init.send(sender="")
        print("it goes on", flush=True)
    os._exit(0)

main, roles._celery = os.getpid(), start
roles.work({"queues": [], "concurrency": 1})
"""


def said_by(*words: str, **further: str) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if name != "FIXLOOP_CREW"} | further
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


@pytest.mark.proves("S30")
@pytest.mark.parametrize(
    ("name", "death", "tracebacks"),
    [
        ("fails", "exit code 1: OSError: its own", 2),
        ("leaves", "exit code 3", 0),
        ("dies", "killed by SIGKILL", 0),
    ],
)
def test_the_end_of_a_forked_process_has_a_reason_and_ends_no_other(
    name: str, death: str, tracebacks: int
) -> None:
    done = said_by("-m", "tests.integration.forked_processes", name)

    # Printed once: no process continues as another supervisor.
    assert done.stdout.splitlines() == [death]
    assert done.stderr.count("Traceback") == tracebacks


def test_a_forked_process_starts_in_the_state_of_a_new_program() -> None:
    *told, death = said_by("-m", "tests.integration.forked_processes", "tells").stdout.splitlines()

    assert death == "exit code 0"
    first, second = sorted((json.loads(line) for line in told), key=lambda found: found["words"])
    assert_is_fresh(first, "first")
    assert_is_fresh(second, "second")
    assert not pipes(first) & pipes(second)


def assert_is_fresh(found: dict[str, Any], role: str) -> None:
    """It shares nothing with its supervisor or its sibling."""
    given = found["given"]
    assert found["words"] == [role, '{"queues": ["own"]}']
    assert found["signals"] == ["0", "<built-in function default_int_handler>"]
    assert found["blocked"] == []
    assert set(found["open"]) == {"0", "1", "2", given["FIXLOOP_LIFELINE"], given["FIXLOOP_PRESENCE"]}
    assert found["open"]["0"] == "/dev/null"
    assert len(given["FIXLOOP_SUPERVISOR"].split("/")) == 5


def pipes(found: dict[str, Any]) -> set[str]:
    """Except for stdout, which all share."""
    return {what for number, what in found["open"].items() if number not in "01"}


@pytest.mark.parametrize(
    ("further", "crew"),
    [
        ({}, ["workers.commands.crew"]),
        ({"FIXLOOP_CREW": "fixloop.testing:scripted_crew"}, ["fixloop.testing.crew"]),
        ({"FIXLOOP_CREW": "fixloop.not_there:crew"}, []),
    ],
)
def test_modules_loaded_before_the_fork_leave_no_shared_state(
    further: dict[str, str], crew: list[str]
) -> None:
    found = json.loads(said_by("-c", LOADED, **further).stdout)

    assert found == {
        "threads": 1,
        "open": ["0", "1", "2"],
        "names": [None, None, None],
        "pool": None,
        "processes": 0,
        "crew": crew,
    }


@pytest.mark.proves("S30")
def test_a_pool_process_whose_main_process_died_before_it_was_ready_ends() -> None:
    assert said_by("-c", LATE).stdout == ""
