"""Looking at things without a workflow: `read`, `doctor`, `init`, `audit verify`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from fixloop.archive.files import archive_at
from fixloop.commands.doctor import Finding, examine
from fixloop.commands.exit_codes import ExitCode
from fixloop.commands.initiating import COVERAGE_REPORT, first_text
from fixloop.commands.screen import print_json, print_lines, say
from fixloop.commands.session import AsJson, OptionalIssue, ProjectOption, here, open_session
from fixloop.configuration.document import FILE_NAME
from fixloop.configuration.model import FailOn
from fixloop.configuration.preflight import Preflight, as_document, lines
from fixloop.engine.replay import Audit, audit
from fixloop.errors import FixloopError, NotVerifiedError, RefusedError, UsageError
from fixloop.intake.frozen_configuration import preflight_at
from fixloop.protocol.checks import RunOutcome
from fixloop.reports import Report, as_json, read_report
from fixloop.repository.identity import top_of
from fixloop.servers.settings import load_settings

SHOWN_FAILURES: Final = 50


class Kind(StrEnum):
    """The readers there are."""

    JUNIT = "junit"
    SARIF = "sarif"
    COVERAGE = "coverage"
    JEST = "jest"
    ESLINT = "eslint"
    GO_TEST = "go-test"
    CARGO_TEST = "cargo-test"
    CLIPPY = "clippy"


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.command()(read)
    app.command()(doctor)
    app.command(name="init")(init_command)
    audits = typer.Typer(help="Check that a history is what was recorded.", rich_markup_mode=None)
    audits.callback()(_audit)
    audits.command(name="verify")(verify)
    app.add_typer(audits, name="audit")


def read(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The report.")],
    kind: Annotated[Kind, typer.Option("--as", help="What it is.")],
    json: AsJson = False,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="From which SARIF level a result fails.")
    ] = FailOn.ERROR,
    gate: Annotated[
        float | None,
        typer.Option(
            "--gate", min=0, max=100, help="The least percentage of a coverage report.", show_default="none"
        ),
    ] = None,
) -> None:
    """
    Show what fixloop makes of a report.

    Starts nothing. Exit code 0: passed; 1: failed, or a file that proves nothing.
    """
    report = read_report(file, kind.value, root=here(), fail_on=fail_on, gate=gate)
    if json:
        print_json(as_json(report))
    else:
        print_lines(*_report_lines(report))
    if report.outcome is not RunOutcome.PASSED:
        raise typer.Exit(ExitCode.WRONG)


def doctor(
    json: AsJson = False,
    rejected: Annotated[
        bool, typer.Option("--rejected", help="Only show the last broker messages that no worker could take.")
    ] = False,
) -> None:
    """
    Tell what is wrong with this machine.

    One line for each check, each with its remedy; exit code 1 when something is wrong. Looks at Python,
    git, the cache and Redis, as the FIXLOOP_ variables name them, and at what the checks of this folder need.
    """
    if rejected:
        _show_rejected(json)
        return
    plan, checks = _checks_of(here())
    findings = [*examine(load_settings(), top_of(here())[0]), *checks]
    if json:
        print_json(
            {
                "findings": [finding._asdict() for finding in findings],
                "preflight": as_document(plan) if plan is not None else None,
            }
        )
    else:
        print_lines(*[*map(str, findings), *(lines(plan) if plan is not None else ())])
    if any(finding.ok is False for finding in findings):
        raise typer.Exit(ExitCode.WRONG)


def _show_rejected(as_json: bool) -> None:
    with open_session(create=False) as session:
        found = session.store.rejections()
    if as_json:
        kept = [each._asdict() | {"at": each.at.isoformat()} for each in found.kept]
        print_json({"total": found.total, "kept": kept})
        return
    for each in found.kept:
        print_lines(f"{each.at:%Y-%m-%d %H:%M:%SZ} {each.queue}: {each.why}", f"    {each.text}")
    say(f"{found.total} were rejected in all, the last {len(found.kept)} of them are kept")


def init_command(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The project's folder.")] = Path("."),
    coverage: Annotated[
        float | None,
        typer.Option(
            "--coverage",
            min=0,
            max=100,
            help="Today's coverage in percent; below 80 it becomes the gate.",
            show_default=f"that of {COVERAGE_REPORT} if there is one, else what is measured",
        ),
    ] = None,
    no_try: Annotated[
        bool, typer.Option("--no-try", help="Write it without running the checks once.")
    ] = False,
) -> None:
    """
    Write a commented fixloop.toml.

    It names what is detected here, runs each check once in a workspace and says what came of it: one that could
    not run is written as a comment. An existing file is never written over.
    """
    if not path.is_dir():
        raise UsageError(f"{path} is not a folder; name the folder of the project")
    text = first_text(path, coverage=coverage, is_tried=not no_try)
    target = path / FILE_NAME
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise RefusedError(f"{target} exists already; edit it, or remove it first") from None
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror}") from None
    print_lines(str(target))
    say("read it; `fixloop run` goes by it")


def _checks_of(directory: Path) -> tuple[Preflight | None, list[Finding]]:
    """What would run in this folder, and what is wrong with it."""
    try:
        plan = preflight_at(directory)
    except NotVerifiedError as error:
        return None, [Finding("checks", False, str(error))]
    except FixloopError as error:
        return None, [Finding("checks", None, str(error))]
    missing = [
        Finding(
            entry.name, False if entry.blocks else None, f"{entry.specialist}: {entry.reason}", entry.remedy
        )
        for entry in plan.unverified
    ]
    count = len(plan.checks)
    return plan, [Finding("checks", True, f"{count} check{'s' * (count > 1)} can run here"), *missing]


def _audit() -> None:
    """Check that a history is what was recorded."""


def verify(issue: OptionalIssue = None, json: AsJson = False, project: ProjectOption = None) -> None:
    """
    Check a history's digests and decisions.

    The chain of digests is checked, and every decision made once more. Without ISSUE: all workflows of
    the project. Exit code 1 when anything is not as it was committed.
    """
    with open_session() as session:
        chosen = session.stored_of(project) if issue is None else [session.workflow_of(issue, project)]
        audits = [audit(session.store, workflow) for workflow in chosen]
        target = archive_at(session.settings.archive_dir)
        damaged = list(target.damaged()) if target is not None and issue is None else []
    if json:
        print_json({"workflows": [_audit_document(each) for each in audits], "damaged": damaged})
    else:
        print_lines(*[*(line for each in audits for line in _audit_lines(each)), *damaged])
    if any(each.problems for each in audits):
        raise typer.Exit(ExitCode.WRONG)


def _report_lines(report: Report) -> list[str]:
    counts = report.counts
    lines = [f"{report.outcome}: {report.reason}"]
    if counts.total:
        lines.append(
            f"{counts.total} in all: {counts.passed} passed, {counts.failed} failed,"
            f" {counts.errors} errors, {counts.skipped} skipped"
        )
    for failure in report.failures[:SHOWN_FAILURES]:
        where = f" ({failure.location})" if failure.location else ""
        lines.append(f"  {failure.name}{where}: {failure.error_type}")
        lines.extend(f"      {line}" for line in failure.message.splitlines()[:3])
    if len(report.failures) > SHOWN_FAILURES:
        lines.append(f"  and {len(report.failures) - SHOWN_FAILURES} more; --json lists all")
    return lines


def _audit_document(found: Audit) -> dict[str, object]:
    return found._asdict() | {"workflow_id": found.workflow, "problems": list(found.problems)}


def _audit_lines(found: Audit) -> list[str]:
    if found.problems:
        return [f"{found.workflow}: {problem}" for problem in found.problems]
    rest = found.entries - found.replayed
    chain = f" ({rest} by their chain alone: another version decided them)" if rest else ""
    return [f"{found.workflow}: verified: {found.entries} entries{chain}"]
