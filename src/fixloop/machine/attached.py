"""Starts the application's programs as children that end with this process; imports next to nothing.

A worker takes longer to load than `fixloop run` takes to determine its options, so the command starts the worker first
and sends it the options later (docs/decisions/0060).
"""

import atexit
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from fixloop.files.app_folder import app_folder

STOP_SECONDS: Final = 12.0
"""How long a child may take to drain before it is killed."""


class Child(NamedTuple):
    """A child, and the writing end of a pipe that closes when this process dies."""

    process: subprocess.Popen[bytes]
    lifeline: int

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.lifeline)

    @contextmanager
    def ending(self) -> Iterator[subprocess.Popen[bytes]]:
        """End the child after the block; it is killed if it does not stop."""
        with self.process:
            try:
                yield self.process
            finally:
                self.process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    self.process.wait(STOP_SECONDS)
                self.kill()


def attach(command: Sequence[str], environment: Mapping[str, str], **how: Any) -> Child:
    """Start a child that notices the end of this process, however that happens; `how`: as for `subprocess.Popen`."""
    reading, writing = os.pipe()
    variables = {**environment, "FIXLOOP_LIFELINE": str(reading)}
    how = {"stdin": subprocess.DEVNULL, "env": variables, "pass_fds": (reading,), **how}
    try:
        return Child(subprocess.Popen(command, **how), writing)
    except OSError:
        os.close(writing)
        raise
    finally:
        os.close(reading)


@contextmanager
def attached(
    command: Sequence[str], environment: Mapping[str, str], log: Path | None = None, **how: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """A child that is asked to stop at the end of the block, and killed if it does not; `log`: its output."""
    with log.open("ab") if log is not None else nullcontext() as output:
        child = attach(command, environment, stdout=output, stderr=output, **how)
    with child.ending() as process:
        yield process


def launching(role: str, *options: str) -> list[str]:
    """The command that starts a process of the application; a supervisor without options waits for them."""
    return [sys.executable, str(app_folder() / "workers" / "launch.py"), role, *options]


_HOW: Final[Mapping[str, Mapping[str, Any]]] = {
    # Output of a failed load is discarded: the load fails again once there is a log.
    "supervise": {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL},
    # Ctrl-C goes to the starting process, which passes it on.
    "try": {"stdout": subprocess.PIPE, "start_new_session": True},
}
_waiting: Final[dict[str, tuple[Child, socket.socket]]] = {}
atexit.register(lambda: [child.kill() for child, _ in _waiting.values()])


def start_waiting(role: str) -> None:
    """Start a process of the application that loads its modules and then waits for its standard input, a socket; it
    ends with this process if it is never used."""
    _waiting[role] = _started(role)


def _started(role: str) -> tuple[Child, socket.socket]:
    ours, theirs = socket.socketpair()
    with theirs:
        return attach(launching(role), os.environ, stdin=theirs.fileno(), **_HOW[role]), ours


def taken(role: str) -> Child:
    """The waiting process with this role, else a new one, with its standard input."""
    child, line = _waiting.pop(role) if role in _waiting else _started(role)
    with line:
        child.process.stdin = line.makefile("wb")
    return child


def told(said: Mapping[str, Any], log: Path) -> Child | None:
    """Send options and a log to the waiting supervisor; None if none waits, or it has died."""
    if "supervise" not in _waiting:
        return None
    child, line = _waiting.pop("supervise")
    try:
        # The open file, not its name, which may have changed by the time the process has loaded.
        with line, log.open("ab") as file:
            socket.send_fds(line, [json.dumps(said).encode() + b"\n"], [file.fileno()])
    except OSError:
        child.kill()
        return None
    return child
