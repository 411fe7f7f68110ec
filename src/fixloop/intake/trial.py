"""Runs each check of a configuration once on a snapshot, without a workflow: no Redis, no number, no worker.

The checks run in a process of the application, with the same code as a worker's specialists.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from math import inf
from pathlib import Path
from threading import Timer
from typing import Final

from pydantic import TypeAdapter

from fixloop.configuration.model import Configuration
from fixloop.errors import InfrastructureError, UsageError
from fixloop.machine.attached import taken
from fixloop.protocol.checks import CheckResult
from fixloop.protocol.event import Value
from fixloop.repository.snapshot import Snapshot

NOTE: Final = "tried-"
"""The prefix of such a snapshot's note in a mirror, before the commit; a workflow's note is its id."""
CHANGED: Final = " (changed)"
"""The suffix of a check's name if only some of its tests are run."""


class Asked(Value):
    """The process's instructions, on its standard input."""

    snapshot: Snapshot
    configuration: Configuration
    other: Configuration | None = None
    """The checks to run in parallel; results are reported as they arrive."""
    cache: Path
    seals: bool = False
    """Store the complete results for a `fixloop run`, if the project has a key to seal them with."""
    changed: bool = False
    """Run tests that the changes since the base can affect first; if they fail, run no others."""


class Tried(Value):
    """The result of one check; a line of the process's output."""

    specialist: str
    result: CheckResult


class Refused(Value):
    """Why it stopped; its last line."""

    error: str
    is_usage: bool


_LINE: Final = TypeAdapter[Tried | Refused](Tried | Refused)


def try_checks(asked: Asked, until: float = inf) -> Iterator[Tried]:
    """
    Run every check of every specialist once, in the order of the phases; yields each result as it arrives.

    If a workspace cannot be prepared, the only result is an error of a check named `workspace`. A check that runs at
    `until`, by the monotonic clock, is ended without a result.
    """
    with taken("try").ending() as process, ExitStack() as ending:
        if until < inf:
            timer = Timer(max(until - time.monotonic(), 0), process.terminate)
            ending.callback(timer.cancel)
            timer.start()
        assert process.stdin is not None
        assert process.stdout is not None
        # If the process is gone already, its exit code says so.
        with suppress(ConnectionError), process.stdin as written:
            written.write(asked.model_dump_json(by_alias=True).encode())
        for line in process.stdout:
            said = _LINE.validate_json(line)
            if isinstance(said, Refused):
                raise UsageError(said.error) if said.is_usage else InfrastructureError(said.error)
            yield said
        if process.wait() != 0 and time.monotonic() < until:
            told = f"the process that runs the checks ended with exit code {process.returncode}"
            raise InfrastructureError(told)
