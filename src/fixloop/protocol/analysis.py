"""What the runs of a specialist add up to: limits, stalls, patterns, persistent failures (K1, K7, A94)."""

from collections import Counter
from collections.abc import Iterable

from fixloop.protocol.events import RunFinished
from fixloop.protocol.failures import Comparison, Failure, FailureKey, compare, same_failures
from fixloop.protocol.messages import HistoryRow, PersistentFailure, Reason
from fixloop.protocol.state import FailureRef, Run, SpecialistState

__all__ = [
    "comparison",
    "history",
    "history_rows",
    "is_deadlocked",
    "limit_reached",
    "pattern",
    "persistent_failures",
    "still_owed",
    "with_vanished",
]

SHOWN = 50
"""How many failures a report lists in full (K41)."""


def limit_reached(iteration: int, max_iterations: int) -> bool:
    """True when the run `iteration`, having failed, was the last one allowed (K1)."""
    return iteration >= max_iterations


def is_deadlocked(specialist: SpecialistState, window: int | None) -> bool:
    """True when the last `window` runs failed alike, none of them before an extension (K7); None: never."""
    if window is None:
        return False
    counted = [run for run in specialist.runs if run.number > specialist.window_start]
    last = counted[-window:]
    if len(last) < window or any(run.passed for run in last):
        return False
    same_size = len({run.count for run in last}) == 1
    return same_size and same_failures([[ref.key for ref in run.failures] for run in last])


def comparison(previous: Run | None, current: Run) -> Comparison:
    """
    Resolved, persisting and new between two runs (B42).

    A vanished test is the same failure as before it vanished: only the test passing resolves it (K7).
    """
    before = previous.failures if previous is not None else ()
    return compare(_identified(before, current.failures), _identified(current.failures, before))


def with_vanished(active: SpecialistState, event: RunFinished) -> tuple[Failure, ...]:
    """The run's failures and those tests that failed before and were not run now (K7)."""
    if not event.lists_passes:
        return event.failures
    seen = {failure.name for failure in event.failures} | set(event.passed)
    vanished = (
        Failure(
            name=ref.name,
            file=ref.file,
            line=ref.line,
            error_type="vanished",
            check=active.name,
            message=f"vanished: {ref.name} failed before and was not run now; only its passing resolves it",
            suggestion="bring the test back and make it pass",
        )
        for ref in active.owed
        if ref.name not in seen
    )
    return (*event.failures, *vanished)


def still_owed(
    active: SpecialistState, event: RunFinished, failures: Iterable[Failure]
) -> tuple[FailureRef, ...]:
    """The failing tests that a later run has to show passing; a vanished one is owed as it was (K7)."""
    if not event.lists_passes:
        return active.owed
    before = {(ref.file, ref.name): ref for ref in active.owed}
    owed = []
    for failure in failures:
        vanished = before.get((failure.file, failure.name)) if failure.error_type == "vanished" else None
        if vanished is not None:
            owed.append(vanished)
        elif failure.check in event.lists_passes and not failure.measure:
            owed.append(FailureRef.of(failure))
    return tuple(owed)


def history(runs: tuple[Run, ...]) -> tuple[int, ...]:
    """The failure count of each run, in order."""
    return tuple(run.count for run in runs)


def history_rows(runs: tuple[Run, ...], reason: Reason) -> tuple[HistoryRow, ...]:
    """One row for each run (A47, B49); at the limit the last one says that no fix followed (K1)."""
    rows = []
    for run in runs:
        last = run is runs[-1] and reason is Reason.MAX_ITERATIONS
        fixes = "; ".join(run.fixes) or ("none (limit reached)" if last else "none")
        result = "PASS" if run.passed else "FAIL"
        rows.append(HistoryRow(iteration=run.number, failures=run.count, fixes=fixes, result=result))
    return tuple(rows)


def pattern(specialist: SpecialistState, reason: Reason) -> str:
    """Why failures persist, from the runs alone (A94, B49)."""
    failed = [run for run in specialist.runs if not run.passed]
    if not failed:
        return "No run has come to a result yet."
    counts = " → ".join(str(run.count) for run in failed)
    remarks = [f"Failures per run: {counts}."]
    if len(failed) >= 2 and same_failures([[ref.key for ref in run.failures] for run in failed[-2:]]):
        remarks.append("The last runs failed in the same way: the fixes do not reach the cause.")
    elif len(failed) >= 2 and failed[-1].count < failed[0].count:
        remarks.append("The number is falling: more iterations may be enough.")
    if _oscillates(failed):
        remarks.append("Failures that were gone came back: fixes undo each other (oscillation).")
    if reason is Reason.TIMEOUT:
        remarks.append("The work stopped because it took too long, not because of a result.")
    return " ".join(remarks)


def persistent_failures(
    specialist: SpecialistState, failures: tuple[Failure, ...] = ()
) -> tuple[PersistentFailure, ...]:
    """
    The last run's failures with the runs they stood in and what was tried (B50).

    `failures` are those of a confirmation that failed after a run that passed, and for which no run was left (K37).
    """
    last, failed = specialist.last_run, [run for run in specialist.runs if not run.passed]
    if last is None:
        return ()
    open_now = tuple(FailureRef.of(failure) for failure in failures) if last.passed else last.failures
    tried = tuple(f"Iteration {run.number}: {'; '.join(run.fixes)}" for run in failed if run.fixes)
    return tuple(_persistent(ref, failed, tried) for ref in open_now[:SHOWN])


def _persistent(ref: FailureRef, failed: list[Run], tried: tuple[str, ...]) -> PersistentFailure:
    stood = tuple(run.number for run in failed if any(_is_same(ref, other) for other in run.failures))
    if len(stood) > 1:
        why = f"it failed in {len(stood)} runs and no fix changed that"
    elif not tried:
        why = "no fix for it has come yet"
    else:
        why = "it appeared in the last run, after the last fix"
    return PersistentFailure(
        name=ref.name,
        file=ref.file,
        line=ref.line,
        error=f"{ref.error_type}: {ref.headline}" if ref.error_type else ref.headline,
        iterations=stood,
        fixes=tried,
        why=why,
    )


def _is_same(ref: FailureRef, other: FailureRef) -> bool:
    if ref.error_type == "vanished":
        return (ref.file, ref.name) == (other.file, other.name)
    return ref.key == other.key


def _identified(failures: tuple[FailureRef, ...], others: tuple[FailureRef, ...]) -> list[FailureKey]:
    known = {(ref.file, ref.name): ref.error_type for ref in others if ref.error_type != "vanished"}
    found = []
    for ref in failures:
        key = ref.key
        if ref.error_type == "vanished":
            key = key._replace(error_type=known.get((ref.file, ref.name), "vanished"))
        found.append(key)
    return found


def _oscillates(failed: list[Run]) -> bool:
    sets = [Counter(ref.key for ref in run.failures) for run in failed]
    return any(sets[i] & sets[i + 2] and (sets[i] & sets[i + 2]) - sets[i + 1] for i in range(len(sets) - 2))
