"""Which injuries begin in a chaos run: those that can be felt, and none after its end."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fixloop.machine.guard_program import is_running
from fixloop.testing.injurer import Injurer
from fixloop.testing.plan import VALIDATION, Boundary, Injury, Occasion, Schedule
from fixloop.testing.relay import Cut, Link
from fixloop.testing.wire import Request

TICKETS = [f"0a1b2c3d-{issue}-1.test-runner.report.1.1" for issue in (1, 2)]
PLAN = {Occasion("report", Boundary.BEFORE_CLAIM, 1): Injury.KILL_CONTROL}


@pytest.fixture
def process() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["sleep", "60"]) as started:
        yield started
        started.kill()


def injurer(folder: Path, roles: dict[int, str]) -> Injurer:
    host: Any = SimpleNamespace(
        wanted=frozenset({"control"}),
        roles=lambda: roles,
        find=lambda role: [pid for pid, named in roles.items() if named == role],
    )
    server: Any = SimpleNamespace(socket=folder / "redis.sock")
    return Injurer({"host-1": host}, server, {}, folder / "executions")


def claims(made: Injurer, pid: int, ticket: str) -> None:
    with suppress(Cut):
        made.sent(Link("host-1", pid), [Request("claim", ticket)], b"")


def test_a_run_that_is_over_hurts_nobody_any_more(
    tmp_path: Path, process: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    made = injurer(tmp_path, {process.pid: "control"})
    monkeypatch.setattr(made.actions, "begin", lambda work: work.close())

    made.arm(Schedule(PLAN, VALIDATION))
    made.disarm()
    claims(made, process.pid, TICKETS[0])
    still_runs = is_running(process.pid)
    made.arm(Schedule(PLAN, VALIDATION))
    claims(made, process.pid, TICKETS[1])

    assert still_runs
    assert process.wait(60) == -9


def test_sweepers_are_hurt_only_where_there_are_any(tmp_path: Path) -> None:
    link = Link("host-1", os.getpid())
    bare = injurer(tmp_path, {os.getpid(): "worker"})
    ours = injurer(tmp_path, {os.getpid(): "worker", 1: "sweep"})

    of_sweepers = (Injury.KILL_SWEEPER, Injury.STOP_SWEEPER, Injury.RIVAL_SWEEPERS)

    assert [bare.actions.may(injury, link) for injury in of_sweepers] == [False] * 3
    assert [ours.actions.may(injury, link) for injury in of_sweepers] == [True] * 3
