"""What `fixloop init` writes: what is detected, after each of its checks has been run once as it will be written."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fixloop.commands.screen import say
from fixloop.configuration.document import Document, read_document
from fixloop.configuration.init import Outcome, first_configuration, init, unmeasured
from fixloop.configuration.installed import Installed
from fixloop.configuration.loading import configuration_from
from fixloop.configuration.model import Configuration
from fixloop.configuration.preflight import lines, preflight_of
from fixloop.intake.frozen_configuration import installed_at
from fixloop.intake.trial import Tried, try_checks
from fixloop.protocol.checks import RunOutcome
from fixloop.protocol.notices import count_of
from fixloop.reports import read_report
from fixloop.repository.snapshot import take_snapshot
from fixloop.servers.settings import load_settings

COVERAGE_REPORT: Final = "coverage.json"
TESTS: Final = "test-runner"


def first_text(directory: Path, *, coverage: float | None, is_tried: bool) -> str:
    """
    The text of a first fixloop.toml for `directory`; what will run, and what it came to, is said on stderr.

    Args:
        directory: the project's folder.
        coverage: today's, in percent, where somebody says it.
        is_tried: each check is run once before it is written.

    Raises:
        UsageError: fixloop is configured here already, or the folder cannot be used.
    """
    installed = installed_at(directory)
    first = first_configuration(directory, installed)
    say("\n".join(lines(preflight_of(first, directory, installed))))
    if coverage is None:
        coverage = _reported(directory / COVERAGE_REPORT)
    if not is_tried or not first.specialists:
        return init(first, measured_coverage=coverage)
    found = {(each.specialist, each.result.check): each for each in _tried(directory, first, installed)}
    plain = _plain_tests(first)
    if plain is not None and not all(_passed(each) for each in found.values() if each.specialist == TESTS):
        # Measuring may be what breaks them.
        again = {(each.specialist, each.result.check): each for each in _tried(directory, plain, installed)}
        if all(map(_passed, again.values())):
            first, found = _with_tests_of(plain, first), found | again
    outcomes = {
        key: Outcome(_passed(each), each.result.outcome is RunOutcome.FAILED, _reason(each))
        for key, each in found.items()
    }
    measured = [each.result.evidence.coverage_percent for each in found.values()]
    if coverage is None:
        coverage = next((percent for percent in measured if percent is not None), None)
    return init(first, measured_coverage=coverage, outcomes=outcomes)


def _tried(directory: Path, first: Configuration, installed: Installed) -> Iterator[Tried]:
    """Each check as the file will have it, with a gate that everything reaches."""
    table = tomllib.loads(init(first, measured_coverage=0))
    document = read_document(directory)
    written = Document(document.place, table, True, document.pyproject)
    configuration = configuration_from(written, directory, installed=installed)
    cache = load_settings().cache_dir
    snapshot = take_snapshot(directory, issue=0, cache=cache)
    for each in try_checks(snapshot, configuration, cache):
        passed = "passed" if _passed(each) else _reason(each)
        say(
            f"{each.specialist}: {each.result.check}: {passed} ({each.result.evidence.duration_seconds:.1f} s)"
        )
        yield each


def _plain_tests(first: Configuration) -> Configuration | None:
    """The tests alone and without measuring; None where nothing is measured."""
    entries = [entry for entry in first.specialists if entry.name == TESTS]
    checks = [check for entry in entries for check in entry.checks]
    if not any("coverage" in check.report_kinds() for check in checks):
        return None
    plain = tuple(
        check.model_copy(update={"command": unmeasured(check.command), "coverage_percent": None})
        for check in checks
    )
    return first.model_copy(
        update={"specialists": tuple(entry.model_copy(update={"checks": plain}) for entry in entries)}
    )


def _with_tests_of(plain: Configuration, first: Configuration) -> Configuration:
    tests = plain.specialist(TESTS)
    return first.model_copy(
        update={"specialists": tuple(tests if entry.name == TESTS else entry for entry in first.specialists)}
    )


def _passed(tried: Tried) -> bool:
    return tried.result.outcome is RunOutcome.PASSED


def _reason(tried: Tried) -> str:
    if tried.result.outcome is RunOutcome.FAILED:
        return count_of(len(tried.result.failures))
    return tried.result.reason


def _reported(report: Path) -> float | None:
    return read_report(report, "coverage").coverage_percent if report.is_file() else None
