"""An escalation: one pause and one report that says why (A11, A65-A69, A72)."""

from fixloop.protocol import diagnosis
from fixloop.protocol.messages import MAIN_AGENT, ErrorType, Escalation, Priority, Reason
from fixloop.protocol.notices import say_unrecovered
from fixloop.protocol.outcome import Draft
from fixloop.protocol.specialists import specialist as slot
from fixloop.protocol.state import OpenEscalation, OperationName, PendingError
from fixloop.protocol.statuses import Role, Status


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
    )
    draft.update_specialist(name, error=None)
    draft.update(paused=True, escalation=opened, escalate_on_failure=False)
    if draft.state.notify:
        draft.ask("notify", attempt=draft.state.lines)
    if draft.state.agent and reason.target == MAIN_AGENT:
        draft.ask("escalate")


def _report(
    draft: Draft, reason: Reason, detail: str, flags: tuple[str, ...], since: float | None
) -> Escalation:
    state, active = draft.state, draft.state.active
    last = active.last_run
    advice = diagnosis.recommendation(active, reason, detail)
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
        persistent=diagnosis.persistent_failures(active, state.failures),
        persistent_count=state.failure_count if active.has_passed else last.count if last is not None else 0,
        recommended=advice.decision,
        rationale=advice.rationale,
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
