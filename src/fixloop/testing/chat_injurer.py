"""The runners of a chaos run's chats, and their injuries.

A host is a machine: its runners die together, and share a wall clock. `fixloop chat run` is restarted if it ends too
early. The changes in a chat's directory show which boundary its turn has reached.
"""

import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import cycle
from pathlib import Path
from subprocess import DEVNULL
from typing import Final, NamedTuple

from fixloop.chat.conversation import JOURNAL
from fixloop.chat.meta import META
from fixloop.machine.guard_program import is_running
from fixloop.testing import chat_agent
from fixloop.testing.executions import Execution
from fixloop.testing.injuries import AppliedInjury, WrongClocks
from fixloop.testing.inotify import CREATED, MODIFIED, MOVED_TO, FileChange
from fixloop.testing.plan import Boundary, Injury, Schedule
from fixloop.testing.processes import below, comes, is_stopped, kill, with_clock

STOPPED_SECONDS: Final = 1.5
FULL_SECONDS: Final = 2.0
CLOCK_WRONG_SECONDS: Final = 2.0
EFFECT_SECONDS: Final = 5.0
POLL_SECONDS: Final = 0.001
_NUMBERED: Final = re.compile(r"(\d+)-to-\w+\.md")
# Pass the runner's process id to its agents, which may see only their own.
_WITH_RUNNER_ID: Final = 'FIXLOOP_TESTING_RUNNER=$$ exec "$@"'
LEVELS: Final = (1, 2)
"""Below a runner: the guard, and the agent."""


class Chat(NamedTuple):
    directory: Path
    work: Path
    """The folder where its agents work."""


class Runner(NamedTuple):
    chat: Chat
    host: str
    process: "subprocess.Popen[bytes]"

    @property
    def pid(self) -> int:
        return self.process.pid

    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def let_write(self, *, may: bool) -> None:
        """Set whether the disk has room for the writes of the runner and its future children."""
        if not self.has_ended():
            limit = resource.RLIM_INFINITY if may else 0
            resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))


class RunnerHost:
    def __init__(self, name: str, folder: Path, executions: Path) -> None:
        self.name = name
        self.clock = folder / f"{name}.clock"
        self._log = folder / f"{name}.log"
        self._environment = {
            **os.environ,
            **with_clock(self.clock),
            "FIXLOOP_EXECUTIONS": str(executions),
            # A chat inside a checkout does not belong to the checkout's branches.
            "GIT_CEILING_DIRECTORIES": str(folder),
        }
        self._running: list[Runner] = []

    def start(self, chat: Chat) -> Runner:
        agent = shlex.join([sys.executable, chat_agent.__file__])
        words = ["chat", "run", str(chat.directory), "--architect", agent, "--engineer", agent]
        with self._log.open("ab") as log:
            command = ["/bin/sh", "-c", _WITH_RUNNER_ID, "sh", sys.executable, "-m", "fixloop.cli", *words]
            env = self._environment
            process = subprocess.Popen(command, cwd=chat.work, env=env, stdin=DEVNULL, stdout=log, stderr=log)
        runner = Runner(chat, self.name, process)
        self._running.append(runner)
        return runner

    def running(self) -> list[Runner]:
        self._running = [runner for runner in self._running if not runner.has_ended()]
        return list(self._running)

    def kill(self) -> set[int]:
        """`kill -9` all runners, guards and agents at once; returns the process ids of the runners."""
        pids = {runner.pid for runner in self.running()}
        lower = {one for pid in pids for level in LEVELS for one in below(pid, level)}
        kill(signal.SIGKILL, *pids, *lower)
        return pids

    def stop(self) -> None:
        runners = self.running()
        self.kill()
        for runner in runners:
            runner.process.wait()


class Turns:
    def __init__(self) -> None:
        self._seq = 1
        self._is_written = False

    def boundary(self, what: int, name: str) -> tuple[int, Boundary] | None:
        """The turn that reached a boundary by a change of `name`; None for any other change."""
        numbered = _NUMBERED.fullmatch(name)
        if what in (CREATED, MOVED_TO) and (numbered or name == "SUMMARY.md"):
            self._seq, self._is_written = int(numbered[1]) if numbered else chat_agent.LAST, True
            return self._seq, Boundary.AFTER_COMMIT
        if name.startswith(".writing-") and what == CREATED and not self._is_written:
            return self._seq, Boundary.BEFORE_COMMIT
        if name == JOURNAL and what == MODIFIED:
            return self._seq, Boundary.BEFORE_HINT if self._is_written else Boundary.AFTER_CLAIM
        if name == META and what == MOVED_TO:
            self._seq, self._is_written, seq = self._seq + 1, False, self._seq
            return seq, Boundary.AFTER_HINT
        return None


class ChatInjurer:
    """Inflicts the injuries of a schedule, each when a turn reaches its boundary."""

    def __init__(self, hosts: Mapping[str, RunnerHost]) -> None:
        self.injuries: list[AppliedInjury] = []
        self._hosts = hosts
        self.schedule = Schedule({}, {})
        self._turns: dict[Path, Turns] = {}
        self._later: list[tuple[float, Callable[[], object]]] = []
        self._rivalries: list[tuple[AppliedInjury, Runner, Runner]] = []
        self._clocks = WrongClocks()
        self._levels = cycle(reversed(LEVELS))

    @property
    def under_way(self) -> bool:
        return bool(self._later or self._rivalries)

    def changed(self, change: FileChange) -> bool:
        """Handle a change in a chat's directory; returns whether it completed a turn."""
        at = self._turns.setdefault(change.directory, Turns()).boundary(change.what, change.name)
        runners = self._runners_of(change.directory)
        if at is not None and runners:
            seq, boundary = at
            role = "architect" if seq % 2 else "engineer"
            self._reach(f"{change.directory.name}.{role}.{seq}", seq, boundary, runners[0])
        return at is not None and at[1] is Boundary.AFTER_COMMIT

    def began(self, execution: Execution) -> None:
        for applied, _, rival in self._rivalries:
            if applied.injury is Injury.RIVAL_RUNNERS and execution.pid == rival.pid:
                applied.took_effect = True
        runner = next((one for one in self._running() if one.pid == execution.pid), None)
        if runner is not None:
            seq = int(execution.ticket.rpartition(".")[2])
            self._reach(execution.ticket, seq, Boundary.MID_WORK, runner)

    def tend(self) -> None:
        now = time.monotonic()
        for due, act in [one for one in self._later if one[0] <= now]:
            self._later.remove((due, act))
            act()
        for rivalry in list(self._rivalries):
            applied, *runners = rivalry
            if any(runner.has_ended() for runner in runners):
                self._rivalries.remove(rivalry)
                self._end(applied)

    def _running(self) -> Iterable[Runner]:
        return (runner for host in self._hosts.values() for runner in host.running())

    def _runners_of(self, directory: Path) -> list[Runner]:
        return [runner for runner in self._running() if runner.chat.directory == directory]

    def _reach(self, ticket: str, seq: int, boundary: Boundary, runner: Runner) -> None:
        step = "close" if seq == chat_agent.LAST else "answer"
        injury = self.schedule.due(ticket, (step,), boundary, lambda one: self._is_possible(one, runner))
        if injury is None:
            return
        now = time.monotonic()
        applied = AppliedInjury(injury, ticket, boundary, (), frozenset({runner.pid}), now, now)
        self.injuries.append(applied)
        match injury:
            case Injury.KILL_RUNNER:
                kill(signal.SIGKILL, runner.pid)
                applied.took_effect = runner.process.wait() == -signal.SIGKILL
                self._end(applied)
            case Injury.KILL_RUNNERS:
                host = self._hosts[runner.host]
                runners = host.running()
                applied.pids = frozenset(host.kill())
                applied.took_effect = [one.process.wait() for one in runners].count(-signal.SIGKILL) > 0
                self._end(applied)
            case Injury.KILL_AGENT:
                # Alternate between the agent and the guard above it.
                applied.pids = frozenset(below(runner.pid, next(self._levels)))
                kill(signal.SIGKILL, *applied.pids)
                applied.took_effect = bool(applied.pids) and comes(
                    lambda: not any(map(is_running, applied.pids)), EFFECT_SECONDS, POLL_SECONDS
                )
                self._end(applied)
            case Injury.STOP_RUNNER:
                kill(signal.SIGSTOP, runner.pid)
                applied.took_effect = comes(lambda: is_stopped(runner.pid), EFFECT_SECONDS, POLL_SECONDS)
                self._after(STOPPED_SECONDS, lambda: kill(signal.SIGCONT, runner.pid))
                self._add_rival(applied, runner)
            case Injury.RIVAL_RUNNERS:
                self._add_rival(applied, runner)
            case Injury.FULL_DISK:
                self._fill_disk(applied, runner)
            case Injury.WRONG_CLOCK:
                self._shift_clock(applied, runner)
            case _:
                raise ValueError(f"{injury} is not an injury of runners of chats")

    def _is_possible(self, injury: Injury, runner: Runner) -> bool:
        if injury is Injury.WRONG_CLOCK:
            return runner.host not in self._clocks.hosts
        if injury not in (Injury.STOP_RUNNER, Injury.RIVAL_RUNNERS, Injury.FULL_DISK):
            return not runner.has_ended()
        alone = len(self._runners_of(runner.chat.directory)) == 1
        whole = not any(one.ended == float("inf") and runner.pid in one.pids for one in self.injuries)
        return alone and whole and not runner.has_ended()

    def _add_rival(self, applied: AppliedInjury, runner: Runner) -> None:
        """Start a second runner of the chat on another host; they are rivals until one of them ends."""
        other = next(host for host in self._hosts.values() if host.name != runner.host)
        rival = other.start(runner.chat)
        applied.pids, applied.ended = frozenset({runner.pid, rival.pid}), float("inf")
        self._rivalries.append((applied, runner, rival))

    def _fill_disk(self, applied: AppliedInjury, runner: Runner) -> None:
        """Fill the disk; this took effect if the runner fails, because a chat needs files."""
        runner.let_write(may=False)
        applied.ended = float("inf")

        def empty() -> None:
            runner.let_write(may=True)
            applied.took_effect = runner.has_ended() and runner.process.returncode > 0
            self._end(applied)

        self._after(FULL_SECONDS, empty)

    def _shift_clock(self, applied: AppliedInjury, runner: Runner) -> None:
        mend = self._clocks.shift(applied, runner.host, self._hosts[runner.host].clock)
        applied.pids, applied.ended = frozenset(), float("inf")

        def end() -> None:
            mend()
            applied.ended = time.monotonic()

        self._after(CLOCK_WRONG_SECONDS, end)

    def _after(self, seconds: float, act: Callable[[], object]) -> None:
        self._later.append((time.monotonic() + seconds, act))

    def _end(self, applied: AppliedInjury) -> None:
        applied.ended = time.monotonic()
        if not applied.took_effect:
            self.schedule.put_off(applied.injury)
