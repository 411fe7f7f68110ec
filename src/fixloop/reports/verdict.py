"""Decides one check's outcome from its exit code, output and reports together (K38).

Owns the rule that a PASS needs proof: a tool that could not run, checked nothing, or ended with an unexplained exit
code has not passed, even if its report says so.
"""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.configuration.layout import has_python
from fixloop.configuration.model import Check
from fixloop.protocol.checks import CheckResult, Counts, Evidence, RunOutcome
from fixloop.protocol.failures import Failure
from fixloop.protocol.limits import clean, one_line, tail
from fixloop.reports.coverage import missed_thresholds
from fixloop.reports.examples import digest, of_files, with_subtests
from fixloop.reports.output import FAILING, failing_tests, failures_in, whole_failure, without_packages
from fixloop.reports.reader import read_report
from fixloop.reports.report import Report, SourceTree
from fixloop.reports.symptoms import cannot_run, checked_nothing, counted, died, is_wrong_call
from fixloop.reports.tracebacks import conftest_error, script_error

_TAIL_BYTES: Final = 4 * 1024
_TEXTS: Final = ("name", "file", "error_type", "message", "context", "suggestion", "frame", "source", "rerun")
_LIST_TESTS: Final = frozenset({"junit", "jest", "go-test", "cargo-test"})


class _Run(NamedTuple):
    check: Check
    exit_code: int
    output: str
    workspace: Path


class _Verdict(NamedTuple):
    outcome: RunOutcome
    reason: str
    failures: tuple[Failure, ...] = ()
    is_final: bool = False


def judge(
    check: Check,
    *,
    exit_code: int,
    output: str,
    reports: Mapping[str, Path],
    workspace: Path,
    evidence: Evidence,
    hide: Callable[[str], str] = str,
) -> CheckResult:
    """
    The result of `check`, its failures in full; SKIPPED only for an optional check that could not run here.

    `exit_code`: negative for a signal, 127 for a command that was not found. `reports`: for each kind the fresh path
    that replaced its placeholder. `evidence`: exit code, digest, counts and coverage are filled in here. `hide`:
    removes secrets from a text; `output`, of both streams, has already been through it.
    """
    run = _Run(check, exit_code, without_packages(clean(output), SourceTree(workspace)), workspace)
    gate, fail_on = check.coverage_percent, check.fail_on
    read = {
        kind: read_report(reports[kind], kind, root=workspace, fail_on=fail_on, gate=gate)
        for kind in check.report_kinds()
    }
    verdict = _verdict(run, read)
    # Secrets first: a cut could leave half of one.
    named = with_subtests(verdict.failures, run.output)
    lists_tests = not _LIST_TESTS.isdisjoint(read)
    failures: list[Failure] = []
    for failure in of_files(named, run.output, workspace) if lists_tests else named:
        texts = {name: str(getattr(failure, name)) for name in _TEXTS}
        whole = "\n".join(texts.values())
        if hide(whole) != whole:
            texts = {name: hide(text) for name, text in texts.items()}
        failures.append(failure.model_copy(update=texts | {"check": check.name}))
    passed = tuple(name for report in read.values() for name in report.passed_names)
    cases = frozenset[str]().union(*(report.cases for report in read.values()))
    names = "\n".join(passed)
    is_plain = hide(names) == names
    return CheckResult(
        check=check.name,
        outcome=verdict.outcome,
        reason=hide(verdict.reason),
        failures=tuple(failures),
        passed_names=passed if is_plain else tuple(map(hide, passed)),
        cases=cases if is_plain else frozenset(map(hide, cases)),
        lists_tests=lists_tests,
        evidence=_filled(evidence, run, read, verdict),
        output_tail=tail(run.output, _TAIL_BYTES),
        is_final=verdict.is_final,
    )


def _verdict(run: _Run, read: Mapping[str, Report]) -> _Verdict:
    # A failing test may show what a command that it started printed.
    has_failed = any(report.outcome is RunOutcome.FAILED for report in read.values()) or (
        run.exit_code != 0 and not read and failing_tests(run.output, SourceTree(run.workspace))
    )
    if not has_failed and (reason := cannot_run(run.check.command, run.exit_code, run.output)):
        return _Verdict(RunOutcome.SKIPPED if run.check.optional else RunOutcome.ERROR, reason, is_final=True)
    is_refused = is_wrong_call(run.check.command, run.exit_code, run.output)
    if reason := died(run.check.command, run.exit_code, run.output):
        return _by_own_error(run, reason) or _Verdict(RunOutcome.ERROR, reason, is_final=is_refused)
    # An output that is the report contains what tests print, and its reader knows if nothing ran.
    nothing = "" if run.check.output else checked_nothing(run.check.command, run.output)
    # Some tools silently exit with 0 if the code they are given has moved.
    gone = [path for path in run.check.paths if not has_python(run.workspace / path)]
    moved = f"check `{run.check.name}` is pointed at {', '.join(gone)}, where no code is" if gone else ""
    if reason := nothing or moved:
        return _Verdict(RunOutcome.ERROR, reason, is_final=True)
    if run.check.coverage_percent is not None and "coverage" not in read:
        reason = f"check `{run.check.name}` has a coverage gate, but its command has no {{coverage}}"
        return _Verdict(RunOutcome.ERROR, reason)
    if read:
        verdict = _by_reports(run, read)
        return verdict._replace(is_final=is_refused and verdict.outcome is RunOutcome.ERROR)
    if run.exit_code == 0:
        if counted(run.output) == 0:
            return _Verdict(RunOutcome.ERROR, "it says itself that no test ran", is_final=True)
        return _Verdict(RunOutcome.PASSED, "exit code 0")
    name, tree = run.check.name, SourceTree(run.workspace)
    if failures := failures_in(run.output, name, tree):
        return _Verdict(RunOutcome.FAILED, f"{len(failures)} findings, exit code {run.exit_code}", failures)
    whole = whole_failure(run.output, name, " ".join(run.check.command), run.exit_code)
    return _Verdict(RunOutcome.FAILED, f"exit code {run.exit_code}", (whole,))


def _by_reports(run: _Run, read: Mapping[str, Report]) -> _Verdict:
    # A run that stops at a test that cannot be imported has measured nothing, so coverage.py writes no report; the
    # failing test is reported, not the missing figure. Without a gate no figure is needed.
    others = {kind: report for kind, report in read.items() if kind != "coverage"}
    is_broken = "coverage" in read and read["coverage"].outcome is RunOutcome.ERROR
    has_failed = any(report.outcome is RunOutcome.FAILED for report in others.values())
    is_spare = run.check.coverage_percent is None or (has_failed and run.exit_code != 0)
    owed = others if others and is_broken and is_spare else read
    if reason := next((each.reason for each in owed.values() if each.outcome is RunOutcome.ERROR), ""):
        told = _with_telling_line(reason, run)
        return _by_own_error(run, told) or _Verdict(RunOutcome.ERROR, told)
    if run.exit_code != 0 and not any(report.findings for report in owed.values()):
        if missed := missed_thresholds(run.output):
            return _Verdict(RunOutcome.FAILED, f"{len(missed)} figures of coverage are too low", missed)
        # Files of tests that could not be loaded, which bun's report leaves out.
        tree = SourceTree(run.workspace)
        if files := tuple(each for each in failing_tests(run.output, tree) if tree.has_file(each.name)):
            return _Verdict(RunOutcome.FAILED, f"{len(files)} files of tests could not be loaded", files)
        reason = f"exit code {run.exit_code}, which no result in its report explains"
        return _Verdict(RunOutcome.ERROR, _with_telling_line(reason, run))
    failed = [report for report in owed.values() if report.outcome is RunOutcome.FAILED]
    warned = tuple(failure for report in owed.values() for failure in report.warnings)
    if run.exit_code != 0 and not failed and warned:
        reason = f"{len(warned)} warnings, which the command refuses (exit code {run.exit_code})"
        return _Verdict(RunOutcome.FAILED, reason, warned)
    reasons = "; ".join(report.reason for report in failed or owed.values())
    # The coverage gate's failure only if there is no other (G24).
    failures = tuple(failure for kind in owed if kind != "coverage" for failure in owed[kind].failures)
    if not failures and "coverage" in owed:
        failures = owed["coverage"].failures
    return _Verdict(RunOutcome.FAILED if failed else RunOutcome.PASSED, reasons, failures)


def _by_own_error(run: _Run, reason: str) -> _Verdict | None:
    """The failure of a runner that an error in the project's own code ended before its tests; None for other errors."""
    tree = SourceTree(run.workspace)
    place = conftest_error(run.output, tree) or script_error(run.output, tree)
    if place is None or run.exit_code == 0:
        return None
    said = digest(run.output, tree)
    whole = whole_failure(said, run.check.name, " ".join(run.check.command), run.exit_code)
    return _Verdict(RunOutcome.FAILED, reason, (whole.model_copy(update=place._asdict()),))


def _with_telling_line(reason: str, run: _Run) -> str:
    told = (line.strip() for line in run.output.replace(" Error:\n\n  ", " Error: ").splitlines())
    # Node's stack traces end with frames, which say less than their first lines.
    lines = [line for line in told if line and not line.startswith("at ")]
    errors = [line for line in lines if FAILING.match(line)]
    said, which = (errors, "error") if errors else (lines, "line")
    return f"{reason}; the command's last {which} is: {one_line(said[-1])}" if said else reason


def _filled(evidence: Evidence, run: _Run, read: Mapping[str, Report], verdict: _Verdict) -> Evidence:
    coverage = read.get("coverage")
    # The digest of the one report, of several reports' digests by kind, or of the output without any.
    digests = {kind: report.digest for kind, report in read.items() if report.digest}
    text = "\n".join(f"{kind} {digest}" for kind, digest in sorted(digests.items())) or run.output
    digest = "".join(digests.values()) if len(digests) == 1 else hashlib.sha256(text.encode()).hexdigest()
    # Counts of tests and findings; a coverage gate counts only if there is nothing else.
    results = [report.counts for kind, report in read.items() if kind != "coverage"]
    results = results or [report.counts for report in read.values()]
    results = results or [Counts(total=len(verdict.failures), failed=len(verdict.failures))]
    sums = {name: sum(getattr(part, name) for part in results) for name in Counts.model_fields}
    return evidence.model_copy(
        update={
            "exit_code": run.exit_code,
            "report_digest": digest,
            "counts": Counts(**sums),
            "coverage_percent": coverage.coverage_percent if coverage else None,
            "coverage_gate": run.check.coverage_percent,
            "tests": None if read else counted(run.output),
        }
    )
