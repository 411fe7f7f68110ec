"""Each check of a configuration once on a snapshot, without a workflow: no Redis, no number, no worker.

The checks run in a process of the application, through the code that a worker's specialists run through.
"""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
"""What a mirror notes such a snapshot as, with the commit behind it: where a workflow's is noted as the workflow."""


CHANGED: Final = " (changed)"
"""The end of a check's name where it is run for some of its tests alone."""


class Asked(Value):
    """What the process is to do, on its standard input."""

    snapshot: Snapshot
    configuration: Configuration
    beside: Configuration | None = None
    """What runs at the same time: results come as they are there."""
    cache: Path
    seals: bool = False
    """The whole results are kept for a `fixloop run`, where the project has a key to seal them with."""
    changed: bool = False
    """Tests that can be affected by what has changed since the base run first; where they fail, no others do."""


class Tried(Value):
    """What one check came to; a line of the process' output."""

    specialist: str
    result: CheckResult


class Refused(Value):
    """Why it did not go on; its last line."""

    error: str
    is_usage: bool


_LINE: Final = TypeAdapter[Tried | Refused](Tried | Refused)


def try_checks(asked: Asked, until: float = inf) -> Iterator[Tried]:
    """
    Run every check of every specialist once, in the order of the phases; each result as soon as it is there.

    Where a workspace cannot be made ready, the one result is an error of a check named `workspace`. What runs at
    `until`, by the monotonic clock, is ended without a result.
    """
    with taken("try").ending() as process, _ended_at(until, process):
        assert process.stdin is not None
        assert process.stdout is not None
        # Of one that is gone already its exit code tells.
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


@contextmanager
def _ended_at(until: float, process: subprocess.Popen[bytes]) -> Iterator[None]:
    timer = Timer(max(until - time.monotonic(), 0), process.terminate)
    if until < inf:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
