"""How a supervisor starts a process, forked or as a program (docs/decisions/0030), and how it is told to stop."""

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
"""What a process is, by its role and options; its exit code."""

_LAUNCH: Final = str(Path(__file__).parents[1] / "launch.py")
STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
"""Those that ask a supervisor to stop."""
SAME_SECONDS: Final = 1.0
"""Signals so close together are one request: a terminal and a service manager tell all processes of a group."""


class Stop(NamedTuple):
    """What was asked for so far."""

    stopped: threading.Event
    hastened: threading.Event
    """Somebody asked a second time and does not want to wait."""


def heeded() -> Stop:
    """From now on SIGTERM and SIGINT are requests to stop."""
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


def unheeded() -> None:
    """From now on they do what they do in every Python program."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Given(NamedTuple):
    """What a process gets from its supervisor."""

    role: str
    options: Mapping[str, Any]
    variables: Mapping[str, str]
    """Of its environment, besides the supervisor's."""
    kept: tuple[int, ...]
    """The descriptors that it has open, besides the standard ones."""

    @property
    def words(self) -> list[str]:
        return [_LAUNCH, self.role, json.dumps(self.options)]


class Forked:
    """A forked child of this process, as far as it is like `subprocess.Popen`; any thread may ask."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._code: int | None = None
        # Once it was waited for, its id may be somebody else's.
        self._asking = threading.Lock()

    def poll(self) -> int | None:
        with self._asking:
            if self._code is None:
                try:
                    pid, status = os.waitpid(self._pid, os.WNOHANG)
                    self._code = os.waitstatus_to_exitcode(status) if pid else None
                except ChildProcessError:
                    # The supervisor was started with SIGCHLD ignored: nothing is left to wait for.
                    self._code = 0
            return self._code

    def send_signal(self, number: int, /) -> None:
        with self._asking:
            if self._code is None:
                os.kill(self._pid, number)


Running = Forked | subprocess.Popen[bytes]


def spawned(given: Given, stderr: int) -> Running:
    """Start it as a separate program; OSError where there is no memory, or no process is left."""
    return subprocess.Popen(
        [sys.executable, *given.words],
        env=os.environ | dict(given.variables),
        pass_fds=given.kept,
        stdin=subprocess.DEVNULL,
        stderr=stderr,
    )


def forked(given: Given, stderr: int, main: Main) -> Running:
    """Start it as a fork of this process, which has no other thread; there it ends with `main`, and never returns."""
    # Until the child has forgotten what its supervisor does about them, signals wait.
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        pid = os.fork()
        if not pid:
            _become(given, stderr, main, masked)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
    return Forked(pid)


def _become(given: Given, stderr: int, main: Main, masked: Iterable[int]) -> NoReturn:
    """Turn this process into what `spawned` would have started; no error may reach the caller of `forked`."""
    try:
        unheeded()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(stderr, 2)
        # Above all the other end of this process' lifeline, and the ends of its siblings'.
        for each in map(int, os.listdir("/dev/fd")):
            if each > 2 and each not in given.kept:
                with suppress(OSError):  # the one that listed them
                    os.close(each)
        os.environ.update(given.variables)
        sys.argv[:] = given.words
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
        sys.exit(main(given.role, given.options))
    except Exception:
        traceback.print_exc()
        sys.exit(1)
