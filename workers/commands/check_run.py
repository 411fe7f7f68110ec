"""One check on a ground, judged by its exit code and its reports: for a worker's step, and where there is no workflow.

A result names the tree it was computed on; the tree is hashed before and after each check, and a check that
changes tracked files is an error.
"""

import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.configuration.commands import is_foreign, program_name
from fixloop.configuration.model import Check
from fixloop.machine.guard import GuardedResult
from fixloop.protocol.checks import CheckResult, Evidence, RunOutcome
from fixloop.reports.document import bytes_if_any
from fixloop.reports.examples import with_examples, without_reports
from fixloop.reports.verdict import judge
from workers.workspaces.ground import Ground
from workers.workspaces.node_modules import written_into
from workers.workspaces.surroundings import planted

COMMAND_NOT_FOUND: Final = 127
OUTPUT_BYTES: Final = 1_000_000
"""Of a command that prints its report: its end, for what it says about itself."""
REPORT_LIMIT_BYTES: Final = 16 * 1024 * 1024
"""A longer report is not kept."""
IMPORTS_NOTHING: Final = frozenset(
    {"bandit", "black", "codespell", "isort", "pip_audit", "pycodestyle", "pydocstyle", "pyflakes", "ruff"}
    | {"vulture", "yamllint"}
)
"""Tools in Python that only read a project: none of its modules may stand in for one of theirs."""

# A report of many tests is longer than what is kept of an output, and its middle must not be left out.
_INTO_FILE: Final = 'exec "$@" >"$0" 2>&1'


class Ran(NamedTuple):
    """A check that has ended, with what its result rests on."""

    result: CheckResult
    output: str
    """Without secrets."""
    reports: tuple[Path, ...] = ()
    """Where it was to write them, on the ground; as long as that is there."""

    def written(self) -> Iterator[bytes]:
        """What is to be kept of each; empty where there is nothing."""
        for path in self.reports:
            yield b"" if _is_link(path) else bytes_if_any(path, REPORT_LIMIT_BYTES)


Run = Callable[[Sequence[str], Path, Mapping[str, str]], GuardedResult | None]
"""Runs a command under guard in a folder with an environment; None when nobody wants its result any more."""


def run_check(check: Check, ground: Ground, tree: str, run: Run) -> Ran | None:
    """Run one check on what is on the ground, which is `tree`: its result with all it found, because which of it is
    kept is decided when old failures are set apart. None when `run` says that nobody wants it any more."""
    reports = {kind: ground.report_path(check.name, kind) for kind in check.report_kinds()}
    argv = list(check.command)
    for kind, path in reports.items():
        argv = [part.replace("{" + kind + "}", str(path)) for part in argv]
    if check.output:
        argv = ["sh", "-c", _INTO_FILE, str(reports[check.output]), *argv]
    began = time.time()
    environment = ground.check_environment(check.env)
    if program_name(check.command).replace("-", "_") in IMPORTS_NOTHING and "PYTHONPATH" not in check.env:
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
    said = output or ground.redaction.text(_end_of(reports.get(check.output)))
    if wrong:
        unusable = CheckResult(
            check=check.name,
            outcome=RunOutcome.ERROR,
            reason=ground.redaction.text(f"check {check.name} {wrong}"),
            evidence=evidence,
            output_tail=said[-4000:],
        )
        return Ran(unusable, output)
    code = result.exit_code if result.signal is None else -result.signal
    judged = judge(
        check,
        exit_code=COMMAND_NOT_FOUND if result.not_found or code is None else code,
        output=said,
        reports=reports,
        workspace=ground.workspace.directory,
        evidence=evidence,
        hide=ground.redaction.text,
    )
    if judged.outcome is RunOutcome.ERROR:
        judged = judged.model_copy(update={"reason": f"{judged.reason}{result.refusal}"})
    return Ran(judged, output, tuple(reports.values()))


def _violation(ground: Ground, tree: str, began: float) -> str:
    """What the check did that it may not, as the end of a sentence about it; usually nothing."""
    if injury := ground.workspace.injury():
        return injury
    if injury := written_into(ground.donors, began):
        return f"{injury}; a check may only look"
    if found := planted(ground.workspace):
        return found
    # What an earlier check added is no part of the tree; all that was there at the start is.
    if changed := ground.workspace.tracked_changes(tree):
        return f"changed tracked files ({', '.join(changed[:5])}); a check may only look"
    return ""


def with_told_failures(result: CheckResult, check: Check, ground: Ground) -> CheckResult:
    """The result with bounded failures, one of each group explained from what is on the ground."""
    hide, folder = ground.redaction.text, ground.workspace.directory
    return with_examples(result, _reproducible(check, ground), folder, hide)


def _reproducible(check: Check, ground: Ground) -> tuple[str, ...]:
    """The command with the interpreter and the variables that it needs in the working directory of a fix."""
    argv, folder = without_reports(check.command), ground.workspace.directory
    if is_foreign(check.command) or not ground.interpreter.path or not argv:
        return argv
    own = Path(ground.interpreter.path).parent / argv[0]
    if argv[0] in ("python", "python3"):
        argv = (ground.interpreter.path, *argv[1:])
    elif "/" not in argv[0] and own.is_file():
        argv = (str(own), *argv[1:])
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
    # Of the line that is cut in two, half a secret may be left.
    return text.partition("\n")[2] if before else text
