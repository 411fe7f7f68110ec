"""How a supervisor starts a process, forked or spawned (docs/decisions/0030), and how it is told to stop."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

Main = Callable[[str, Mapping[str, Any]], int]
"""Runs a process with its role and options; returns its exit code."""

_LAUNCH: Final = str(Path(__file__).parents[1] / "launch.py")
STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
"""The signals that ask a supervisor to stop."""
SAME_SECONDS: Final = 1.0
"""Signals this close together are one request: a terminal and a service manager signal all processes of a group."""


class Stop(NamedTuple):
    """The stop requests so far."""

    stopped: threading.Event
    hastened: threading.Event
    """A second request came, from somebody who does not want to wait."""


def heeded() -> Stop:
    """Make SIGTERM and SIGINT stop requests from now on."""
    asked, since = Stop(threading.Event(), threading.Event()), 0.0

    def heed(*_: Any) -> None:
        nonlocal since
        if not asked.stopped.is_set():
            since = time.monotonic()
            asked.stopped.set()
        elif time.monotonic() - since > SAME_SECONDS:
            asked.hastened.set()

    for number in STOP_SIGNALS:
        signal.signal(number, heed)
    return asked


class Given(NamedTuple):
    """What a supervisor gives a process."""

    role: str
    options: Mapping[str, Any]
    variables: Mapping[str, str]
    """Environment variables in addition to the supervisor's."""
    kept: tuple[int, ...]
    """The open descriptors in addition to the standard ones."""

    @property
    def words(self) -> list[str]:
        return [_LAUNCH, self.role, json.dumps(self.options)]


class Forked:
    """A forked child with the interface of `subprocess.Popen` that is needed here; thread-safe."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._code: int | None = None
        # After a wait, its process id may belong to another process.
        self._asking = threading.Lock()

    def poll(self) -> int | None:
        with self._asking:
            if self._code is None:
                try:
                    pid, status = os.waitpid(self._pid, os.WNOHANG)
                    self._code = os.waitstatus_to_exitcode(status) if pid else None
                except ChildProcessError:
                    # The supervisor was started with SIGCHLD ignored, so there is no status to wait for.
                    self._code = 0
            return self._code

    def send_signal(self, number: int, /) -> None:
        with self._asking:
            if self._code is None:
                os.kill(self._pid, number)


Running = Forked | subprocess.Popen[bytes]


def spawned(given: Given, stderr: int) -> Running:
    """Start a separate program; OSError if memory or processes are exhausted."""
    words, env = [sys.executable, *given.words], os.environ | dict(given.variables)
    return subprocess.Popen(words, env=env, pass_fds=given.kept, stdin=subprocess.DEVNULL, stderr=stderr)


def forked(given: Given, stderr: int, main: Main) -> Running:
    """Start a fork of this process, which must have only one thread; the child runs `main` and never returns."""
    # Block the stop signals until the child has reset its supervisor's handlers.
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        pid = os.fork()
        if not pid:
            _run_child(given, stderr, main, masked)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
    return Forked(pid)


def _run_child(given: Given, stderr: int, main: Main, masked: Iterable[int]) -> NoReturn:
    """Turn this fork into what `spawned` would have started; no error may reach the caller of `forked`."""
    try:
        # Python's default handlers of the stop signals.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(stderr, 2)
        # Above all the write end of this process's own lifeline, and the descriptors of its siblings.
        for each in map(int, os.listdir("/dev/fd")):
            if each > 2 and each not in given.kept:
                with suppress(OSError):  # the descriptor of the listing
                    os.close(each)
        os.environ.update(given.variables)
        sys.argv[:] = given.words
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
        sys.exit(main(given.role, given.options))
    except Exception:
        traceback.print_exc()
        sys.exit(1)
