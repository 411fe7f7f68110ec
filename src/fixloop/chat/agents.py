"""
Running one command that plays a role: its prompt on stdin, its answer on stdout, and nothing of it left behind.

It runs under the application's guard, started by path: when this process dies, however it dies, the command and all
it started die with it. An agent that lived on would edit files beside its successor.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final, NamedTuple

from fixloop.app_folder import app_folder
from fixloop.errors import InfrastructureError, UsageError

__all__ = ["AgentRun", "run_agent"]

MAX_BYTES: Final = 1024 * 1024
"""Of an answer; what is printed beyond is not read."""
_END_SECONDS: Final = 10.0


class AgentRun(NamedTuple):
    """How a command ended and what it printed."""

    ending: str
    """`exited 0`, `exited 7`, `signalled 9` or `timed out`."""
    answer: str
    talk: str
    """What it printed on stderr."""

    @property
    def is_good(self) -> bool:
        return self.ending == "exited 0"


def run_agent(
    argv: Sequence[str],
    prompt: str,
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_seconds: float | None = None,
) -> AgentRun:
    """
    Run a command to its end, or to its time limit if it has one.

    Raises:
        UsageError: there is no such command.
        InfrastructureError: the guard cannot be started.
    """
    life_read, life_write = os.pipe()
    status_read, status_write = os.pipe()
    with (
        tempfile.TemporaryFile() as answer,
        tempfile.TemporaryFile() as talk,
        os.fdopen(status_read) as status,
    ):
        try:
            program = app_folder() / "workers" / "guard_program.py"
            guard = subprocess.Popen(
                [sys.executable, "-I", "-S", program, str(life_read), str(status_write), *argv],
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.PIPE,
                stdout=answer,
                stderr=talk,
                pass_fds=(life_read, status_write),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            os.close(life_write)
            raise InfrastructureError(f"cannot start {argv[0]!r} in {cwd}: {error}") from error
        finally:
            os.close(life_read)
            os.close(status_write)
        late = _followed(guard, prompt, life_write, timeout_seconds)
        return AgentRun("timed out" if late else _ending(status.read(), argv[0]), _read(answer), _read(talk))


def _followed(
    guard: "subprocess.Popen[bytes]", prompt: str, life: int, timeout_seconds: float | None
) -> bool:
    """Wait for the command's end; True when its time was up. Whatever happens here, it is gone afterwards."""
    late = False
    try:
        guard.communicate(prompt.encode(), timeout=timeout_seconds)
    except subprocess.TimeoutExpired:
        late = True
    finally:
        os.close(life)
        guard.wait(_END_SECONDS)
    return late


def _ending(told: str, command: str) -> str:
    last = told.splitlines()[-1] if told else "signalled 9"
    if last.startswith("unstartable"):
        number = int(last.split()[1])
        raise UsageError(f"{command} cannot be started: {os.strerror(number).lower()}")
    # A guard that was killed itself does not come to say how its command ended.
    return "signalled 9" if last.startswith("started") else last


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(MAX_BYTES).decode("utf-8", "replace")
