"""Escalations and what people decide: one pause, one report, one of four answers (A11-A14, A65-A69, K20)."""

from fixloop.protocol import analysis, fixing, results
from fixloop.protocol.events import Cancelled, DecisionMade, ManualFixDone, PersonNotified
from fixloop.protocol.messages import (
    Decision,
    ErrorType,
    Escalation,
    Priority,
    Reason,
)
from fixloop.protocol.notices import say_unrecovered
from fixloop.protocol.outcome import Draft, Unexpected
from fixloop.protocol.specialists import specialist as slot
from fixloop.protocol.state import (
    Completion,
    OpenEscalation,
    OperationName,
    PendingError,
    WorkflowOutcome,
)
from fixloop.protocol.statuses import Role, Status

__all__ = [
    "cancelled",
    "decision_made",
    "escalate",
    "manual_fix_done",
    "notified",
    "specialist_error",
]


def escalate(
    draft: Draft,
    reason: Reason,
    detail: str = "",
    *,
    operation: OperationName | None = None,
    flags: tuple[str, ...] = (),
) -> None:
    """Pause the workflow and say why, once (A69); every ticket and deadline is void."""
    if draft.state.active.status is Status.COMPLETED:  # a confirmation was running (K37)
        draft.move(Status.RE_CHECKING, Role.SPECIALIST, "it is being confirmed")
    interrupted = draft.state.active.status
    since = draft.state.active.started_clock
    body = _report(draft, reason, detail, flags, since)
    draft.withdraw()
    draft.move(Status.ESCALATED, Role.ORCHESTRATOR, reason.text)
    name = draft.state.current
    message_id = draft.stamped_id("ESC", name)
    draft.say(
        body,
        message_id,
        summary=f"{reason.text}{': ' + detail if detail else ''}",
        recipient=reason.target,
        priority=Priority.CRITICAL,
        before=interrupted,
    )
    opened = OpenEscalation(
        message_id=message_id,
        reason=reason,
        target=reason.target,
        detail=detail,
        interrupted=interrupted,
        operation=operation,
        at=draft.at,
    )
    draft.update_specialist(name, error=None)
    draft.update(paused=True, escalation=opened, escalate_on_failure=False)
    if draft.state.notify:
        draft.ask("notify", attempt=draft.state.lines)


def _report(
    draft: Draft, reason: Reason, detail: str, flags: tuple[str, ...], since: float | None
) -> Escalation:
    state, active = draft.state, draft.state.active
    persistent = analysis.persistent_failures(active)
    last = next((run for run in reversed(active.runs) if not run.passed), None)
    return Escalation(
        feature=state.name,
        phase=slot(active.name).phase,
        reason=reason,
        detail=detail,
        flags=flags,
        iterations=len(active.runs),
        total_seconds=draft.clock - since if since is not None else 0.0,
        history=analysis.history_rows(active.runs),
        pattern=analysis.pattern(active, reason),
        persistent=persistent,
        persistent_count=last.count if last is not None else 0,
    )


def specialist_error(draft: Draft, error: str, stack_trace: str, recovery: tuple[str, ...]) -> None:
    """A72: the specialist could not run twice; the main orchestrator is told (A68)."""
    active = draft.state.active
    pending = PendingError(
        error_type=ErrorType.SPECIALIST_FAILURE,
        context=f"run {active.iteration} of {active.name}",
        error=error,
        stack_trace=stack_trace,
        recovery=recovery,
    )
    say_unrecovered(draft, pending)
    escalate(draft, Reason.SPECIALIST_ERROR, error)


def decision_made(draft: Draft, event: DecisionMade) -> None:
    """One of the four answers, once (A13, K20)."""
    opened = draft.state.escalation
    if opened is None:
        raise Unexpected(f"workflow {draft.state.workflow} waits for no decision")
    if opened.decision is not None:
        raise Unexpected(
            f"{opened.message_id} was decided already ({opened.decision}); finish it with `fixloop fixed`"
        )
    draft.note(f"decision on {opened.message_id} by {event.by}: {event.decision} {event.reason}".rstrip())
    draft.update(epoch=draft.state.epoch + 1)
    if event.decision is Decision.SKIP:
        _skip(draft)
    elif event.decision is Decision.ABORT:
        draft.withdraw()
        draft.update(paused=False, escalation=None, outcome=WorkflowOutcome.ABORTED)
        draft.note("returned to the design phase")
    elif event.decision is Decision.EXTEND:
        _extend(draft, opened, event)
    else:
        _manual_fix(draft, opened, event)


def _skip(draft: Draft) -> None:
    active = draft.state.active
    issues = tuple(failure.name for failure in draft.state.failures)
    if not issues and active.last_run is not None:
        issues = tuple(ref.name for ref in active.last_run.failures)
    draft.update_specialist(active.name, skipped=True, known_issues=issues or ("never verified",))
    draft.note(f"{active.name}: failed but proceeding; known issues: {', '.join(issues) or 'never verified'}")
    draft.move(Status.COMPLETED, Role.ORCHESTRATOR, "skipped by a person: failed but proceeding")
    draft.update(paused=False, escalation=None, failures=(), failure_count=0)
    results.go_on(draft)


def _extend(draft: Draft, opened: OpenEscalation, event: DecisionMade) -> None:
    state, active = draft.state, draft.state.active
    minutes = event.minutes if event.minutes is not None else state.limits.extend_minutes
    draft.update(paused=False, escalation=None, confirm_rounds=0, confirm_failed=())
    if opened.reason in (Reason.MAX_ITERATIONS, Reason.DEADLOCK):
        extra = event.iterations if event.iterations is not None else state.limits.extra_iterations
        draft.update_specialist(
            active.name, max_iterations=active.max_iterations + extra, window_start=active.iteration
        )
        _take_up(draft, "report")
    elif opened.reason is Reason.SPECIALIST_ERROR:
        _run_again(draft)
    elif opened.reason is Reason.TIMEOUT:
        _give_time(draft, opened, minutes * 60)
    else:
        _take_up(draft, "report")


def _take_up(draft: Draft, step: str) -> None:
    """Go on with a kept completion if there is one, else deliver the open report again."""
    kept = draft.state.kept
    if kept is None:
        draft.ask(step)
        return
    draft.move(Status.AWAITING_FIX, Role.ORCHESTRATOR, "a completion that arrived meanwhile is taken up")
    fixing.take_completion(draft, kept)


def _run_again(draft: Draft) -> None:
    """The same run number with fresh attempts (K20)."""
    draft.move(Status.IN_PROGRESS, Role.SPECIALIST, "the same run again")
    step = "validate" if not draft.state.active.runs else "recheck"
    operation = OperationName.VALIDATION if step == "validate" else OperationName.REVALIDATION
    draft.ask(step, operation=operation)


def _give_time(draft: Draft, opened: OpenEscalation, seconds: float) -> None:
    """The interrupted operation gets `seconds` more, and the iteration with it (K19, K20)."""
    interrupted = opened.interrupted
    in_loop = interrupted is not Status.IN_PROGRESS
    if in_loop and draft.state.limits.iteration_seconds is not None:
        draft.update(iteration_clock=draft.clock)
        draft.set_deadline(OperationName.ITERATION.value, draft.clock + seconds)
    if interrupted is Status.IN_PROGRESS:
        draft.move(interrupted, Role.SPECIALIST, "more time was given")
        draft.ask("validate", operation=OperationName.VALIDATION, limit_seconds=seconds)
    elif interrupted is Status.RE_CHECKING:
        _recheck_with(draft, seconds)
    elif draft.state.kept is not None:
        _take_up(draft, "report")
    else:
        role = Role.MAIN_AGENT if interrupted is Status.FIXING else Role.ORCHESTRATOR
        draft.move(interrupted, role, "more time was given")
        _expect_fix(draft, seconds)


def _recheck_with(draft: Draft, seconds: float) -> None:
    active = draft.state.active
    if active.last_run is not None and active.last_run.number == active.iteration:
        # It was a confirmation that took too long: from here on it is run n+1 (K37).
        draft.update_specialist(active.name, max_iterations=max(active.max_iterations, active.iteration + 1))
        fixing.trigger(draft, ("fixes of later phases",))
        return
    draft.move(Status.RE_CHECKING, Role.SPECIALIST, "more time was given")
    draft.ask("recheck", operation=OperationName.REVALIDATION, limit_seconds=seconds)


def _expect_fix(draft: Draft, seconds: float) -> None:
    if draft.state.fixer == "command":
        draft.update(attempts=1, answers=0)
        draft.ask("fix", operation=OperationName.FIX, limit_seconds=seconds)
    else:
        draft.expect_fix(seconds)


def _manual_fix(draft: Draft, opened: OpenEscalation, event: DecisionMade) -> None:
    if opened.reason is Reason.SPECIALIST_ERROR:
        # What was wrong is outside the loop's reach (a missing tool, a wrong command): look again at once.
        _reread(draft, event)
        draft.update(paused=False, escalation=None)
        _run_again(draft)
        return
    draft.update(escalation=opened.model_copy(update={"decision": Decision.MANUAL_FIX}))
    kept = draft.state.kept
    if kept is not None:
        manual_fix_done(draft, _as_manual_fix(kept))


def _as_manual_fix(kept: Completion) -> ManualFixDone:
    return ManualFixDone(
        by=kept.by, summary=kept.summary, files=kept.files, tip=kept.tip, tree=kept.tree, marks=kept.marks
    )


def manual_fix_done(draft: Draft, event: ManualFixDone) -> None:
    """The person is done: max grows by exactly one and run n+1 is asked for (K20, S14)."""
    opened, active = draft.state.escalation, draft.state.active
    if opened is None or opened.decision is not Decision.MANUAL_FIX:
        raise Unexpected(
            f"workflow {draft.state.workflow} waits for no manual fix; "
            "decide `manual-fix` first if an escalation is open"
        )
    _reread(draft, event)
    summary = f"manual fix by {event.by}" + (f": {event.summary}" if event.summary else "")
    draft.note(f"{summary} ({', '.join(event.files) or 'no file changed'})")
    completion = Completion(
        iteration=active.iteration,
        by=event.by,
        fixes=(summary,),
        files=event.files,
        tip=event.tip,
        tree=event.tree,
        marks=event.marks,
    )
    fixing.record_fix(draft, completion)
    draft.update_specialist(active.name, max_iterations=active.max_iterations + 1)
    draft.update(paused=False, escalation=None, escalate_on_failure=True)
    fixing.trigger(draft, completion.fixes)


def _reread(draft: Draft, event: DecisionMade | ManualFixDone) -> None:
    """A person may change the gates; the log says so (DESIGN: gates are frozen)."""
    if event.tip:
        draft.update(tip=event.tip, tree=event.tree)
    if not event.configuration or event.configuration == draft.state.configuration:
        return
    draft.note(f"configuration re-read: {draft.state.configuration[:12]} → {event.configuration[:12]}")
    draft.update(configuration=event.configuration)
    if event.limits is not None:
        draft.update(limits=event.limits)
    for entry in draft.state.specialists:
        if entry.status is Status.PENDING:
            draft.update_specialist(entry.name, applicable=entry.name in event.specialists)


def notified(draft: Draft, event: PersonNotified) -> None:
    """Somebody was told of the escalation; that decides nothing."""
    draft.note(f"notified: {event.detail}")


def cancelled(draft: Draft, event: Cancelled) -> None:
    """The workflow ends in the status it had (K20)."""
    draft.withdraw()
    draft.note(f"cancelled by {event.by} {event.reason}".rstrip())
    draft.update(paused=False, escalation=None, outcome=WorkflowOutcome.CANCELLED)
