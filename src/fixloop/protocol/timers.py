"""Lateness: reminders, the escalation five minutes later, and the cap on an iteration (A56-A64, K6, K34).

A deadline that fires may be an earlier one of the same name, so its meaning is read from the state (R6).
"""

from datetime import timedelta

from fixloop.protocol import delivery
from fixloop.protocol.durations import minutes_seconds, stamp
from fixloop.protocol.event import NotDue
from fixloop.protocol.events import DeadlineReached
from fixloop.protocol.messages import MAIN_AGENT, ErrorType, Reason, TimeoutReminder
from fixloop.protocol.notices import escalate, say_error
from fixloop.protocol.outcome import Draft
from fixloop.protocol.specialists import specialist as slot
from fixloop.protocol.state import Operation, OperationName, PendingError, State


def deadline_reached(draft: Draft, event: DeadlineReached) -> None:
    """Handle a deadline; one that no longer matters is cleared and noted (R6)."""
    _refuse_early(draft, event.name, event.due)
    state, operation = draft.state, draft.state.operation
    draft.clear_deadlines(event.name)
    if state.paused:
        draft.note(f"deadline {event.name} passed while paused")
    elif event.name == delivery.RECEIPT_DEADLINE:
        delivery.receipt_overdue(draft)
    elif event.name == OperationName.ITERATION.value and state.iteration_due is not None:
        _iteration_over(draft, state.iteration_due)
    elif operation is not None and event.name == operation.name.value:
        _remind(draft, event, operation)
    elif (
        operation is not None
        and operation.reminded_clock is not None
        and event.name == operation.name.reminder_deadline
    ):
        _escalate_unanswered(draft, operation, operation.reminded_clock)
    else:
        draft.note(f"deadline {event.name} no longer matters")


def _remind(draft: Draft, event: DeadlineReached, operation: Operation) -> None:
    """Log a timeout event and send one reminder to the late party (A58-A60)."""
    limit = operation.limit_seconds or 0.0
    reminds_after = draft.state.limits.reminds_after(limit)
    started = operation.started_clock if operation.started_clock is not None else event.due - reminds_after
    _refuse_early(draft, event.name, started + reminds_after)
    if operation.reminded_clock is not None:
        # Another attempt is late like the first: there is no second reminder (A61), but the wait must end.
        draft.note(f"{operation.name} is late again; it was reminded of already")
        _wait_for_answer(draft, started + limit)
        return
    draft.update(operation=operation.with_(started_clock=started, reminded_clock=draft.clock))
    escalates = _wait_for_answer(draft, started + limit)
    name, elapsed = operation.name, draft.clock - started
    expected = draft.at + timedelta(seconds=limit - elapsed)
    what = "timeout" if elapsed > limit else "reminder"
    draft.note(
        f"{what}: {name} of {operation.specialist} has taken {minutes_seconds(elapsed)} of"
        f" {minutes_seconds(limit)}; its completion was expected by {stamp(expected)}"
    )
    draft.say(
        TimeoutReminder(
            operation=name.value,
            elapsed_seconds=elapsed,
            threshold_seconds=limit,
            window_seconds=escalates - draft.clock if escalates is not None else None,
            status=draft.state.active.status,
        ),
        draft.stamped_id("TIMEOUT", name.value),
        summary=f"{name} is late",
        recipient=MAIN_AGENT if name is OperationName.FIX else slot(operation.specialist).handle,
    )


def _wait_for_answer(draft: Draft, limit_at: float) -> float | None:
    """Escalate after the window, but not before the limit (K29, K34); None: never."""
    window, operation = draft.state.limits.reminder_window_seconds, draft.state.operation
    if window is None or operation is None:
        return None
    due = max(draft.clock + window, limit_at)
    draft.update(operation=operation.with_(escalates_clock=due))
    draft.set_deadline(operation.name.reminder_deadline, due)
    return due


def _escalate_unanswered(draft: Draft, operation: Operation, reminded: float) -> None:
    """The reminder was not answered (A62, A66); a late main agent is flagged as unresponsive (B31)."""
    window = draft.state.limits.reminder_window_seconds or 0.0
    due = reminded + window if operation.escalates_clock is None else operation.escalates_clock
    _refuse_early(draft, operation.name.reminder_deadline, due)
    detail = f"{operation.name} was not finished {minutes_seconds(draft.clock - reminded)} after its reminder"
    if operation.name is not OperationName.FIX:
        escalate(draft, Reason.TIMEOUT, detail, operation=operation.name)
        return
    since = operation.started_clock if operation.started_clock is not None else reminded
    # Error type 4: the attempted recovery is the reminder (A73, A76).
    pending = PendingError(
        error_type=ErrorType.UNRESPONSIVE,
        context=f"{operation.name} of {operation.specialist}, run {operation.iteration}",
        error=detail,
        recovery=(f"a timeout reminder was sent after {minutes_seconds(reminded - since)}",),
    )
    say_error(draft, pending)
    escalate(draft, Reason.TIMEOUT, detail, operation=operation.name, flags=("unresponsive",))


def _iteration_over(draft: Draft, due: float) -> None:
    """A single late operation has its own rule (K6); otherwise the cap escalates at once (A57)."""
    _refuse_early(draft, OperationName.ITERATION.value, due)
    operation = draft.state.operation
    if operation is not None and _has_own_rule(draft.state, operation, due):
        draft.note(f"the iteration's cap waits: the limit of {operation.name} decides")
        window = draft.state.limits.reminder_window_seconds
        draft.cap_iteration(draft.clock + window if window is not None else None)
        return
    since = draft.state.iteration_clock
    detail = f"the iteration took {draft.clock - (due if since is None else since):.0f} s in all"
    flags = ("unresponsive",) if draft.state.awaits_fix else ()  # the late party is the main agent (K12)
    escalate(draft, Reason.TIMEOUT, detail, operation=OperationName.ITERATION, flags=flags)


def _has_own_rule(state: State, operation: Operation, iteration_due: float) -> bool:
    started = operation.started_clock
    if started is None and operation.reminded_clock is not None:
        return True  # another attempt of what was late by itself
    if started is None and operation.name is OperationName.FIX and state.attempts == 1:
        # A fixer command that has not started yet, or only recently: time in a queue is not lateness (K34).
        started = state.iteration_clock
    if started is None or operation.limit_seconds is None:
        return False
    return started + operation.limit_seconds <= iteration_due


def _refuse_early(draft: Draft, name: str, due: float) -> None:
    if draft.clock <= due:
        raise NotDue(f"deadline {name} is {due - draft.clock:.1f} seconds away")
