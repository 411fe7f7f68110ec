"""What follows from a specialist's result: the loop, next phase, confirmations (A9-A10, B38-B46, K37)."""

from collections.abc import Iterable

from fixloop.protocol import analysis, deciding, ids
from fixloop.protocol.events import RunFinished
from fixloop.protocol.failures import Failure
from fixloop.protocol.messages import (
    MAIN_AGENT,
    ORCHESTRATOR,
    ErrorType,
    FailureDetected,
    Priority,
    Reason,
    RevalidationResult,
    RevalidationTrigger,
    Success,
)
from fixloop.protocol.notices import count_of, next_phase, say_recovered
from fixloop.protocol.outcome import Draft, Unexpected
from fixloop.protocol.specialists import specialist as slot
from fixloop.protocol.state import (
    FailureRef,
    OperationName,
    PendingError,
    Run,
    SpecialistState,
    WorkflowOutcome,
)
from fixloop.protocol.statuses import Role, Status

__all__ = ["go_on", "run_finished"]

KEPT_FAILURES = 250
"""Failures kept in full or as one line for the next report (K41); the count is always exact."""


def run_finished(draft: Draft, event: RunFinished) -> None:
    """A specialist's checks were run, or could not be."""
    active = draft.state.active
    expected = {Status.IN_PROGRESS, Status.RE_CHECKING}
    if event.step == "confirm":
        expected = {Status.COMPLETED}
    if (event.specialist, event.iteration) != (active.name, active.iteration) or (
        active.status not in expected
    ):
        raise Unexpected(
            f"run {event.iteration} of {event.specialist} is not expected: "
            f"{active.name} is {active.status} in run {active.iteration}"
        )
    draft.finish_operation()
    if event.outcome == "error" or (event.outcome == "skipped" and active.runs):
        _could_not_run(draft, event)
    elif event.outcome == "skipped":
        _not_applicable(draft, event)
    else:
        _settle(draft, event, _with_vanished(active, event), could_not_run=False)


def _settle(draft: Draft, event: RunFinished, failures: tuple[Failure, ...], *, could_not_run: bool) -> None:
    say_recovered(draft)
    passed = not failures and event.outcome == "passed"
    active = draft.state.active
    draft.update_specialist(
        active.name, owed=_owed(active, event, failures), skipped_checks=event.skipped_checks
    )
    if event.step == "confirm" and passed:
        draft.update_specialist(active.name, passed_tree=event.tree, evidence=event.evidence)
        go_on(draft)
        return
    if event.step == "confirm" and not _reopen(draft, event, failures):
        return
    run = Run(
        number=draft.state.active.iteration,
        passed=passed,
        tree=event.tree,
        count=len(failures),
        failures=tuple(FailureRef.of(failure) for failure in failures),
        coverage=event.coverage,
        at=draft.at,
        could_not_run=could_not_run,
    )
    previous = draft.state.active.last_run
    draft.update_specialist(active.name, runs=(*draft.state.active.runs, run))
    if passed:
        _passed(draft, event, previous, run)
    else:
        _failed(draft, event, previous, run, failures)


def _passed(draft: Draft, event: RunFinished, previous: Run | None, run: Run) -> None:
    active = draft.state.active
    before = active.status
    draft.update_specialist(active.name, passed_tree=event.tree, evidence=event.evidence)
    draft.move(Status.PASS, Role.SPECIALIST, f"run {run.number} passed")
    _say_result(draft, event, previous, run, before)
    draft.move(Status.COMPLETED, Role.ORCHESTRATOR, "phase passed")
    _say_success(draft, run)
    draft.clear_deadlines(OperationName.ITERATION.value)
    draft.update(failures=(), failure_count=0, iteration_clock=None, escalate_on_failure=False)
    go_on(draft)


def _failed(
    draft: Draft, event: RunFinished, previous: Run | None, run: Run, failures: tuple[Failure, ...]
) -> None:
    active = draft.state.active
    before = active.status
    draft.move(Status.FAIL, Role.SPECIALIST, f"run {run.number} failed: {count_of(run.count)}")
    if run.number == 1:
        _say_detected(draft, event, run, failures, before)
    else:
        _say_result(draft, event, previous, run, before)
    draft.clear_deadlines(OperationName.ITERATION.value)
    draft.update(
        failures=failures[:KEPT_FAILURES],
        failure_count=run.count,
        iteration_clock=None,
        attempts=0,
        answers=0,
    )
    _continue_or_escalate(draft)


def _continue_or_escalate(draft: Draft) -> None:
    """B44, B45, K1, K7, K8, K37: at a FAIL either a new failure report or one escalation."""
    state, active = draft.state, draft.state.active
    if analysis.limit_reached(active.iteration, active.max_iterations):
        deciding.escalate(draft, Reason.MAX_ITERATIONS)
    elif state.confirm_rounds >= state.limits.confirm_rounds:
        names = " and ".join(dict.fromkeys(state.confirm_failed))
        rounds = state.confirm_rounds
        deciding.escalate(draft, Reason.DEADLOCK, f"the fixes of {names} undo each other: {rounds} rounds")
    elif analysis.is_deadlocked(active, state.limits.deadlock_window):
        deciding.escalate(draft, Reason.DEADLOCK)
    elif state.escalate_on_failure:
        deciding.escalate(draft, Reason.BLOCKER, "the manual fix did not pass")
    else:
        draft.ask("report")


def _reopen(draft: Draft, event: RunFinished, failures: tuple[Failure, ...]) -> bool:
    """A confirmation failed: it is run n+1 (K37). False when the limit leaves no room for one."""
    state, active = draft.state, draft.state.active
    failed = (*state.confirm_failed, active.name)
    draft.update(confirm_rounds=state.confirm_rounds + 1, confirm_failed=failed)
    draft.move(Status.RE_CHECKING, Role.SPECIALIST, "it fails on the final tree")
    if active.iteration >= active.max_iterations:
        draft.move(Status.FAIL, Role.SPECIALIST, "it fails on the final tree and no run is left")
        draft.update(failures=failures[:KEPT_FAILURES], failure_count=len(failures))
        deciding.escalate(draft, Reason.MAX_ITERATIONS, "a later fix broke it and no run is left")
        return False
    number = active.iteration + 1
    draft.update_specialist(active.name, iteration=number)
    draft.say(
        RevalidationTrigger(
            phase=slot(active.name).phase, previous_failures=(), fixes=("fixes of later phases",)
        ),
        ids.trigger_id(state.issue, active.name, number),
        summary=f"Confirm {slot(active.name).phase} on the final tree, run {number}",
        recipient=slot(active.name).handle,
        before=Status.COMPLETED,
    )
    return True


def go_on(draft: Draft) -> None:
    """Begin the next phase, or confirm on the final tree, or end (A10, K28, K37)."""
    for entry in draft.state.specialists:
        if entry.applicable and entry.status is Status.PENDING:
            _begin(draft, entry.name)
            return
    for entry in draft.state.specialists:
        if entry.applicable and not entry.skipped and entry.passed_tree != draft.state.tree:
            draft.update(current=entry.name, epoch=draft.state.epoch + 1)
            draft.ask("confirm", operation=OperationName.VALIDATION)
            return
    _end(draft)


def _begin(draft: Draft, name: str) -> None:
    draft.update(current=name, attempts=0, answers=0, iteration_clock=None)
    draft.update_specialist(name, iteration=1, started_clock=draft.clock)
    draft.move(Status.IN_PROGRESS, Role.ORCHESTRATOR, f"{slot(name).phase} begins")
    draft.ask("validate", operation=OperationName.VALIDATION)


def _end(draft: Draft) -> None:
    applicable = [entry for entry in draft.state.specialists if entry.applicable]
    if not applicable:
        # Every check was optional and skipped: nothing was verified, so nothing passed (K38).
        draft.update_specialist(draft.state.current, applicable=True, status=Status.IN_PROGRESS, iteration=1)
        deciding.escalate(draft, Reason.SPECIALIST_ERROR, "every check was skipped, nothing was verified")
        return
    skipped = any(entry.skipped for entry in applicable)
    draft.withdraw()
    draft.update(outcome=WorkflowOutcome.SKIPPED if skipped else WorkflowOutcome.SUCCESS)


def _could_not_run(draft: Draft, event: RunFinished) -> None:
    """A72, K36: once more; then a person, or a failure that a fix caused and a fix can undo."""
    state, active = draft.state, draft.state.active
    error = event.error or "the checks could not be run"
    attempts = event.attempt
    tried = active.error.recovery if active.error is not None else ()
    if attempts < state.limits.specialist_attempts:
        pending = PendingError(
            error_type=ErrorType.SPECIALIST_FAILURE,
            context=f"{event.step} of {active.name}, run {event.iteration}",
            error=error,
            stack_trace=event.stack_trace,
            attempts=attempts,
            recovery=(*tried, f"{active.name} was invoked again (attempt {attempts + 1})"),
        )
        draft.update_specialist(active.name, error=pending)
        operation = OperationName.REVALIDATION if event.step == "recheck" else OperationName.VALIDATION
        delay = state.limits.backoff(attempts + 1)
        draft.ask(event.step, operation=operation, attempt=attempts + 1, delay_seconds=delay)
        return
    ran = next((run for run in reversed(active.runs) if not run.could_not_run), None)
    if ran is not None and ran.tree != event.tree:
        _settle(draft, event, (_unrunnable(event, error),), could_not_run=True)
    else:
        deciding.specialist_error(draft, error, event.stack_trace, tried)


def _unrunnable(event: RunFinished, error: str) -> Failure:
    return Failure(
        name="could not run after the fix",
        error_type="CouldNotRun",
        check=event.specialist,
        message="\n".join(part for part in (error, event.stack_trace) if part),
        suggestion="undo what keeps the check from running; it ran before the last fix",
    )


def _not_applicable(draft: Draft, event: RunFinished) -> None:
    # PENDING and out of the flow, as if it had never applied (K38); no transition leads there.
    draft.note(f"{event.specialist} does not apply: all its checks were skipped")
    draft.update_specialist(
        event.specialist,
        applicable=False,
        status=Status.PENDING,
        iteration=0,
        error=None,
        skipped_checks=event.skipped_checks,
    )
    go_on(draft)


def _with_vanished(active: SpecialistState, event: RunFinished) -> tuple[Failure, ...]:
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


def _owed(active: SpecialistState, event: RunFinished, failures: Iterable[Failure]) -> tuple[FailureRef, ...]:
    if not event.lists_passes:
        return active.owed
    before = {(ref.file, ref.name): ref for ref in active.owed}
    owed = []
    for failure in failures:
        if failure.error_type == "vanished":
            owed.append(before[(failure.file, failure.name)])
        elif failure.check in event.lists_passes and not failure.measure:
            owed.append(FailureRef.of(failure))
    return tuple(owed)


def _say_detected(
    draft: Draft, event: RunFinished, run: Run, failures: tuple[Failure, ...], before: Status
) -> None:
    active = draft.state.active
    details = tuple(
        f"{failure.name} - {failure.error_type}" if failure.error_type else failure.name
        for failure in failures[:KEPT_FAILURES]
    )
    draft.say(
        FailureDetected(
            phase=slot(active.name).phase,
            statement=count_of(run.count),
            details=details,
            coverage=event.coverage,
        ),
        ids.detection_id(draft.state.issue, active.name),
        summary=f"{slot(active.name).phase}: {count_of(run.count)}",
        sender=slot(active.name).handle,
        recipient=ORCHESTRATOR,
        before=before,
    )


def _say_result(draft: Draft, event: RunFinished, previous: Run | None, run: Run, before: Status) -> None:
    state, active = draft.state, draft.state.active
    verdict = "PASS" if run.passed else f"FAIL, {count_of(run.count)}"
    draft.say(
        RevalidationResult(
            passed=run.passed,
            failures=tuple(_line(ref) for ref in run.failures[:KEPT_FAILURES]),
            failure_count=run.count,
            comparison=analysis.comparison(previous, run),
            history=analysis.history(active.runs),
            next_phase=next_phase(state) if run.passed else "",
            coverage=event.coverage,
            evidence=tuple(f"{e.check}: `{e.command}` exit {e.exit_code}" for e in event.evidence),
            marks=state.marks,
        ),
        ids.result_id(state.issue, active.name, run.number),
        summary=f"Run {run.number}/{active.max_iterations}: {verdict}",
        sender=slot(active.name).handle,
        recipient=ORCHESTRATOR,
        before=before,
    )


def _say_success(draft: Draft, run: Run) -> None:
    state, active = draft.state, draft.state.active
    phase = slot(active.name).phase
    following = next_phase(state)
    draft.say(
        Success(
            phase=phase,
            iterations=run.number,
            history=analysis.history(active.runs),
            total_seconds=draft.clock - (active.started_clock or draft.clock),
            next_phase=following,
            marks=state.marks,
        ),
        ids.success_id(state.issue, active.name, run.number),
        summary=f"{phase} passed in run {run.number}/{active.max_iterations}; next: {following}",
        recipient=MAIN_AGENT,
        priority=Priority.MEDIUM,
        before=Status.PASS,
    )


def _line(ref: FailureRef) -> str:
    where = f" ({ref.file}:{ref.line})" if ref.file and ref.line else f" ({ref.file})" if ref.file else ""
    what = f" - {ref.error_type}" if ref.error_type else ""
    return f"{ref.name}{where}{what}"
