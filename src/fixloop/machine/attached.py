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


_waiting: list[Child] = []


def start_waiting() -> None:
    """Start a supervisor that loads what it needs and then waits for its options; it ends with this process if nobody
    tells it."""
    # Where loading fails, it fails again once there is a log to say so.
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    _waiting.append(attach(launching("supervise"), os.environ, stdin=subprocess.PIPE, **silent))
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
