"""Which injuries start in a chaos run: those that can take effect, and none after its end."""

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
from fixloop.testing.wire import Request, encoded

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


def test_a_finished_run_injures_no_process(
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


def test_sweepers_are_injured_only_if_there_are_any(tmp_path: Path) -> None:
    link = Link("host-1", os.getpid())
    bare = injurer(tmp_path, {os.getpid(): "worker"})
    ours = injurer(tmp_path, {os.getpid(): "worker", 1: "sweep"})

    of_sweepers = (Injury.KILL_SWEEPER, Injury.STOP_SWEEPER, Injury.RIVAL_SWEEPERS)

    assert [bare.actions.may(injury, link) for injury in of_sweepers] == [False] * 3
    assert [ours.actions.may(injury, link) for injury in of_sweepers] == [True] * 3


def test_a_continuing_process_is_killed_after_its_claim_and_hints_lost_elsewhere(
    tmp_path: Path, process: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    fix, recheck, other = (
        f"0a1b2c3d-{name}" for name in ("1-1.a.fix.1.1", "1-1.a.recheck.2.1", "2-1.a.recheck.2.1")
    )
    made = injurer(tmp_path, {process.pid: "worker", os.getpid(): "worker"})
    link = Link("host-1", process.pid)
    monkeypatch.setattr(made.actions, "begin", lambda work: work.close())
    plan = {
        Occasion("recheck", Boundary.AFTER_CLAIM, 1): Injury.KILL_WORKER,
        Occasion("recheck", Boundary.BEFORE_HINT, 1): Injury.LOSE_SENT,
    }
    made.arm(Schedule(plan, VALIDATION))
    made.sent(link, [Request("commit", fix, claims=recheck)], b"")

    with pytest.raises(Cut):
        made.answered(link, b"*3\r\n$2\r\nok\r\n*0\r\n*2\r\n:4\r\n:5\r\n")
    hint = Request("hint", other, (b"LPUSH", b"queue", b"{}"))
    passed_on, answer = made.sent(Link("host-1", os.getpid()), [hint], encoded(hint.words))

    assert process.wait(60) == -9
    assert [(applied.injury, applied.ticket) for applied in made.injuries] == [
        (Injury.KILL_WORKER, recheck),
        (Injury.LOSE_SENT, other),
    ]
    assert (passed_on, answer) == (b"", b":1\r\n")
