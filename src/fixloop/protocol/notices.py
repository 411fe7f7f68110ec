"""Sends error notifications and escalations (A11, A65-A69, A72-A76)."""

from fixloop.protocol import diagnosis, ids
from fixloop.protocol.checks import Finding
from fixloop.protocol.messages import MAIN_AGENT, ErrorNotification, ErrorType, Escalation, Reason
from fixloop.protocol.outcome import Draft
from fixloop.protocol.specialists import AFTER_THE_LAST_PHASE, Role, Status, specialist as slot
from fixloop.protocol.state import OpenEscalation, OperationName, PendingError, State
from fixloop.protocol.ticket import Priority


def next_phase(state: State) -> str:
    """The phase after the current one; after the last one comes completion, without a deployment (U2)."""
    later = state.specialists[state.specialists.index(state.active) + 1 :]
    pending = (entry.name for entry in later if entry.applicable and entry.status is not Status.COMPLETED)
    name = next(pending, "")
    return slot(name).phase if name else AFTER_THE_LAST_PHASE


def say_recovered(draft: Draft) -> None:
    """If there was an error with a pending recovery, report it as recovered (A75, S9)."""
    active = draft.state.active
    if active.error is not None:
        draft.update_specialist(active.name, error=None)
        say_error(draft, active.error, recovered=True)


def say_error(draft: Draft, error: PendingError, *, recovered: bool = False) -> None:
    """Send an ERR (A74-A76); the escalation follows if the error was not recovered from."""
    state, active = draft.state, draft.state.active
    by_specialist = error.error_type is ErrorType.SPECIALIST_FAILURE
    operation = OperationName.FIX
    if by_specialist:
        again = bool(active.runs) and not active.has_passed
        operation = OperationName.REVALIDATION if again else OperationName.VALIDATION
    # A fixer that failed did respond: its output is reported, without a judgement (A73).
    kind = "No fix was made" if error.error_type is ErrorType.UNRESPONSIVE else error.error_type.label
    draft.say(
        ErrorNotification(
            error_type=error.error_type,
            operation=operation.value,
            agent=slot(active.name).handle if by_specialist else MAIN_AGENT,
            regarding="" if by_specialist else ids.report_id(state.issue, active.name, active.iteration),
            context=error.context,
            error=error.error or "no message",
            stack_trace=error.stack_trace,
            recovery=error.recovery or ("none was possible",),
            recovered=recovered,
        ),
        draft.stamped_id("ERR", error.error_type.value),
        summary=f"{kind}: {'recovered' if recovered else error.error}",
        recipient=MAIN_AGENT,
    )


def escalate(
    draft: Draft,
    reason: Reason,
    detail: str = "",
    *,
    operation: OperationName | None = None,
    flags: tuple[str, ...] = (),
    findings: tuple[Finding, ...] = (),
    source: str = "",
) -> None:
    """Pause the workflow and send the escalation once (A69); this voids every ticket and deadline."""
    if draft.state.active.status is Status.COMPLETED:  # a confirmation was running (K37)
        draft.move(Status.RE_CHECKING, Role.SPECIALIST, "it is being confirmed")
    interrupted = draft.state.active.status
    since = draft.state.active.started_clock
    body = _report(draft, reason, detail, flags, since, findings).model_copy(update={"source": source})
    draft.withdraw()
    draft.move(Status.ESCALATED, Role.ORCHESTRATOR, reason.text)
    name = draft.state.current
    message_id = draft.stamped_id("ESC", name)
    report = draft.say(
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
        uid=report.uid,
        findings=findings,
    )
    draft.update_specialist(name, error=None)
    # After a hold, a manual fix still has to be judged (K20).
    mended = draft.state.escalate_on_failure and reason is Reason.INTEGRITY_HOLD
    draft.update(paused=True, escalation=opened, escalate_on_failure=mended)
    if draft.state.notify:
        draft.ask("notify", attempt=draft.state.lines)
    if draft.state.agent and reason.target == MAIN_AGENT:
        draft.ask("escalate")


def _report(
    draft: Draft,
    reason: Reason,
    detail: str,
    flags: tuple[str, ...],
    since: float | None,
    findings: tuple[Finding, ...],
) -> Escalation:
    state, active = draft.state, draft.state.active
    last = active.last_run
    advice = diagnosis.recommendation(active, reason, detail)
    left = state.failure_count if active.has_passed else last.count if last is not None else 0
    return Escalation(
        feature=state.name,
        phase=slot(active.name).phase,
        reason=reason,
        detail=detail,
        flags=flags,
        iterations=len(active.runs),
        total_seconds=draft.clock - since if since is not None else 0.0,
        history=diagnosis.history_rows(active.runs, reason),
        pattern=diagnosis.pattern(active, reason, state.limits.deadlock_window),
        # A held run has passed: no failure is known.
        persistent=() if findings else diagnosis.persistent_failures(active, state.failures),
        persistent_count=0 if findings else left,
        recommended=advice.decision,
        rationale=advice.rationale,
        findings=findings,
    )


def specialist_error(draft: Draft, error: str, stack_trace: str, recovery: tuple[str, ...]) -> None:
    """The specialist could not run twice (A72); tell the main orchestrator (A68)."""
    active = draft.state.active
    pending = PendingError(
        error_type=ErrorType.SPECIALIST_FAILURE,
        context=f"run {active.iteration} of {active.name}",
        error=error,
        stack_trace=stack_trace,
        recovery=recovery,
    )
    say_error(draft, pending)
    escalate(draft, Reason.SPECIALIST_ERROR, error)
