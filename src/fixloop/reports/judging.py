"""One check's outcome, from its exit code, its output and its reports together (K38).

Owns the rule that a PASS needs proof: a tool that could not run, looked at nothing, or ended with an exit
code that nothing explains has not passed, whatever its report says.
"""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.configuration.layout import has_python
from fixloop.configuration.model import Check
from fixloop.protocol.checks import CheckResult, Counts, Evidence, RunOutcome
from fixloop.protocol.failures import Failure
from fixloop.reports.examples import Told, with_examples, with_subtests
from fixloop.reports.limits import clean, one_line
from fixloop.reports.output import failures_in, whole_failure
from fixloop.reports.reading import read_report
from fixloop.reports.report import Report
from fixloop.reports.reproducing import without_reports
from fixloop.reports.symptoms import cannot_run, checked_nothing, died, is_wrong_call
from fixloop.reports.thresholds import missed_thresholds
from fixloop.reports.tree import SourceTree

_TAIL_BYTES: Final = 4 * 1024
_TEXTS: Final = ("name", "file", "error_type", "message", "context", "suggestion", "frame", "source", "rerun")
_LIST_TESTS: Final = frozenset({"junit", "jest", "go-test", "cargo-test"})


class _Run(NamedTuple):
    """A check that has ended."""

    check: Check
    exit_code: int
    output: str
    workspace: Path

    @property
    def command(self) -> str:
        return " ".join(self.check.command)


class _Verdict(NamedTuple):
    """What it came to."""

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
    is_bounded: bool = True,
) -> CheckResult:
    """
    What `check` proved.

    Args:
        check: The check as configured; its placeholders say which reports it owes.
        exit_code: Of its command; negative for a signal, 127 for a command that was not found.
        output: What it printed, both streams.
        reports: For each kind the fresh path its placeholder stood for.
        workspace: The directory the command ran in.
        evidence: What is known already; exit code, digest, counts and coverage are filled in here.
        hide: Cuts secrets out of a text; `output` has gone through it already.

        is_bounded: Whether the failures are shortened to the limits of K41; else that is left to the caller.

    Returns:
        SKIPPED only for an optional check that could not run here.
    """
    run = _Run(check, exit_code, clean(output), workspace)
    read = {kind: _read(run, kind, reports.get(kind)) for kind in check.report_kinds()}
    verdict = _verdict(run, read)
    # Secrets first: half of one could survive at the edge of a cut.
    named = with_subtests(verdict.failures, run.output)
    failures = tuple(_without_secrets(failure, check, hide) for failure in named)
    told = (
        with_examples(failures, without_reports(check.command), workspace, hide)
        if is_bounded
        else Told(failures)
    )
    return CheckResult(
        check=check.name,
        outcome=verdict.outcome,
        reason=hide(verdict.reason),
        failures=told.failures,
        whole=told.whole,
        passed_names=_hidden_names(
            tuple(name for report in read.values() for name in report.passed_names), hide
        ),
        lists_tests=not _LIST_TESTS.isdisjoint(read),
        evidence=_filled(evidence, run, read, verdict),
        output_tail=_tail(run.output),
        is_final=verdict.is_final,
    )


def _without_secrets(failure: Failure, check: Check, hide: Callable[[str], str]) -> Failure:
    texts = {name: str(getattr(failure, name)) for name in _TEXTS}
    whole = "\n".join(texts.values())
    if hide(whole) != whole:
        texts = {name: hide(text) for name, text in texts.items()}
    return failure.model_copy(update=texts | {"check": check.name})


def _hidden_names(names: tuple[str, ...], hide: Callable[[str], str]) -> tuple[str, ...]:
    whole = "\n".join(names)
    return names if hide(whole) == whole else tuple(map(hide, names))


def _read(run: _Run, kind: str, path: Path | None) -> Report:
    if path is None:
        return Report(outcome=RunOutcome.ERROR, reason=f"the {kind} report was given no path")
    gate, fail_on = run.check.coverage_percent, run.check.fail_on
    return read_report(path, kind, root=run.workspace, fail_on=fail_on, gate=gate)


def _verdict(run: _Run, read: Mapping[str, Report]) -> _Verdict:
    if reason := cannot_run(run.check.command, run.exit_code, run.output):
        return _Verdict(RunOutcome.SKIPPED if run.check.optional else RunOutcome.ERROR, reason, is_final=True)
    is_refused = is_wrong_call(run.check.command, run.exit_code, run.output)
    if reason := died(run.check.command, run.exit_code, run.output):
        return _Verdict(RunOutcome.ERROR, reason, is_final=is_refused)
    # Where the output is the report, what tests print stands in it, and its reader knows when nothing ran.
    nothing = "" if run.check.output else checked_nothing(run.check.command, run.output)
    if reason := nothing or _moved_away(run):
        return _Verdict(RunOutcome.ERROR, reason, is_final=True)
    if run.check.coverage_percent is not None and "coverage" not in read:
        reason = f"check `{run.check.name}` has a coverage gate, but its command has no {{coverage}}"
        return _Verdict(RunOutcome.ERROR, reason)
    verdict = _by_reports(run, read) if read else _by_exit_code(run)
    return verdict._replace(is_final=is_refused and verdict.outcome is RunOutcome.ERROR)


def _moved_away(run: _Run) -> str:
    """Some tools exit with 0 and say nothing when the code they are pointed at has gone elsewhere."""
    gone = [path for path in run.check.paths if not has_python(run.workspace / path)]
    return f"check `{run.check.name}` is pointed at {', '.join(gone)}, where no code is" if gone else ""


def _by_exit_code(run: _Run) -> _Verdict:
    if run.exit_code == 0:
        return _Verdict(RunOutcome.PASSED, "exit code 0")
    name, tree = run.check.name, SourceTree(run.workspace)
    failures = failures_in(run.output, name, tree)
    if failures:
        return _Verdict(RunOutcome.FAILED, f"{len(failures)} findings, exit code {run.exit_code}", failures)
    whole = whole_failure(run.output, name, run.command, run.exit_code)
    return _Verdict(RunOutcome.FAILED, f"exit code {run.exit_code}", (whole,))


def _by_reports(run: _Run, read: Mapping[str, Report]) -> _Verdict:
    owed = _owed(run, read)
    for report in owed.values():
        if report.outcome is RunOutcome.ERROR:
            return _Verdict(RunOutcome.ERROR, _with_last_line(report.reason, run))
    if run.exit_code != 0 and not any(report.findings for report in owed.values()):
        if missed := missed_thresholds(run.output):
            return _Verdict(RunOutcome.FAILED, f"{len(missed)} figures of coverage are too low", missed)
        reason = f"exit code {run.exit_code}, which no result in its report explains"
        return _Verdict(RunOutcome.ERROR, _with_last_line(reason, run))
    failed = [report for report in owed.values() if report.outcome is RunOutcome.FAILED]
    warned = tuple(failure for report in owed.values() for failure in report.warnings)
    if run.exit_code != 0 and not failed and warned:
        reason = f"{len(warned)} warnings, which the command refuses (exit code {run.exit_code})"
        return _Verdict(RunOutcome.FAILED, reason, warned)
    reasons = "; ".join(report.reason for report in failed or owed.values())
    return _Verdict(RunOutcome.FAILED if failed else RunOutcome.PASSED, reasons, _failures(owed))


def _owed(run: _Run, read: Mapping[str, Report]) -> Mapping[str, Report]:
    """
    The reports that have to be sound.

    A run that stops at a test that cannot be imported has measured nothing, so coverage.py writes no
    report; the failing test is what has to be told, not the missing figure. Without a gate nobody asked for one.
    """
    others = {kind: report for kind, report in read.items() if kind != "coverage"}
    failed = any(report.outcome is RunOutcome.FAILED for report in others.values())
    broken = "coverage" in read and read["coverage"].outcome is RunOutcome.ERROR
    is_spare = run.check.coverage_percent is None or (failed and run.exit_code != 0)
    return others if others and broken and is_spare else read


def _failures(read: Mapping[str, Report]) -> tuple[Failure, ...]:
    """All failures; the one for the coverage gate only where there would be none (G24)."""
    found = tuple(failure for kind in read if kind != "coverage" for failure in read[kind].failures)
    return found or (read["coverage"].failures if "coverage" in read else ())


def _with_last_line(reason: str, run: _Run) -> str:
    lines = [line for line in run.output.splitlines() if line.strip()]
    return f"{reason}; the command's last line is: {one_line(lines[-1])}" if lines else reason


def _tail(output: str) -> str:
    data = output.rstrip().encode()
    if len(data) <= _TAIL_BYTES:
        return data.decode()
    return f"… [{len(data) - _TAIL_BYTES} bytes cut]\n{data[-_TAIL_BYTES:].decode('utf-8', 'ignore')}"


def _filled(evidence: Evidence, run: _Run, read: Mapping[str, Report], verdict: _Verdict) -> Evidence:
    coverage = read.get("coverage")
    return evidence.model_copy(
        update={
            "exit_code": run.exit_code,
            "report_digest": _digest(run, read),
            "counts": _counts(read) if read else _counts_of(verdict),
            "coverage_percent": coverage.coverage_percent if coverage else None,
            "coverage_gate": run.check.coverage_percent,
        }
    )


def _digest(run: _Run, read: Mapping[str, Report]) -> str:
    """Of the one report; of the digests of several, by kind; of the output where there is none."""
    digests = {kind: report.digest for kind, report in read.items() if report.digest}
    if len(digests) == 1:
        return next(iter(digests.values()))
    text = "\n".join(f"{kind} {digest}" for kind, digest in sorted(digests.items())) or run.output
    return hashlib.sha256(text.encode()).hexdigest()


def _counts(read: Mapping[str, Report]) -> Counts:
    """Of tests and findings; a coverage gate counts only where it is all there is."""
    results = [report.counts for kind, report in read.items() if kind != "coverage"]
    results = results or [report.counts for report in read.values()]
    return Counts(**{name: sum(getattr(part, name) for part in results) for name in Counts.model_fields})


def _counts_of(verdict: _Verdict) -> Counts:
    return Counts(total=len(verdict.failures), failed=len(verdict.failures))
