"""Explains a specialist's runs to those who have to act: why failures persist, what to try, which decision to take.

Makes sentences from the runs alone (A94, B49, B50, B62). Comparing runs is in `analysis`; nothing is decided here.
"""

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.protocol import analysis
from fixloop.protocol.failures import Comparison, Failure, FailureRef, Severity
from fixloop.protocol.messages import Decision, HistoryRow, PersistentFailure, Reason
from fixloop.protocol.state import Run, SpecialistState

SHOWN: Final = 50
"""The number of failures that a report lists in full (K41)."""
NAMED: Final = 3
"""The number of failures that a sentence names."""


class Advice(NamedTuple):
    """The decision that the runs suggest."""

    decision: Decision | None
    """None: they suggest none."""
    rationale: str


_ADVICE: Final = {
    Reason(reason): Advice(Decision(row["decision"]) if "decision" in row else None, row["rationale"])
    for reason, row in tomllib.loads(Path(__file__).with_name("advice.toml").read_text("utf-8")).items()
}
_MISSING: Final = ("was not found", "could not start", "No module named", "is not installed")
"""Phrases of a check that could not run because something outside the code is missing."""


class _Seen:
    def __init__(self, run: Run) -> None:
        self.run = run
        self._alike = {(ref.file, ref.name, ref.error_type): ref for ref in reversed(run.failures)}
        self._placed = {(ref.file, ref.name): ref for ref in reversed(run.failures)}

    def find(self, ref: FailureRef) -> FailureRef | None:
        """`ref` in this run, if it was there. Unlike its key (K7), a failure's identity here survives a changed measure
        and a vanished test."""
        exact = self._alike.get((ref.file, ref.name, ref.error_type))
        placed = self._placed.get((ref.file, ref.name))
        if exact is not None or placed is None:
            return exact
        return placed if "vanished" in (ref.error_type, placed.error_type) else None


def recommendation(specialist: SpecialistState, reason: Reason, detail: str = "") -> Advice:
    """The suggested decision, and why (B51, B64)."""
    if reason is Reason.SPECIALIST_ERROR and any(words in detail for words in _MISSING):
        return Advice(Decision.EXTEND, "install what is missing, then the same run is made again")
    last = specialist.last_run
    gone = [ref.name for ref in last.failures if ref.error_type == "vanished"] if last else []
    if reason is Reason.DEADLOCK and gone:
        told = "tests that failed no longer run: bring them back and correct the code, as only their passing"
        return Advice(Decision.MANUAL_FIX, f"{told} resolves {_few(gone)}")
    if reason is not Reason.MAX_ITERATIONS:
        return _ADVICE[reason]
    failed = _failed(specialist)
    if not failed:
        return Advice(Decision.MANUAL_FIX, "a fix of a later phase broke what had passed here")
    seen = [_Seen(run) for run in failed if not run.could_not_run]
    way = " → ".join(str(run.count) for run in failed)
    back = [name for names, _ in _returns(seen) for name in names]
    if back:
        return Advice(Decision.MANUAL_FIX, f"the fixes undo each other: {_few(back)} went and came back")
    if _is_falling(failed):
        return Advice(Decision.EXTEND, f"the number of failures falls ({way}), so more iterations may end it")
    for ref in failed[-1].failures:
        measures = _measures(ref, seen)
        if len(measures) > 1 and float(measures[-1]) > float(measures[0]):
            rises = f"{ref.name} rises ({' → '.join(measures)}), so more iterations may end it"
            return Advice(Decision.EXTEND, rises)
    return Advice(
        Decision.MANUAL_FIX, f"the last iterations did not bring the number of failures down ({way})"
    )


def approach(specialist: SpecialistState, failures: Sequence[Failure]) -> tuple[str, ...]:
    """Where to begin with `failures`, and what the previous fix left (A28, B10, B59)."""
    steps, runs = [], specialist.runs
    critical = [failure.name for failure in failures if failure.priority is Severity.CRITICAL]
    if 0 < len(critical) < len(failures):
        steps.append(f"Begin with what is critical: {_few(critical)}")
    if len(runs) > 1 and not runs[-2].passed:
        changes = analysis.comparison(runs[-2], runs[-1])
        if changes.persisting:
            told = f"The last fix did not reach the cause of {_few(changes.persisting)}: try another way"
            steps.append(told)
        if changes.new:
            steps.append(f"New since the last fix: {_few(changes.new)}; look at what it changed")
    return tuple(steps) or ("Change the cause that the error names, then run the check again",)


def cause_of_new(changes: Comparison, previous: Run | None) -> str:
    """The origin of a run's new failures; empty if it has none (B42)."""
    if not changes.new or previous is None:
        return ""
    if previous.passed:
        return "the fixes of later phases"
    if not previous.fixes:
        return "unknown: no fix came between the runs"
    return f"the fix after run {previous.number}: {'; '.join(previous.fixes)}"


def history_rows(runs: tuple[Run, ...], reason: Reason) -> tuple[HistoryRow, ...]:
    """One row per run (A47, B49); at the limit, the last row says that no fix followed (K1)."""
    rows = []
    for run in runs:
        last = run is runs[-1] and reason is Reason.MAX_ITERATIONS
        fixes = "; ".join(run.fixes) or ("none (limit reached)" if last else "none")
        result = "PASS" if run.passed else "FAIL"
        rows.append(HistoryRow(iteration=run.number, failures=run.count, fixes=fixes, result=result))
    return tuple(rows)


def pattern(specialist: SpecialistState, reason: Reason, window: int | None) -> str:
    """Why failures persist across the runs (A94, B49); a stall is reported at the limit too (K8)."""
    failed = _failed(specialist)
    if reason is Reason.INTEGRITY_HOLD:
        return "This run passed. What it passed by is a question for a person."
    if not failed:
        passed = "Every run passed; a fix of a later phase broke it since."
        return passed if specialist.runs else "No run has come to a result yet."
    remarks = [f"Failures per run: {' → '.join(str(run.count) for run in failed)}."]
    # The failures of a run whose checks could not run are unknown.
    seen = [_Seen(run) for run in failed if not run.could_not_run]
    if len(seen) > 1:
        remarks += _standing(seen)
    remarks += [
        f"Run {following.number} judged the same tree as run {run.number}: nothing had been changed."
        for run, following in pairwise(specialist.runs)
        if run.tree == following.tree and not run.passed
    ]
    if broken := [str(run.number) for run in failed if run.could_not_run]:
        remarks.append(f"A fix broke the checks: they could not run in run {', '.join(broken)}.")
    remarks += _trend(specialist, failed, seen, window)
    if reason is Reason.TIMEOUT:
        remarks.append("The work stopped because it took too long, not because of a result.")
    return " ".join(remarks)


def _standing(seen: Sequence[_Seen]) -> Iterator[str]:
    """The failures present in every run, how many of the first run's are gone, and what a fix broke."""
    first, last = seen[0].run, seen[-1].run
    through = [ref.name for ref in last.failures if all(each.find(ref) for each in seen)]
    yield f"In every run: {_few(through)}." if through else "No failure stood in every run."
    gone = sum(seen[-1].find(ref) is None for ref in first.failures)
    if gone == first.count:
        yield f"What failed in run {first.number} is gone."
    elif gone:
        yield f"Of the {first.count} in run {first.number}, {gone} {'is' if gone == 1 else 'are'} gone."
    for index, each in enumerate(seen[1:], 1):
        fresh = [ref.name for ref in each.run.failures if not any(one.find(ref) for one in seen[:index])]
        if fresh:
            yield f"New in run {each.run.number}: {_few(fresh)}."


def _returns(seen: Sequence[_Seen]) -> Iterator[tuple[list[str], int]]:
    """Failures that were gone and came back, and the run in which they did (B62)."""
    for before, between, after in zip(seen, seen[1:], seen[2:], strict=False):
        back = [ref.name for ref in after.run.failures if before.find(ref) and not between.find(ref)]
        if back:
            yield back, after.run.number


def _trend(
    specialist: SpecialistState, failed: Sequence[Run], seen: Sequence[_Seen], window: int | None
) -> Iterator[str]:
    back = [f"{_few(names)} (run {number})" for names, number in _returns(seen)]
    if back:
        yield f"Gone and back again: {', '.join(back)}; fixes undo each other (oscillation)."
    if window is not None and analysis.is_deadlocked(specialist, window):
        numbers = ", ".join(str(run.number) for run in failed[-window:])
        yield f"Runs {numbers} failed in the same way: progress has stalled (deadlock)."
    elif _is_falling(failed) and not back:
        yield "The number is falling: more iterations may be enough."
    elif failed[-1].count < failed[0].count:
        yield "The number fell, and the last fix did not bring it down further."
    elif failed[-1].count > failed[0].count:
        yield "The number is rising: the fixes break more than they mend."


def persistent_failures(
    specialist: SpecialistState, failures: tuple[Failure, ...] = ()
) -> tuple[PersistentFailure, ...]:
    """The last run's failures, with the runs that had them and what was tried (B50). `failures` are those of a
    confirmation that failed after a passed run and had no run left (K37)."""
    last = specialist.last_run
    if last is None:
        return ()
    open_now = tuple(FailureRef.of(failure) for failure in failures) if last.passed else last.failures
    seen = [_Seen(run) for run in _failed(specialist)]
    found = []
    for ref in open_now[:SHOWN]:
        stood = [each.run for each in seen if each.find(ref)]
        fixed = [run for run in stood if run.fixes]
        why = "it fails on the final tree only: a fix of a later phase broke it"
        if stood:
            why = f"{_course(ref, seen, stood)}; {_effect(ref, seen, len(fixed))}"
        found.append(
            PersistentFailure(
                name=ref.name,
                file=ref.file,
                line=ref.line,
                error=ref.error,
                iterations=tuple(run.number for run in stood),
                fixes=tuple(f"Iteration {run.number}: {'; '.join(run.fixes)}" for run in fixed),
                why=why,
            )
        )
    return tuple(found)


def _course(ref: FailureRef, seen: Sequence[_Seen], stood: Sequence[Run]) -> str:
    """The runs that had the failure: all, all since one, or some."""
    if ref.error_type == "vanished":
        return "the test failed before and is no longer run; only its passing resolves it"
    first, numbers = stood[0].number, ", ".join(str(run.number) for run in stood)
    if len(stood) < sum(each.run.number >= first for each in seen):
        return f"it comes and goes: it failed in runs {numbers}"
    if len(stood) > 1:
        return f"it failed in {len(stood)} runs in a row ({numbers})"
    return f"it failed first in run {first}" + (", after a fix" if first != seen[0].run.number else "")


def _effect(ref: FailureRef, seen: Sequence[_Seen], fixes: int) -> str:
    """How the fixes made during the failure changed the tool's message."""
    if not fixes:
        return "no fix has been made since"
    made = "the fix since" if fixes == 1 else f"the {fixes} fixes since"
    measures = _measures(ref, seen)
    if measures:
        return f"{made} moved it from {measures[0]} to {measures[-1]}, which is not enough"
    if len({one.headline for each in seen if (one := each.find(ref)) is not None}) == 1:
        return f"{made} left the error as it was, so the cause is elsewhere"
    return f"{made} changed the error, last to: {ref.headline}"


def _measures(ref: FailureRef, seen: Sequence[_Seen]) -> list[str]:
    """The measures from run to run; empty if the failure has no number."""
    found = [one.measure for each in seen if (one := each.find(ref)) is not None]
    return found if found and all(each.replace(".", "", 1).isdigit() for each in found) else []


def _is_falling(failed: Sequence[Run]) -> bool:
    return len(failed) > 1 and failed[-1].count < failed[-2].count and failed[-1].count < failed[0].count


def _failed(specialist: SpecialistState) -> list[Run]:
    return [run for run in specialist.runs if not run.passed]


def _few(names: Iterable[str]) -> str:
    listed = list(dict.fromkeys(names))
    rest = len(listed) - NAMED
    return ", ".join(listed[:NAMED]) + (f" and {rest} more" if rest > 0 else "")
