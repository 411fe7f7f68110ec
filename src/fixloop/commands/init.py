"""`init` writes a first fixloop.toml with what it detects, after running each check once as it will be written."""

import tomllib
from pathlib import Path
from typing import Annotated, Final

from typer import Argument, Option

from fixloop.commands.screen import print_lines, say
from fixloop.configuration.coding_agents import CODING_AGENTS
from fixloop.configuration.document import FILE_NAME, Document, read_document
from fixloop.configuration.init import NOTHING_DETECTED, Outcome, first_configuration, init, unmeasured
from fixloop.configuration.installed import Installed
from fixloop.configuration.loader import load_configuration
from fixloop.configuration.model import Configuration
from fixloop.configuration.preflight import lines, preflight_of
from fixloop.errors import RefusedError, UsageError
from fixloop.intake.frozen_configuration import installed_at
from fixloop.intake.trial import Asked, Tried, try_checks
from fixloop.outside.hook_dialects import DIALECTS
from fixloop.protocol.checks import RunOutcome
from fixloop.protocol.failures import count_of
from fixloop.reports import read_report
from fixloop.repository.snapshot import take_snapshot
from fixloop.servers.settings import load_settings

COVERAGE_REPORT: Final = "coverage.json"
TESTS: Final = "test-runner"


def init_command(
    path: Annotated[Path, Argument(metavar="PATH", help="The project's folder.")] = Path("."),
    coverage: Annotated[
        float | None,
        Option(
            min=0,
            max=100,
            help="Current coverage in percent; below 80 it becomes the gate.",
            show_default=f"from {COVERAGE_REPORT} if it exists, else measured",
        ),
    ] = None,
    agent: Annotated[
        str, Option(metavar="NAME", help=f"Who fixes failures: {', '.join(CODING_AGENTS)}.")
    ] = "",
    no_try: Annotated[bool, Option("--no-try", help="Do not run the checks before writing.")] = False,
) -> None:
    """
    Write a commented fixloop.toml.

    Detects the project's checks, runs each once in a workspace and prints the result. A check that could not run
    is written as a comment. Never overwrites an existing file.
    """
    if not path.is_dir():
        raise UsageError(f"{path} is not a folder; name the folder of the project")
    if agent and agent not in CODING_AGENTS:
        raise UsageError(
            f"agent {agent!r} is unknown; choose from {', '.join(CODING_AGENTS)}, or write [fixer] yourself"
        )
    text = _first_text(path, agent, coverage=coverage, is_tried=not no_try)
    target = path / FILE_NAME
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise RefusedError(f"{target} exists already; edit it, or remove it first") from None
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror}") from None
    print_lines(str(target))
    say("add the checks to run" if NOTHING_DETECTED in text else "review it; `fixloop run` uses it")
    if agent:
        say(f'try its command once, as agents change their flags: `echo "say hello" | {agent} …`')
    if agent in DIALECTS:
        say(f"`fixloop hook install --agent {agent}` gives it the verdict when it works on its own")


def _first_text(directory: Path, agent: str, *, coverage: float | None, is_tried: bool) -> str:
    """The file's text; what will run, and its results, go to stderr."""
    installed = installed_at(directory)
    first = first_configuration(directory, installed)
    for line in lines(preflight_of(first, directory, installed)):
        say(line)
    report = directory / COVERAGE_REPORT
    if coverage is None and report.is_file():
        coverage = read_report(report, "coverage").coverage_percent
    if not is_tried or not first.specialists:
        return init(first, measured_coverage=coverage, agent=agent)
    found = _tried(directory, first, installed)
    failed = not all(_passed(each) for each in found.values() if each.specialist == TESTS)
    tests = next((entry for entry in first.specialists if entry.name == TESTS), None)
    if tests is not None and failed and any("coverage" in check.report_kinds() for check in tests.checks):
        # Measuring may be what breaks them: try them alone and without it.
        checks = tuple(
            check.model_copy(update={"command": unmeasured(check.command), "coverage_percent": None})
            for check in tests.checks
        )
        plain = tests.model_copy(update={"checks": checks})
        again = _tried(directory, first.model_copy(update={"specialists": (plain,)}), installed)
        if all(map(_passed, again.values())):
            entries = tuple(plain if entry is tests else entry for entry in first.specialists)
            first, found = first.model_copy(update={"specialists": entries}), found | again
    outcomes = {
        key: Outcome(_passed(each), each.result.outcome is RunOutcome.FAILED, _reason(each))
        for key, each in found.items()
    }
    measured = [each.result.evidence.coverage_percent for each in found.values()]
    if coverage is None:
        coverage = next((percent for percent in measured if percent is not None), None)
    return init(first, measured_coverage=coverage, outcomes=outcomes, agent=agent)


def _tried(directory: Path, first: Configuration, installed: Installed) -> dict[tuple[str, str], Tried]:
    """By specialist and check, each as the file will define it, with a gate that everything reaches."""
    table = tomllib.loads(init(first, measured_coverage=0))
    document = read_document(directory)
    written = Document(document.place, table, True, document.pyproject)
    configuration = load_configuration(directory, document=written, installed=installed)
    cache = load_settings().cache_dir
    snapshot = take_snapshot(directory, issue=0, cache=cache)
    found = {}
    for each in try_checks(Asked(snapshot=snapshot, configuration=configuration, cache=cache)):
        passed, seconds = "passed" if _passed(each) else _reason(each), each.result.evidence.duration_seconds
        say(f"{each.specialist}: {each.result.check}: {passed} ({seconds:.1f} s)")
        found[each.specialist, each.result.check] = each
    return found


def _passed(tried: Tried) -> bool:
    return tried.result.outcome is RunOutcome.PASSED


def _reason(tried: Tried) -> str:
    if tried.result.outcome is RunOutcome.FAILED:
        return count_of(len(tried.result.failures))
    return tried.result.reason
