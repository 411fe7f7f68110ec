"""The process behind `fixloop.intake.trial`: all checks once on a snapshot, no workflow (docs/decisions/0036)."""

import fcntl
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Final

from fixloop.configuration.model import SpecialistChecks
from fixloop.errors import FixloopError, UsageError
from fixloop.intake.trial import NOTE, Asked, Refused, Tried
from fixloop.machine.guard import GuardedResult, run_guarded
from fixloop.protocol.checks import CheckResult, Evidence, RunOutcome
from fixloop.protocol.specialists import specialist as slot
from fixloop.repository.snapshot import mirror_of
from workers.commands.baseline import Comparison
from workers.commands.check_run import Run
from workers.processes.lifeline import attach
from workers.workspaces.ground import Site
from workers.workspaces.workspace import sweep_workspaces

NO_LIMIT_SECONDS: Final = 24 * 3600.0
REFUSED: Final = 1
ENDED: Final = 128 + signal.SIGTERM
"""Exit codes."""


def main(_options: Mapping[str, Any]) -> int:
    """Read what is asked, write a line for each result; the exit code."""
    attach()
    # The system's own handler would leave the workspace behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryFile() as turn:
        return _shared(turn)


def _shared(turn: IO[bytes]) -> int:
    """What is asked, by this process and one that is forked for what runs beside it."""
    child = 0
    try:
        asked = Asked.model_validate_json(sys.stdin.buffer.read())
        if asked.beside is not None and (child := os.fork()) == 0:
            # All is loaded already. No thread comes along, so it watches its own lifeline.
            attach()
            os._exit(_told(asked.model_copy(update={"configuration": asked.beside}), turn))
        code = _told(asked, turn)
        if child and code == 0:
            ended, child = os.waitpid(child, 0)[1], 0
            code = os.waitstatus_to_exitcode(ended)
    except KeyboardInterrupt:
        code = ENDED
    if child:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
    return code


def _told(asked: Asked, turn: IO[bytes]) -> int:
    """Write the results; the exit code. `turn`: a file that is locked by who writes."""
    try:
        for each in tried(asked):
            _say(each, turn)
    except FixloopError as error:
        _say(Refused(error=str(error), is_usage=isinstance(error, UsageError)), turn)
        return REFUSED
    except KeyboardInterrupt:
        return ENDED
    return 0


def tried(asked: Asked) -> Iterator[Tried]:
    """The result of each check, in the order of the phases; the first ground that cannot be made ready is the end."""
    sweep_workspaces(asked.cache)
    snapshot, configuration = asked.snapshot, asked.configuration
    commit = snapshot.commit
    mirror_of(snapshot, asked.cache).use(f"{NOTE}{commit}", commit, commit, snapshot.copied)
    probed = set[tuple[str, str]]()
    for entry in configuration.specialists:
        name = f"try-{os.getpid()}.{entry.name}"
        site = Site(snapshot, configuration, asked.cache, name, probed=probed)
        with site.ground(commit) as ground:
            if ground.problem:
                evidence = Evidence(check="workspace", command="", tree=snapshot.tree)
                failed = CheckResult(
                    check="workspace", outcome=RunOutcome.ERROR, reason=ground.problem, evidence=evidence
                )
                yield Tried(specialist=entry.name, result=failed)
                return
            run = _limited(entry, asked, site)
            tree = ground.workspace.tree_hash()
            if asked.mypy_cache and any(map(_is_mypy, (check.command for check in entry.checks))):
                _date_by(f"{tree} {snapshot.copied}", ground.workspace.path)
            with Comparison(site, run) as comparison:
                for check in entry.checks:
                    if ran := comparison.checked(entry.name, check, ground, tree):
                        yield Tried(specialist=entry.name, result=ran.result)


def _limited(entry: SpecialistChecks, asked: Asked, site: Site) -> Run:
    """Runs commands; the limit is for all checks of a specialist together, as for a run of the loop."""
    usual_minutes = asked.configuration.limits.validation_minutes
    minutes = usual_minutes if entry.timeout_minutes is None else entry.timeout_minutes
    until = time.monotonic() + (minutes * 60 if minutes else NO_LIMIT_SECONDS)
    handle = slot(entry.name).handle

    def run(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> GuardedResult:
        rest = max(until - time.monotonic(), 0.1)
        variables, writable = {**env, "FIXLOOP_ROLE": handle}, list[str]()
        # No other command is told where it is, and a project that names a place of its own keeps it.
        own = Path(env.get("MYPY_CACHE_DIR", "")).is_relative_to(asked.cache)
        if asked.mypy_cache and own and _is_mypy(argv):
            asked.mypy_cache.mkdir(parents=True, exist_ok=True)
            writable = [str(asked.mypy_cache)]
            variables["MYPY_CACHE_DIR"] = writable[0]
        confined = site.confined(cwd, variables, writable=writable, network=entry.network)
        return run_guarded(argv, cwd=cwd, env=variables, timeout_seconds=rest, confined=confined)

    return run


def _is_mypy(command: Sequence[str]) -> bool:
    return "mypy" in map(os.path.basename, command)


def _date_by(content: str, folder: Path) -> None:
    """Give all modules a date that no other content has: for mypy's cache a file of the same size and second is the
    same, and two workspaces are made within one. It is after 1980, before which a ZIP file knows no date."""
    seconds = 946_684_800 + int(sha256(content.encode()).hexdigest()[:7], 16)
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith((".py", ".pyi")):
                os.utime(os.path.join(place, name), (seconds, seconds), follow_symlinks=False)


def _say(value: Tried | Refused, turn: IO[bytes]) -> None:
    # A long line is written in several pieces, and two processes write.
    fcntl.lockf(turn, fcntl.LOCK_EX)
    sys.stdout.write(f"{value.model_dump_json()}\n")
    sys.stdout.flush()
    fcntl.lockf(turn, fcntl.LOCK_UN)
