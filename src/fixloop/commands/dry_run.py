"""`run --dry`: show what would run and why, and run each check once, without a workflow."""

from pathlib import Path

from fixloop.commands.outcome import failure_lines
from fixloop.commands.screen import note, print_lines, short
from fixloop.commands.verdict import blocking, exit_code_of, missing_lines, verdict_of
from fixloop.configuration.installed import Installed
from fixloop.configuration.model import Configuration
from fixloop.configuration.preflight import lines, preflight_of
from fixloop.errors import ExitCode
from fixloop.intake.feature import Feature
from fixloop.intake.frozen_configuration import interpreter_at
from fixloop.intake.preparation import prepare
from fixloop.intake.trial import Asked, try_checks
from fixloop.protocol.checks import CheckResult, RunOutcome
from fixloop.protocol.failures import FailureRef, count_of
from fixloop.protocol.specialists import specialist as slot
from fixloop.repository.snapshot import Snapshot
from fixloop.servers.settings import load_settings


def try_feature(feature: Feature) -> ExitCode:
    """Show what would run, run each check once, print the results and return the exit code."""
    cache = load_settings().cache_dir
    prepared = prepare(None, feature, cache)
    note(*prepared.snapshot.notes)
    print_lines(*preflight_lines(prepared.configuration, prepared.snapshot))
    found = []
    for each in try_checks(
        Asked(snapshot=prepared.snapshot, configuration=prepared.configuration, cache=cache)
    ):
        found.append(each)
        result, where = each.result, slot(each.specialist).phase
        print_lines(f"{where}: {result.check}: {_came_to(result)}")
        if result.outcome is RunOutcome.FAILED:
            refs = [FailureRef.of(failure) for failure in result.failures]
            print_lines(*failure_lines(refs, len(refs)))
    name = feature.name or Path(prepared.snapshot.source).name.removesuffix(".git")
    unverified = prepared.configuration.unverified
    print_lines(f"{short(name, 60)}: {verdict_of(found, unverified)}")
    print_lines(*missing_lines(blocking(unverified) or (() if found else unverified)))
    return exit_code_of(found, unverified)


def preflight_lines(configuration: Configuration, snapshot: Snapshot) -> list[str]:
    """What will run, where, why and with what, and what will not; for a URL, as far as this machine can tell."""
    home = Path(snapshot.source) / snapshot.subdirectory
    if snapshot.is_url:
        return lines(preflight_of(configuration, home, None)._replace(directory=snapshot.source))
    return lines(preflight_of(configuration, home, Installed(interpreter_at(home), home, home)))


def _came_to(result: CheckResult) -> str:
    compared = result.evidence.compared(len(result.failures))
    took = "; ".join(filter(None, (f"{result.evidence.duration_seconds:.1f} s", compared)))
    if result.outcome is RunOutcome.FAILED:
        return f"{count_of(len(result.failures))}, {took}"
    if result.outcome is RunOutcome.PASSED:
        counts = result.evidence.counts
        total = f" ({counts.total} in all)" if counts.total and not compared else ""
        return f"passed{total}, {took}"
    return f"could not run: {short(result.reason, 400)}"
