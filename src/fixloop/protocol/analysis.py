"""What the runs of a specialist add up to: limits, stalls, patterns, persistent failures (K1, K7, A94)."""

from collections import Counter

from fixloop.protocol.failures import Comparison, FailureKey, compare, same_failures
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
]

SHOWN = 50
"""How many failures a report lists in full (K41)."""


def limit_reached(iteration: int, max_iterations: int) -> bool:
    """True when the run `iteration`, having failed, was the last one allowed (K1)."""
    return iteration >= max_iterations


def is_deadlocked(specialist: SpecialistState, window: int) -> bool:
    """True when the last `window` runs failed alike, none of them before an extension (K7)."""
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


def history(runs: tuple[Run, ...]) -> tuple[int, ...]:
    """The failure count of each run, in order."""
    return tuple(run.count for run in runs)


def history_rows(runs: tuple[Run, ...]) -> tuple[HistoryRow, ...]:
    """One row for each run that failed (A47, B49); the last one says that no fix followed (K1)."""
    rows = []
    for run in runs:
        fixes = "; ".join(run.fixes) or ("none (limit reached)" if run is runs[-1] else "none")
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


def persistent_failures(specialist: SpecialistState) -> tuple[PersistentFailure, ...]:
    """The last failed run's failures with the runs they stood in and what was tried (B50)."""
    failed = [run for run in specialist.runs if not run.passed]
    if not failed:
        return ()
    tried = tuple(f"Iteration {run.number}: {'; '.join(run.fixes)}" for run in failed if run.fixes)
    return tuple(_persistent(ref, failed, tried) for ref in failed[-1].failures[:SHOWN])


def _persistent(ref: FailureRef, failed: list[Run], tried: tuple[str, ...]) -> PersistentFailure:
    stood = tuple(run.number for run in failed if any(other.key == ref.key for other in run.failures))
    if len(stood) > 1:
        why = f"it failed in {len(stood)} runs and no fix changed that"
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
