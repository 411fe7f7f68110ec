"""`read`: show how fixloop reads a tool's report."""

from pathlib import Path
from typing import Annotated, Final, Literal

from typer import Argument, Exit, Option

from fixloop.commands.screen import print_json, print_lines
from fixloop.commands.session import AsJson, here
from fixloop.configuration.values import FailOn
from fixloop.errors import ExitCode
from fixloop.protocol.checks import RunOutcome
from fixloop.reports import as_json, read_report

SHOWN_FAILURES: Final = 50
Kind = Literal["junit", "sarif", "coverage", "jest", "eslint", "go-test", "cargo-test", "clippy"]


def read(
    file: Annotated[Path, Argument(metavar="FILE", help="The report.")],
    kind: Annotated[Kind, Option("--as", help="Its format.")],
    json: AsJson = False,
    fail_on: Annotated[FailOn, Option(help="The lowest SARIF level that fails.")] = FailOn.ERROR,
    gate: Annotated[
        float | None, Option(min=0, max=100, help="The minimum coverage in percent.", show_default="none")
    ] = None,
) -> None:
    """
    Show how fixloop reads a report.

    Runs nothing. Exit code 0: passed; 1: failed, or the file proves nothing.
    """
    report = read_report(file, kind, root=here(), fail_on=fail_on, gate=gate)
    if json:
        print_json(as_json(report))
    else:
        print_lines(f"{report.outcome}: {report.reason}")
        counts = report.counts
        if counts.total:
            print_lines(
                f"{counts.total} in all: {counts.passed} passed, {counts.failed} failed,"
                f" {counts.errors} errors, {counts.skipped} skipped"
            )
        for failure in report.failures[:SHOWN_FAILURES]:
            where = f" ({failure.location})" if failure.location else ""
            print_lines(f"  {failure.name}{where}: {failure.error_type}")
            print_lines(*(f"      {line}" for line in failure.message.splitlines()[:3]))
        if len(report.failures) > SHOWN_FAILURES:
            print_lines(f"  and {len(report.failures) - SHOWN_FAILURES} more; --json lists all")
    if report.outcome is not RunOutcome.PASSED:
        raise Exit(ExitCode.WRONG)
