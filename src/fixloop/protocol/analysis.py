"""Evaluates a specialist's runs: limits, stalls, and the differences between two runs (K1, K7, A93)."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fixloop.protocol.failures import Comparison, Failure, FailureKey, FailureRef, compare, same_failures
from fixloop.protocol.state import Run, SpecialistState

if TYPE_CHECKING:
    from fixloop.protocol.events import RunFinished


def limit_reached(iteration: int, max_iterations: int) -> bool:
    """Whether the failed run `iteration` was the last one allowed (K1)."""
    return iteration >= max_iterations


def is_deadlocked(specialist: SpecialistState, window: int | None) -> bool:
    """Whether the last `window` runs failed alike, all of them since an extension (K7); None: never."""
    if window is None:
        return False
    counted = [run for run in specialist.runs if run.number > specialist.window_start]
    last = counted[-window:]
    if len(last) < window or any(run.passed for run in last):
        return False
    same_size = len({run.count for run in last}) == 1
    return same_size and same_failures([[ref.key for ref in run.failures] for run in last])


def comparison(previous: Run | None, current: Run) -> Comparison:
    """Resolved, persisting and new failures between two runs (B42). A vanished test is the same failure as before: only
    a pass of the test resolves it (K7)."""
    before = previous.failures if previous is not None else ()
    return compare(_identified(before, current.failures), _identified(current.failures, before))


def with_vanished(active: SpecialistState, event: "RunFinished") -> tuple[Failure, ...]:
    """The run's failures, and the tests that failed before and did not run now (K7)."""
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
    active: SpecialistState, event: "RunFinished", failures: Iterable[Failure]
) -> tuple[FailureRef, ...]:
    """The failing tests that a later run has to show passing; a vanished test stays owed unchanged (K7)."""
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


def _identified(failures: tuple[FailureRef, ...], others: tuple[FailureRef, ...]) -> list[FailureKey]:
    known = {(ref.file, ref.name): ref.error_type for ref in others if ref.error_type != "vanished"}
    found = []
    for ref in failures:
        key = ref.key
        if ref.error_type == "vanished":
            key = key._replace(error_type=known.get((ref.file, ref.name), "vanished"))
        found.append(key)
    return found
