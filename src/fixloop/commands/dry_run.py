"""`run --dry`: what would run and why, and each check once, without a workflow."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from fixloop.commands.exit_codes import ExitCode
from fixloop.commands.outcome import blocking, failure_lines, missing_lines, passed_over
from fixloop.commands.screen import note, print_lines, short
from fixloop.configuration.installed import Installed
from fixloop.configuration.model import Configuration
from fixloop.configuration.preflight import lines, preflight_of
from fixloop.intake.feature import Feature
from fixloop.intake.frozen_configuration import interpreter_at
from fixloop.intake.preparation import prepare
from fixloop.intake.trial import Tried, try_checks
from fixloop.protocol.checks import CheckResult, RunOutcome, Unverified
from fixloop.protocol.notices import count_of
from fixloop.protocol.specialists import specialist as slot
from fixloop.protocol.state import FailureRef
from fixloop.repository.snapshot import Snapshot
from fixloop.servers.settings import load_settings


def try_feature(feature: Feature) -> ExitCode:
    """Show what would run, run each check once, and say what came of it, with the exit code as well."""
    cache = load_settings().cache_dir
    prepared = prepare(None, feature, cache)
    note(*prepared.snapshot.notes)
    print_lines(*preflight_lines(prepared.configuration, prepared.snapshot))
    found = []
    for each in try_checks(prepared.snapshot, prepared.configuration, cache):
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
    """What will run, where, why and with what, and what will not; of a URL as far as this machine can tell."""
    home = Path(snapshot.source) / snapshot.subdirectory
    if snapshot.is_url:
        return lines(preflight_of(configuration, home, None)._replace(directory=snapshot.source))
    return lines(preflight_of(configuration, home, Installed(interpreter_at(home), home, home)))


def exit_code_of(found: Sequence[Tried], unverified: Sequence[Unverified]) -> ExitCode:
    if _of(found, RunOutcome.FAILED):
        return ExitCode.WRONG
    is_whole = _of(found, RunOutcome.PASSED) and not _of(found, RunOutcome.ERROR)
    return ExitCode.DONE if is_whole and not blocking(unverified) else ExitCode.WAITS


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


def verdict_of(found: Sequence[Tried], unverified: Sequence[Unverified]) -> str:
    """What the checks came to together, in one line."""
    failed, stopped = _of(found, RunOutcome.FAILED), _of(found, RunOutcome.ERROR)
    count = f"{len(found)} check{'s' * (len(found) > 1)}"
    if failed:
        failures = sum(len(each.result.failures) for each in failed)
        verdict = f"{count_of(failures)} in {len(failed)} of {len(found)} checks"
    elif stopped:
        verdict = f"not verified: {', '.join(each.result.check for each in stopped)} could not run"
    elif not _of(found, RunOutcome.PASSED):
        verdict = "not verified: nothing could run here"
    elif blocking(unverified):
        verdict = f"not verified (what ran has passed: {count})"
    else:
        verdict = f"passed ({count})"
    parts = [verdict, *passed_over(unverified)]
    optional = [
        f"{each.result.check} ({short(each.result.reason)})" for each in _of(found, RunOutcome.SKIPPED)
    ]
    if optional:
        parts.append(f"left out, being optional: {', '.join(optional)}")
    return "; ".join(parts)


def _of(found: Iterable[Tried], outcome: RunOutcome) -> list[Tried]:
    return [each for each in found if each.result.outcome is outcome]
