"""The runners of a chaos run's chats: `fixloop chat run`, started again when it ends too early.

A host is a machine: its runners die together, and share a wall clock.
"""

import os
import resource
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.testing import chat_agent
from fixloop.testing.clock import set_clock
from fixloop.testing.processes import below, kill, with_clock

# Its process id is told to its agents, who may see none but their own.
_TELLING: Final = 'FIXLOOP_TESTING_RUNNER=$$ exec "$@"'
LEVELS: Final = (1, 2)
"""Below a runner: the guard, and the agent."""


class Chat(NamedTuple):
    directory: Path
    work: Path
    """Where its agents work."""


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
        """Whether there is room on the disk for what it and all that it starts from now on write."""
        if not self.has_ended():
            limit = resource.RLIM_INFINITY if may else 0
            resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))


class RunnerHost:
    def __init__(self, name: str, folder: Path, executions: Path) -> None:
        self.name = name
        self.clock = folder / f"{name}.clock"
        set_clock(self.clock, 0.0)
        self._log = folder / f"{name}.log"
        self._environment = {
            **os.environ,
            **with_clock(self.clock),
            "FIXLOOP_EXECUTIONS": str(executions),
            # A chat that is played in somebody's checkout is on none of its branches.
            "GIT_CEILING_DIRECTORIES": str(folder),
        }
        self._running: list[Runner] = []

    def start(self, chat: Chat) -> Runner:
        agent = shlex.join([sys.executable, chat_agent.__file__])
        words = ["chat", "run", str(chat.directory), "--architect", agent, "--engineer", agent]
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                ["/bin/sh", "-c", _TELLING, "sh", sys.executable, "-m", "fixloop.cli", *words],
                cwd=chat.work,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        runner = Runner(chat, self.name, process)
        self._running.append(runner)
        return runner

    def running(self) -> list[Runner]:
        self._running = [runner for runner in self._running if not runner.has_ended()]
        return list(self._running)

    def kill(self) -> set[int]:
        """`kill -9` of all runners, guards and agents at once; the ids of the runners."""
        pids = {runner.pid for runner in self.running()}
        lower = {one for pid in pids for level in LEVELS for one in below(pid, level)}
        for pid in pids | lower:
            kill(pid, signal.SIGKILL)
        return pids

    def stop(self) -> None:
        runners = self.running()
        self.kill()
        for runner in runners:
            runner.process.wait()
