"""The file where agents of a chaos run record their starts: one line for each execution of a step."""

import os
import time
from pathlib import Path
from typing import NamedTuple

from fixloop.testing.clock import skew_seconds


class Execution(NamedTuple):
    """One start of an agent; a line of the file that `FIXLOOP_EXECUTIONS` names."""

    ticket: str
    fence: int
    step: str
    tree: str
    pid: int
    at: float
    """A time of `time.monotonic()`."""
    skew_seconds: float = 0.0
    """The error of the wall clock, as the agent saw it."""


def record_execution(path: str, ticket: str, fence: int, step: str, tree: str) -> None:
    line = f"{ticket} {fence} {step} {tree} {os.getpid()} {time.monotonic():.6f} {skew_seconds():.1f}\n"
    # One write to an appending descriptor: lines of many processes do not mix.
    with open(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab", buffering=0) as file:
        file.write(line.encode())


def executions_in(path: Path) -> list[Execution]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found = []
    for line in lines:
        ticket, fence, step, tree, pid, at, skew = line.split()
        found.append(Execution(ticket, int(fence), step, tree, int(pid), float(at), float(skew)))
    return found
