"""What is done to processes and clocks in a chaos run, and when that takes effect."""

import asyncio
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fixloop.machine.guard_program import is_running
from fixloop.testing import injuries
from fixloop.testing.injuries import AppliedInjury, InjuryActions
from fixloop.testing.plan import Boundary, Injury
from fixloop.testing.processes import below, comes, is_stopped
from fixloop.testing.relay import Cut, Link

# A worker with a guard and a command below it.
FAMILY = "sh -c 'sleep 60; :'; :"


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """Three levels of processes in their own session."""
    started = subprocess.Popen(["sh", "-c", FAMILY], start_new_session=True)
    assert comes(lambda: bool(below(started.pid, 2)))
    everybody = [started.pid, *below(started.pid, 1), *below(started.pid, 2)]
    yield started
    for pid in everybody:
        if is_running(pid):
            kill(pid)
    started.wait()


def kill(pid: int) -> None:
    subprocess.run(["kill", "-9", str(pid)], check=False)


class Ring:
    """An injurer, and the result of its injuries."""

    def __init__(self, clock: Path | None = None) -> None:
        self.missed: list[AppliedInjury] = []
        host: Any = SimpleNamespace(clock=clock)
        nobody: Any = None
        self.actions = InjuryActions({"host-1": host}, nobody, nobody, self.missed.append)

    def strike(
        self, injury: Injury, pid: int, meanwhile: Callable[[], object] = lambda: None
    ) -> AppliedInjury:
        """Strike, let something happen, and wait until it is over."""
        applied = AppliedInjury(
            injury, "ticket", Boundary.MID_WORK, (), frozenset(), time.monotonic(), time.monotonic()
        )

        async def fight() -> None:
            with suppress(Cut):
                self.actions.apply(applied, Link("host-1", pid))
            meanwhile()
            while self.actions.under_way:
                await asyncio.sleep(0.005)

        asyncio.run(fight())
        return applied


def test_a_kill_takes_effect_when_the_process_is_dead(process: "subprocess.Popen[bytes]") -> None:
    ring = Ring()

    applied = ring.strike(Injury.KILL_WORKER, process.pid)

    assert applied.took_effect
    assert applied.pids == {process.pid}
    assert ring.missed == []
    assert not is_running(process.pid)


@pytest.mark.parametrize(("turn", "level"), [(1, 2), (2, 1)], ids=["the command", "the guard above it"])
def test_the_processes_of_a_worker_s_command_are_killed_in_turn(
    process: "subprocess.Popen[bytes]", turn: int, level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring, victims = Ring(), below(process.pid, level)
    if turn == 2:
        monkeypatch.setattr(injuries, "EFFECT_SECONDS", 0.05)
        ring.strike(Injury.KILL_COMMAND, below(process.pid, 2)[0])
        monkeypatch.undo()

    applied = ring.strike(Injury.KILL_COMMAND, process.pid)

    assert applied.took_effect
    assert sorted(applied.pids) == victims


def test_an_injury_of_a_missing_command_is_recorded_as_missed(
    process: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(injuries, "EFFECT_SECONDS", 0.05)
    ring = Ring()

    applied = ring.strike(Injury.KILL_COMMAND, below(process.pid, 2)[0])

    assert (applied.took_effect, ring.missed) == (False, [applied])


def test_a_stop_takes_effect_and_its_process_continues(
    process: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(injuries, "STOPPED_SECONDS", 0.1)

    applied = Ring().strike(Injury.STOP_WORKER, process.pid, lambda: comes(lambda: is_stopped(process.pid)))

    assert applied.took_effect
    assert comes(lambda: not is_stopped(process.pid))


def test_a_stop_is_missed_if_its_process_is_killed_meanwhile(
    process: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(injuries, "STOPPED_SECONDS", 0.1)
    ring = Ring()

    applied = ring.strike(Injury.STOP_WORKER, process.pid, lambda: process.send_signal(signal.SIGKILL))

    assert (applied.took_effect, ring.missed) == (False, [applied])


def test_a_clock_is_set_ahead_then_right_then_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(injuries, "CLOCK_WRONG_SECONDS", 0.05)
    path = tmp_path / "clock"
    ring, seen = Ring(path), []

    def read() -> float:
        found: float = struct.unpack("d", path.read_bytes())[0]
        return found

    for _ in range(2):
        ring.strike(Injury.WRONG_CLOCK, 1, lambda: seen.append(read()))
        seen.append(read())

    assert seen == [30.0, 0.0, -30.0, 0.0]
