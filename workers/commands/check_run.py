"""Runs one check on a ground and judges it by its exit code and reports, with or without a workflow.

A result names the tree it was computed on; tracked files are compared with it after each check, and a check that
changes one is an error.
"""

import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.configuration.commands import is_foreign, only_reads, program_of
from fixloop.configuration.model import Check
from fixloop.machine.guard import GuardedResult
from fixloop.protocol.checks import CheckResult, Evidence, RunOutcome
from fixloop.reports.document import bytes_if_any
from fixloop.reports.examples import with_examples, without_reports
from fixloop.reports.verdict import judge
from workers.workspaces.frozen_environment import planted
from workers.workspaces.ground import Ground
from workers.workspaces.node_modules import changed_packages, written_into

COMMAND_NOT_FOUND: Final = 127
OUTPUT_BYTES: Final = 1_000_000
"""The end of a printed report that is kept as the command's output."""
REPORT_LIMIT_BYTES: Final = 16 * 1024 * 1024
"""A longer report is not kept."""

# A long report exceeds the limit for output, and must not be truncated.
_INTO_FILE: Final = 'exec "$@" >"$0" 2>&1'


class Ran(NamedTuple):
    """A finished check: its result, output and reports."""

    result: CheckResult
    output: str
    """Redacted."""
    reports: tuple[Path, ...] = ()
    """Report paths on the ground; valid while it exists."""

    def written(self) -> Iterator[bytes]:
        """The content of each report; empty if it is missing or too long."""
        for path in self.reports:
            yield b"" if _is_link(path) else bytes_if_any(path, REPORT_LIMIT_BYTES)


Run = Callable[[Sequence[str], Path, Mapping[str, str]], GuardedResult | None]
"""Runs a command under guard in a folder with an environment; None if its result is no longer wanted."""


def run_check(check: Check, ground: Ground, tree: str, run: Run) -> Ran | None:
    """Run one check on the ground, which holds `tree`. The result has all failures, because they are limited only after
    old failures are separated. None if `run` returns None."""
    reports = {kind: ground.report_path(check.name, kind) for kind in check.report_kinds()}
    argv = list(check.command)
    for kind, path in reports.items():
        argv = [part.replace("{" + kind + "}", str(path)) for part in argv]
    if check.output:
        argv = ["sh", "-c", _INTO_FILE, str(reports[check.output]), *argv]
    began = time.time()
    environment = ground.check_environment(check.env)
    # Modules of the project must not shadow those of a tool.
    if only_reads(check.command) and "PYTHONPATH" not in check.env:
        environment |= {"PYTHONPATH": "", "PYTHONSAFEPATH": "1"}
    result = run(argv, ground.workspace.directory, environment)
    if result is None:
        return None
    evidence = Evidence(
        check=check.name,
        command=" ".join(check.command),
        reproduce=shlex.join(_reproducible(check, ground)),
        interpreter="" if is_foreign(check.command) else ground.interpreter.path,
        tree=tree,
        duration_seconds=round(result.duration_seconds, 3),
        sandbox=result.sandbox,
    )
    wrong = _violation(ground, tree, began)
    if any(map(_is_link, reports.values())):
        wrong = "put a link in place of its report"
    if not wrong and result.timed_out:
        wrong = "did not end within its time limit and was stopped"
    output = ground.redaction.text(result.output)
    shown_output = output or ground.redaction.text(_end_of(reports.get(check.output)))
    if wrong:
        unusable = CheckResult(
            check=check.name,
            outcome=RunOutcome.ERROR,
            reason=ground.redaction.text(f"check {check.name} {wrong}"),
            evidence=evidence,
            output_tail=shown_output[-4000:],
        )
        return Ran(unusable, output)
    code = result.exit_code if result.signal is None else -result.signal
    judged = judge(
        check,
        exit_code=COMMAND_NOT_FOUND if result.not_found or code is None else code,
        output=shown_output,
        reports=reports,
        workspace=ground.workspace.directory,
        evidence=evidence,
        hide=ground.redaction.text,
    )
    if judged.outcome is RunOutcome.ERROR:
        judged = judged.model_copy(update={"reason": f"{judged.reason}{result.refusal}"})
    return Ran(judged, output, tuple(reports.values()))


def _violation(ground: Ground, tree: str, began: float) -> str:
    """The check's violation as the end of a sentence; usually empty."""
    if injury := ground.workspace.injury():
        return injury
    if injury := written_into(ground.donors, began) or changed_packages(ground.workspace.folder):
        return f"{injury}; a check may only look"
    if found := planted(ground.workspace):
        return found
    # Files that an earlier check added are not part of the tree.
    if changed := ground.workspace.tracked_changes(tree):
        return f"changed tracked files ({', '.join(changed[:5])}); a check may only look"
    return ""


def with_told_failures(result: CheckResult, check: Check, ground: Ground) -> CheckResult:
    """The result with a limited number of failures, one of each group explained with source from the ground."""
    hide, folder = ground.redaction.text, ground.workspace.directory
    return with_examples(result, _reproducible(check, ground), folder, hide)


def _reproducible(check: Check, ground: Ground) -> tuple[str, ...]:
    """The command with the interpreter and variables that it needs in a fixer's working directory."""
    argv, folder = without_reports(check.command), ground.workspace.directory
    if is_foreign(check.command) or not ground.interpreter.path or not argv:
        return argv
    program, rest = program_of(argv)
    before, own = argv[: len(argv) - len(rest) - 1], Path(ground.interpreter.path).parent / program
    if program in ("python", "python3"):
        argv = (*before, ground.interpreter.path, *rest)
    elif "/" not in program and own.is_file():
        argv = (*before, str(own), *rest)
    paths = filter(None, ground.environment(check.env).get("PYTHONPATH", "").split(os.pathsep))
    roots = [os.path.relpath(path, folder) for path in paths]
    return ("env", f"PYTHONPATH={os.pathsep.join(roots)}", *argv) if roots and roots != ["."] else argv


def _is_link(report: Path) -> bool:
    """Whether a command put a link there, or in place of the folder: what it leads to may be hidden from commands."""
    return report.is_symlink() or report.parent.is_symlink()


def _end_of(printed: Path | None) -> str:
    if printed is None or _is_link(printed) or not printed.is_file():
        return ""
    with printed.open("rb") as file:
        before = max(printed.stat().st_size - OUTPUT_BYTES, 0)
        file.seek(before)
        text = file.read().decode("utf-8", "replace")
    # Drop the truncated first line: part of a secret may remain in it.
    return text.partition("\n")[2] if before else text
