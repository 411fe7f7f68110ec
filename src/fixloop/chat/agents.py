"""
Running one command that plays a role: its prompt on stdin, its answer on stdout, and nothing of it left behind.

It runs under guard: when this process dies, however it dies, the command and all it started die with it. An agent
that lived on would edit files beside its successor.
"""

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.errors import UsageError
from fixloop.machine.guard import run_guarded
from fixloop.secrets.redaction import Redaction

MAX_BYTES: Final = 1024 * 1024
"""Of an answer; what is printed beyond is not read."""


class AgentRun(NamedTuple):
    """How a command ended and what it printed, without secrets of this environment."""

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
    result = run_guarded(
        argv,
        cwd=cwd,
        env=env,
        stdin=prompt.encode(),
        timeout_seconds=timeout_seconds if timeout_seconds is not None else math.inf,
        output_limit_bytes=2 * MAX_BYTES,
        apart=True,
    )
    if result.not_found:
        raise UsageError(f"{argv[0]} cannot be started: there is no such program, or it may not be run")
    # Secrets first: half of one could survive at the edge of a cut.
    answer, talk = map(Redaction.of((), os.environ).text, (result.output, result.talk))
    ending = f"exited {result.exit_code}" if result.signal is None else f"signalled {result.signal}"
    return AgentRun("timed out" if result.timed_out else ending, answer[:MAX_BYTES], talk[:MAX_BYTES])
