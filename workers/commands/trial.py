"""The process behind `fixloop.intake.trial`: each specialist's checks once on a snapshot, each on a ground of its own.

No ticket, no store and no Celery: what a run of the loop would commit is a line on standard output.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Final

from fixloop.configuration.model import Configuration, SpecialistChecks
from fixloop.errors import FixloopError, UsageError
from fixloop.intake.trial import NOTE, Asked, Refused, Tried
from fixloop.machine.guard import GuardedResult, run_guarded
from fixloop.protocol.checks import CheckResult, Evidence, RunOutcome
from fixloop.protocol.specialists import specialist as slot
from fixloop.repository.snapshot import mirror_of
from workers.commands.baseline import Circumstances, Comparing
from workers.commands.check_run import run_check
from workers.processes import lifeline
from workers.workspaces.ground import Attempt, ground_at
from workers.workspaces.workspace import sweep_workspaces

NO_LIMIT_SECONDS: Final = 24 * 3600.0


def main() -> int:
    """Read what is asked, write a line for each result; the exit code."""
    lifeline.attach()
    # A default handler would leave the workspace behind.
    signal.signal(signal.SIGTERM, _stop)
    try:
        _answer(sys.stdin.buffer.read())
    except KeyboardInterrupt:
        return 128 + signal.SIGTERM
    return 0


def _answer(asked: bytes) -> None:
    try:
        for each in tried(Asked.model_validate_json(asked)):
            _say(each)
    except FixloopError as error:
        _say(Refused(error=str(error), is_usage=isinstance(error, UsageError)))


def tried(asked: Asked) -> Iterator[Tried]:
    """The result of each check, in the order of the phases; the first ground that cannot be made ready is the end."""
    sweep_workspaces(asked.cache)
    commit = asked.snapshot.commit
    mirror_of(asked.snapshot, asked.cache).use(f"{NOTE}{commit}", commit, commit, asked.snapshot.copied)
    for entry in asked.configuration.specialists:
        for result in _results(asked, entry):
            yield Tried(specialist=entry.name, result=result)
            if result.check == "workspace":
                return


def _results(asked: Asked, entry: SpecialistChecks) -> Iterator[CheckResult]:
    snapshot, attempt = asked.snapshot, Attempt(f"try-{os.getpid()}.{entry.name}")
    with ground_at(snapshot, snapshot.commit, asked.configuration, asked.cache, attempt) as ground:
        if ground.problem:
            yield _unready(ground.problem, snapshot.tree)
            return
        tree = ground.workspace.tree_hash()
        run = partial(_guarded, entry.name, time.monotonic() + _limit_seconds(asked.configuration, entry))
        around = Circumstances(snapshot, asked.configuration, asked.cache, attempt, 0, run)
        with Comparing(around) as comparing:
            for check in entry.checks:
                ran = run_check(check, ground, tree, run)
                told = ran and comparing.without_old(entry.name, check, ran.result, ground)
                if told is not None:
                    yield told


def _guarded(
    specialist: str, until: float, argv: Sequence[str], cwd: Path, env: Mapping[str, str]
) -> GuardedResult:
    variables = {**env, "FIXLOOP_ROLE": slot(specialist).handle}
    return run_guarded(argv, cwd=cwd, env=variables, timeout_seconds=max(until - time.monotonic(), 0.1))


def _limit_seconds(configuration: Configuration, entry: SpecialistChecks) -> float:
    """For all checks of a specialist, as for a run of the loop."""
    own = entry.timeout_minutes
    minutes = configuration.limits.validation_minutes if own is None else own
    return minutes * 60 if minutes else NO_LIMIT_SECONDS


def _unready(problem: str, tree: str) -> CheckResult:
    evidence = Evidence(check="workspace", command="", tree=tree)
    return CheckResult(check="workspace", outcome=RunOutcome.ERROR, reason=problem, evidence=evidence)


def _say(value: Tried | Refused) -> None:
    sys.stdout.write(f"{value.model_dump_json()}\n")
    sys.stdout.flush()


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
