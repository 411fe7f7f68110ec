"""Programs of the application as children that end with this process; loads next to nothing.

A worker takes longer to load than `fixloop run` takes to know what to tell it: the command starts it first of all, and
tells it later (docs/decisions/0060).
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
    """A child, and the writing end of a pipe whose end tells it that this process died."""

    process: subprocess.Popen[bytes]
    lifeline: int

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.lifeline)

    @contextmanager
    def ending(self) -> Iterator[subprocess.Popen[bytes]]:
        """Have it end with the block; it is killed if it does not."""
        with self.process:
            try:
                yield self.process
            finally:
                self.process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    self.process.wait(STOP_SECONDS)
                self.kill()


def attach(command: Sequence[str], environment: Mapping[str, str], **how: Any) -> Child:
    """Start a child, which learns of this process' end, however that happens; `how`: as for `subprocess.Popen`."""
    reading, writing = os.pipe()
    variables, further = (
        {**environment, "FIXLOOP_LIFELINE": str(reading)},
        {"stdin": subprocess.DEVNULL, **how},
    )
    try:
        return Child(subprocess.Popen(command, env=variables, pass_fds=(reading,), **further), writing)
    except OSError:
        os.close(writing)
        raise
    finally:
        os.close(reading)


@contextmanager
def attached(
    command: Sequence[str], environment: Mapping[str, str], log: Path | None = None, **how: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """A child that is asked to end at the end of the block, and killed if it does not; `log`: what it says."""
    with log.open("ab") if log is not None else nullcontext() as output:
        child = attach(command, environment, stdout=output, stderr=output, **how)
    with child.ending() as process:
        yield process


def launching(role: str, *options: str) -> list[str]:
    """The words that start a process of the application; a supervisor without options waits for them."""
    return [sys.executable, str(app_folder() / "workers" / "launch.py"), role, *options]


_HOW: Final[Mapping[str, Mapping[str, Any]]] = {
    # Where loading fails, it fails again once there is a log to say so.
    "supervise": {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL},
    # Ctrl-C is for who started it, and tells it.
    "try": {"stdout": subprocess.PIPE, "start_new_session": True},
}
_waiting: Final[dict[str, tuple[Child, socket.socket]]] = {}
atexit.register(lambda: [child.kill() for child, _ in _waiting.values()])


def start_waiting(role: str) -> None:
    """Start a process of the application that loads what it needs and then waits for its standard input, a socket; it
    ends with this process if nobody takes it."""
    _waiting[role] = _started(role)


def _started(role: str) -> tuple[Child, socket.socket]:
    ours, theirs = socket.socketpair()
    with theirs:
        return attach(launching(role), os.environ, stdin=theirs.fileno(), **_HOW[role]), ours


def taken(role: str) -> Child:
    """The process that waits as `role`, else a new one, with its standard input."""
    child, line = _waiting.pop(role) if role in _waiting else _started(role)
    with line:
        child.process.stdin = line.makefile("wb")
    return child


def told(said: Mapping[str, Any], log: Path) -> Child | None:
    """The supervisor that waits, told what it is, and where its log goes; None where none waits, or it has died."""
    if "supervise" not in _waiting:
        return None
    child, line = _waiting.pop("supervise")
    try:
        # The file and not its name, which it may have no longer when the process has loaded.
        with line, log.open("ab") as file:
            socket.send_fds(line, [json.dumps(said).encode() + b"\n"], [file.fileno()])
    except OSError:
        child.kill()
        return None
    return child
