"""Decides what follows a specialist's result: the loop, the next phase, confirmations (A9-A10, B38-B46, K37)."""

from fixloop.protocol import analysis, diagnosis, holds, ids, messages as msg, push
from fixloop.protocol.event import Unexpected
from fixloop.protocol.events import BaselineBegun, RunFinished
from fixloop.protocol.failure_report import examples
from fixloop.protocol.failures import Failure, FailureRef, count_of
from fixloop.protocol.notices import escalate, next_phase, say_recovered, specialist_error
from fixloop.protocol.outcome import Draft
from fixloop.protocol.specialists import AFTER_THE_LAST_PHASE, Role, Status, specialist as slot
from fixloop.protocol.state import OpenEscalation, OperationName, PendingError, Run, State
from fixloop.protocol.ticket import Priority

NAMED_TESTS = 10
"""How many renamed tests the log names."""
KEPT_FAILURES = 250
"""Failures that a message lists on one line each (K41); the count is always exact."""


def run_finished(draft: Draft, event: RunFinished) -> None:
    """A specialist's checks ran, or could not run."""
    _refuse_unexpected(draft, event)
    if not draft.state.tree and event.outcome != "error":
        draft.update(tree=event.tree)
    active = draft.state.active
    error = no_result(draft.state, event)
    if error:
        _could_not_run(draft, event, error)
        return
    draft.update(environments={**draft.state.environments, **event.environments})
    draft.finish_operation()
    say_recovered(draft)
    if event.outcome == "skipped":
        _not_applicable(draft, event)
        return
    for old, new in list(event.renamed.items())[:NAMED_TESTS]:
        draft.note(f"{old} is known again as {new}")
    failures = analysis.with_vanished(active, event)
    found = holds.findings_on(draft.state, event) if event.outcome == "passed" and not failures else ()
    if found:
        # A held run is neither a pass nor a failure: nothing is recorded before a person has decided.
        rules = ", ".join(holds.rules_of(found))
        detail = f"run {active.iteration} of {active.name} passed, and is held by {rules}"
        escalate(draft, msg.Reason.INTEGRITY_HOLD, detail, findings=found)
        return
    failing = {failure.check for failure in event.failures}
    commands = tuple(each.reproduce for each in event.evidence if each.check in failing and each.reproduce)
    gates = [each.coverage_gate for each in event.evidence if each.coverage_gate is not None]
    draft.update_specialist(
        active.name,
        skipped_checks=event.skipped_checks,
        coverage_gate=max(gates, default=None),
        old={each.check: each.old for each in event.evidence if each.old},
        uncompared={each.check: each.no_baseline for each in event.evidence if each.no_baseline},
        commands=commands,
        cases={**active.cases, **event.cases},
    )
    if not failures and event.outcome != "passed":
        unexplained = Failure(
            name=event.specialist,
            error_type="Unexplained",
            check=event.specialist,
            message="the checks failed and named no failure",
        )
        failures = (unexplained,)
    _settle(draft, event, failures)


def rejected(draft: Draft, opened: OpenEscalation, reason: str) -> None:
    """A person rejected the findings: the run counts as failed, like any other failure."""
    active = draft.state.active
    failures = holds.as_failures(opened, reason, active.name)
    draft.move(opened.interrupted, Role.SPECIALIST, "what was held is rejected")
    run = RunFinished(
        step=active.step,
        specialist=active.name,
        iteration=active.iteration,
        outcome="failed",
        tree=draft.state.tree,
        failures=failures,
    )
    _settle(draft, run, failures)


def baseline_begun(draft: Draft, event: BaselineBegun) -> None:
    """Log that a baseline run has started."""
    active = draft.state.active
    if event.specialist != active.name:
        raise Unexpected(f"{event.specialist} is not at work, but {active.name}, which is {active.status}")
    draft.note(f"baseline of {event.check} on {event.base[:7]}")


def _refuse_unexpected(draft: Draft, event: RunFinished) -> None:
    active = draft.state.active
    expected = {Status.IN_PROGRESS, Status.RE_CHECKING}
    if event.step == "confirm":
        expected = {Status.COMPLETED, Status.RE_CHECKING}
    asked = (event.specialist, event.iteration) == (active.name, active.iteration)
    if not asked or active.status not in expected or active.has_passed != (event.step == "confirm"):
        raise Unexpected(
            f"{event.step} of run {event.iteration} of {event.specialist} is not expected: "
            f"{active.name} is {active.status} in run {active.iteration}"
        )
    if active.error is not None and event.attempt <= active.error.attempts:
        told = f"attempt {event.attempt} of run {event.iteration} of {active.name} was recorded already"
        raise Unexpected(told)


def no_result(state: State, event: RunFinished) -> str:
    """Why a run has no result; empty if it has one (K36, K37, K38)."""
    active = state.active
    if event.outcome == "error":
        return event.error or "the checks could not be run"
    if event.tree != state.tree:
        return f"the checks ran on tree {event.tree}, to be judged is {state.tree}"
    if not active.runs:
        return ""
    if event.outcome == "skipped":
        return "every check was skipped, though some ran before"
    missing = [check for check in event.skipped_checks if check not in active.skipped_checks]
    return f"skipped now, though it ran before: {', '.join(missing)}" if missing else ""


def _settle(
    draft: Draft, event: RunFinished, failures: tuple[Failure, ...], *, could_not_run: bool = False
) -> None:
    passed = not failures
    active = draft.state.active
    if not could_not_run:
        draft.update_specialist(active.name, owed=analysis.still_owed(active, event, failures))
    if event.step == "confirm" and passed:
        # Passing on the final tree too is evidence, and no message (K37).
        draft.update_specialist(active.name, passed_tree=event.tree, evidence=event.evidence)
        if active.status is Status.RE_CHECKING:  # it was interrupted by an escalation
            draft.move(Status.PASS, Role.SPECIALIST, "it passes on the final tree")
            draft.move(Status.COMPLETED, Role.ORCHESTRATOR, "phase passed")
        draft.update(escalate_on_failure=False)
        go_on(draft)
        return
    if event.step == "confirm" and not _reopen(draft, failures):
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
    state, active = draft.state, draft.state.active
    phase = slot(active.name).phase
    following, since = next_phase(state), active.started_clock
    then = f"; next: {following}" if following != AFTER_THE_LAST_PHASE else ""
    applicable = [entry for entry in state.specialists if entry.applicable]
    draft.say(
        msg.Success(
            phase=phase,
            iterations=run.number,
            history=analysis.history(active.runs),
            total_seconds=draft.clock - since if since is not None else 0.0,
            next_phase=following,
            phases_done=sum(entry.status is Status.COMPLETED for entry in applicable),
            phases_total=len(applicable),
            marks=state.marks,
        ),
        ids.success_id(state.issue, active.name, run.number),
        summary=f"{phase} passed in run {run.number}/{active.max_iterations}{then}",
        recipient=msg.MAIN_AGENT,
        priority=Priority.MEDIUM,
        before=Status.PASS,
    )
    draft.stop_iteration()
    draft.update(failures=(), failure_count=0, escalate_on_failure=False)
    go_on(draft)


def _failed(
    draft: Draft, event: RunFinished, previous: Run | None, run: Run, failures: tuple[Failure, ...]
) -> None:
    active = draft.state.active
    before = active.status
    draft.move(Status.FAIL, Role.SPECIALIST, f"run {run.number} failed: {count_of(run.count)}")
    ended = _reason_to_escalate(draft.state)
    if run.number == 1:
        _say_detected(draft, event, run, failures, before)
    else:
        _say_result(draft, event, previous, run, before, ended[0] if ended else None)
    draft.stop_iteration()
    draft.update(
        failures=examples(failures),
        failures_artifact=event.failures_artifact,
        failure_count=run.count,
        attempts=0,
        answers=0,
    )
    if ended is None:
        draft.ask("report")
    else:
        escalate(draft, *ended)


def _reason_to_escalate(state: State) -> tuple[msg.Reason, str] | None:
    """The reason to end the loop with an escalation after a FAIL, and its detail (B44, B45, K1, K7, K8, K37)."""
    active = state.active
    if analysis.limit_reached(active.iteration, active.max_iterations):
        return msg.Reason.MAX_ITERATIONS, ""
    if state.confirm_rounds >= state.limits.confirm_rounds:
        names, rounds = " and ".join(dict.fromkeys(state.confirm_failed)), state.confirm_rounds
        return msg.Reason.DEADLOCK, f"the fixes of {names} undo each other: {rounds} rounds"
    if analysis.is_deadlocked(active, state.limits.deadlock_window):
        return msg.Reason.DEADLOCK, ""
    return (msg.Reason.BLOCKER, "the manual fix did not pass") if state.escalate_on_failure else None


def _reopen(draft: Draft, failures: tuple[Failure, ...]) -> bool:
    """A failed confirmation becomes run n+1 (K37). False if the limit allows no further run."""
    state, active = draft.state, draft.state.active
    draft.update(confirm_rounds=state.confirm_rounds + 1, confirm_failed=(*state.confirm_failed, active.name))
    before = active.status
    if before is Status.COMPLETED:
        draft.move(Status.RE_CHECKING, Role.SPECIALIST, "it fails on the final tree")
    if active.iteration >= active.max_iterations:
        draft.move(Status.FAIL, Role.SPECIALIST, "it fails on the final tree and no run is left")
        draft.update(failures=examples(failures), failure_count=len(failures))
        escalate(draft, msg.Reason.MAX_ITERATIONS, "a later fix broke it and no run is left")
        return False
    number = active.iteration + 1
    draft.update_specialist(active.name, iteration=number)
    draft.say(
        msg.RevalidationTrigger(
            phase=slot(active.name).phase,
            confirms=True,
            previous_failures=(),
            fixes=("fixes of later phases",),
        ),
        ids.trigger_id(state.issue, active.name, number),
        summary=f"Confirm {slot(active.name).phase} on the final tree, run {number}",
        recipient=slot(active.name).handle,
        before=before,
    )
    return True


def go_on(draft: Draft) -> None:
    """Start the next phase, or a confirmation on the final tree, or end (A10, K28, K37)."""
    for entry in draft.state.specialists:
        if entry.applicable and entry.status is Status.PENDING:
            draft.update(current=entry.name, attempts=0, answers=0)
            draft.update_specialist(entry.name, iteration=1, started_clock=draft.clock)
            draft.move(Status.IN_PROGRESS, Role.ORCHESTRATOR, f"{slot(entry.name).phase} begins")
            draft.ask("validate", operation=OperationName.VALIDATION)
            return
    for entry in draft.state.specialists:
        if entry.applicable and not entry.skipped and entry.passed_tree != draft.state.tree:
            draft.update(current=entry.name, epoch=draft.state.epoch + 1)
            draft.note(f"confirming {slot(entry.name).phase} on the final tree")
            draft.ask("confirm", operation=OperationName.VALIDATION)
            return
    push.ask_or_end(draft)


def _could_not_run(draft: Draft, event: RunFinished, error: str) -> None:
    """Retry if that may help (A72, K36); then escalate, or record a failure that a fix caused and another can undo."""
    state, active = draft.state, draft.state.active
    attempts = event.attempt
    draft.note(f"{event.step} of {active.name}, attempt {attempts}: {error}")
    tried = active.error.recovery if active.error is not None else ()
    if attempts < state.limits.specialist_attempts and not event.is_final:
        pending = PendingError(
            error_type=msg.ErrorType.SPECIALIST_FAILURE,
            context=f"{event.step} of {active.name}, run {event.iteration}",
            error=error,
            stack_trace=event.stack_trace,
            attempts=attempts,
            recovery=(*tried, f"{active.name} was invoked again (attempt {attempts + 1})"),
        )
        draft.update_specialist(active.name, error=pending)
        # The operation stays the same, so that there is only one reminder (A61).
        operation = OperationName.REVALIDATION if event.step == "recheck" else OperationName.VALIDATION
        draft.clear_deadlines(operation.value, operation.reminder_deadline)
        delay = state.limits.backoff(attempts + 1)
        draft.ask(event.step, operation=operation, attempt=attempts + 1, delay_seconds=delay)
        return
    draft.finish_operation()
    # The tree of the last run whose checks could run; empty if there is none.
    trees = (run.tree for run in reversed(active.runs) if not run.could_not_run)
    ran = active.passed_tree if event.step == "confirm" else next(trees, "")
    if ran and ran != state.tree:
        draft.update_specialist(active.name, error=None)
        broken = Failure(
            name="could not run after the fix",
            error_type="CouldNotRun",
            check=event.specialist,
            message="\n".join(part for part in (error, event.stack_trace) if part),
            suggestion="undo what keeps the check from running; it ran before the last fix",
        )
        _settle(draft, event, (*event.failures, broken), could_not_run=True)
    else:
        specialist_error(draft, error, event.stack_trace, tried)


def _not_applicable(draft: Draft, event: RunFinished) -> None:
    if not any(entry.applicable for entry in draft.state.specialists if entry.name != event.specialist):
        # Nothing was verified, so nothing can pass (K38).
        escalate(draft, msg.Reason.SPECIALIST_ERROR, "every check was skipped, nothing was verified")
        return
    # PENDING and out of the flow, as if it never applied (K38); no transition leads there.
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


def _say_detected(
    draft: Draft, event: RunFinished, run: Run, failures: tuple[Failure, ...], before: Status
) -> None:
    active = draft.state.active
    details = tuple(
        f"{failure.name} - {failure.error_type}" if failure.error_type else failure.name
        for failure in failures[:KEPT_FAILURES]
    )
    draft.say(
        msg.FailureDetected(
            phase=slot(active.name).phase,
            statement=count_of(run.count),
            details=details,
            coverage=event.coverage,
        ),
        ids.detection_id(draft.state.issue, active.name),
        summary=f"{slot(active.name).phase}: {count_of(run.count)}",
        sender=slot(active.name).handle,
        recipient=msg.ORCHESTRATOR,
        before=before,
    )


def _say_result(
    draft: Draft,
    event: RunFinished,
    previous: Run | None,
    run: Run,
    before: Status,
    escalates: msg.Reason | None = None,
) -> None:
    state, active = draft.state, draft.state.active
    changes = analysis.comparison(previous, run)
    verdict = "PASS" if run.passed else f"FAIL, {count_of(run.count)}"
    evidence = []
    for each in event.evidence:
        found = sum(failure.check == each.check for failure in event.failures)
        ended = f"{each.check}: {each.command} (exit code {each.exit_code})"
        evidence.append("; ".join(filter(None, (ended, each.compared(found), each.beforehand))))
    draft.say(
        msg.RevalidationResult(
            passed=run.passed,
            failures=tuple(ref.described for ref in run.failures[:KEPT_FAILURES]),
            failure_count=run.count,
            comparison=changes,
            history=analysis.history(active.runs),
            likely_cause=diagnosis.cause_of_new(changes, previous),
            escalates=escalates,
            fix_seconds=sum(each.fix_seconds for each in active.runs),
            next_phase=next_phase(state) if run.passed else "",
            coverage=event.coverage,
            evidence=tuple(evidence),
            marks=state.marks,
        ),
        ids.result_id(state.issue, active.name, run.number),
        summary=f"Run {run.number}/{active.max_iterations}: {verdict}",
        sender=slot(active.name).handle,
        recipient=msg.ORCHESTRATOR,
        before=before,
    )
