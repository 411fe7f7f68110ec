"""Programs of the application as children that end with this process; loads next to nothing.

A worker takes longer to load than `fixloop run` takes to know what to tell it: the command starts it first of all, and
tells it later (docs/decisions/0060).
"""

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

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
        try:
            yield self.process
        finally:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_SECONDS)
            self.kill()


def attach(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    cwd: Path | None = None,
    stdin: int = subprocess.DEVNULL,
    output: IO[bytes] | int | None = None,
) -> Child:
    """Start a child; it learns of this process' end, however that happens."""
    reading, writing = os.pipe()
    try:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**environment, "FIXLOOP_LIFELINE": str(reading)},
            pass_fds=(reading,),
            stdin=stdin,
            stdout=output,
            stderr=output,
        )
    except OSError:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    return Child(process, writing)


@contextmanager
def attached(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    cwd: Path | None = None,
    log: Path | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """A child that is asked to end at the end of the block, and killed if it does not; `log`: what it says."""
    output = log.open("ab") if log is not None else None
    try:
        child = attach(command, environment, cwd=cwd, output=output)
    finally:
        if output is not None:
            output.close()
    with child.ending() as process:
        yield process


def supervising(*options: str) -> list[str]:
    """The words that start a worker's supervisor; one without options waits for them."""
    return [sys.executable, str(app_folder() / "workers" / "launch.py"), "supervise", *options]


_waiting: list[Child] = []


def start_waiting() -> None:
    """Start a supervisor that loads what it needs and then waits for its options; it ends with this process if nobody
    tells it."""
    # Where loading fails, it fails again once there is a log to say so.
    child = attach(supervising(), os.environ, stdin=subprocess.PIPE, output=subprocess.DEVNULL)
    _waiting.append(child)
    atexit.register(lambda: _waiting and _waiting.pop().kill())


def told(options: Mapping[str, Any], variables: Mapping[str, str], log: Path) -> Child | None:
    """The supervisor that waits, told its options, what its environment has besides, and where its log is; None where
    none waits, or it has died."""
    if not _waiting:
        return None
    child = _waiting.pop()
    line = json.dumps({"options": dict(options), "variables": dict(variables), "log": str(log)}) + "\n"
    assert child.process.stdin is not None
    try:
        with child.process.stdin as stdin:
            stdin.write(line.encode())
    except OSError:
        child.kill()
        return None
    return child
