"""The process behind `fixloop.intake.trial`: runs all checks once on a snapshot, without a workflow
(docs/decisions/0036)."""

import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from fixloop.configuration.model import SpecialistChecks
from fixloop.errors import FixloopError, UsageError
from fixloop.intake.trial import NOTE, Asked, Refused, Tried
from fixloop.machine.guard import GuardedResult, run_guarded
from fixloop.protocol.checks import CheckResult, Evidence, RunOutcome
from fixloop.protocol.specialists import specialist as slot
from fixloop.repository.snapshot import mirror_of
from fixloop.servers.settings import load_settings, seal_key_of
from workers.commands.affected import affected
from workers.commands.baseline import Comparison
from workers.commands.check_run import Ran, Run
from workers.processes.lifeline import attach
from workers.workspaces.ground import Ground, Site
from workers.workspaces.workspace import sweep_workspaces

NO_LIMIT_SECONDS: Final = 24 * 3600.0
REFUSED: Final = 1
ENDED: Final = 128 + signal.SIGTERM
"""Exit codes."""


def main(_options: Mapping[str, Any]) -> int:
    """Read the request and write a line for each result; returns the exit code."""
    attach()
    # The default action would leave the workspace behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    ended, write_lock = threading.Event(), threading.Lock()
    try:
        asked = Asked.model_validate_json(sys.stdin.buffer.read())
        configurations = filter(None, (asked.configuration, asked.other))
        each = [asked.model_copy(update={"configuration": one}) for one in configurations]
        with ThreadPoolExecutor(len(each)) as threads:
            try:
                return max(threads.map(lambda one: _write_results(one, write_lock, ended), each))
            finally:
                ended.set()
    except KeyboardInterrupt:
        return ENDED


def _write_results(asked: Asked, write_lock: threading.Lock, ended: threading.Event) -> int:
    """Write the results; returns the exit code. `write_lock`: held while writing."""

    def say(value: Tried | Refused) -> None:
        with write_lock:
            sys.stdout.write(f"{value.model_dump_json()}\n")
            sys.stdout.flush()

    try:
        for each in tried(asked, ended):
            say(each)
    except FixloopError as error:
        say(Refused(error=str(error), is_usage=isinstance(error, UsageError)))
        ended.set()
        return REFUSED
    return 0


def tried(asked: Asked, ended: threading.Event) -> Iterator[Tried]:
    """The result of each check, in phase order, until `ended` is set or a ground cannot be prepared."""
    sweep_workspaces(asked.cache)
    snapshot, configuration = asked.snapshot, asked.configuration
    commit = snapshot.commit
    mirror_of(snapshot, asked.cache).use(f"{NOTE}{commit}", commit, commit, snapshot.copied)
    probed = set[tuple[str, str]]()
    for entry in configuration.specialists:
        name = f"check.{entry.name}"
        site = Site(snapshot, configuration, asked.cache, name, probed=probed, remembers=True)
        with site.ground(commit) as ground:
            if ground.problem:
                evidence = Evidence(check="workspace", command="", tree=snapshot.tree)
                failed = CheckResult(
                    check="workspace", outcome=RunOutcome.ERROR, reason=ground.problem, evidence=evidence
                )
                yield Tried(specialist=entry.name, result=failed)
                return
            run = _limited_run(entry, asked, site, ended)
            tree = ground.tree
            done = list[Ran]()
            with Comparison(site, run) as comparison:
                for check in entry.checks:
                    first = affected(check, ground, site) if asked.changed else None
                    ran = comparison.checked(entry.name, first, ground, tree) if first else None
                    if not ran or ran.result.outcome is not RunOutcome.FAILED:
                        ran = None if ended.is_set() else comparison.checked(entry.name, check, ground, tree)
                    if ran:
                        done.append(ran)
                        yield Tried(specialist=entry.name, result=ran.result)
            if asked.seals and len(done) == len(entry.checks):
                _seal(site, ground, entry, done)


def _seal(site: Site, ground: Ground, entry: SpecialistChecks, ran: Sequence[Ran]) -> None:
    file = seal_key_of(load_settings(), Path(site.snapshot.source))
    if file is None or not file.exists() or not load_settings().take_over_seconds:
        return
    # Slow to import, and most checked projects have no history.
    from fixloop.store.seal import sealing_in
    from workers.commands.checked import seal

    with suppress(FixloopError, OSError):
        if sealing := sealing_in(file):
            seal(site, ground, entry, ran, sealing)


def _limited_run(entry: SpecialistChecks, asked: Asked, site: Site, ended: threading.Event) -> Run:
    """A `Run` with one time limit for all checks of a specialist together, as in a workflow."""
    usual_minutes = asked.configuration.limits.validation_minutes
    minutes = usual_minutes if entry.timeout_minutes is None else entry.timeout_minutes
    until = time.monotonic() + (minutes * 60 if minutes else NO_LIMIT_SECONDS)
    handle = slot(entry.name).handle

    def run(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> GuardedResult | None:
        rest = max(until - time.monotonic(), 0.1)
        variables, confined = site.started(argv, cwd, {**env, "FIXLOOP_ROLE": handle}, network=entry.network)
        result = run_guarded(
            argv, cwd=cwd, env=variables, timeout_seconds=rest, cancelled=ended.is_set, confined=confined
        )
        return None if result.cancelled else result

    return run
