"""Lateness: reminders, the escalation five minutes later, and the cap on an iteration (A56-A64, K6, K34).

A deadline that is fired may be an old one of the same name: what it means is read from the state (R6).
"""

from fixloop.protocol import deciding
from fixloop.protocol.events import DeadlineReached
from fixloop.protocol.messages import MAIN_AGENT, Reason, TimeoutReminder
from fixloop.protocol.outcome import Draft, NotDue
from fixloop.protocol.specialists import specialist as slot
from fixloop.protocol.state import Operation, OperationName, State

__all__ = ["deadline_reached"]


def deadline_reached(draft: Draft, event: DeadlineReached) -> None:
    """A deadline fell due; one that no longer matters is cleared and noted (R6)."""
    _refuse_early(draft, event.name, event.due)
    state, operation = draft.state, draft.state.operation
    draft.clear_deadlines(event.name)
    if state.paused:
        draft.note(f"deadline {event.name} passed while paused")
    elif event.name == OperationName.ITERATION.value and state.iteration_due is not None:
        _iteration_over(draft, state.iteration_due)
    elif operation is not None and event.name == operation.name.value:
        _late(draft, event, operation)
    elif (
        operation is not None
        and operation.reminded_clock is not None
        and event.name == operation.name.reminder_deadline
    ):
        _no_answer(draft, operation, operation.reminded_clock)
    else:
        draft.note(f"deadline {event.name} no longer matters")


def _late(draft: Draft, event: DeadlineReached, operation: Operation) -> None:
    limit, window = operation.limit_seconds or 0.0, draft.state.limits.reminder_window_seconds
    started = operation.started_clock if operation.started_clock is not None else event.due - limit
    _refuse_early(draft, event.name, started + limit)
    if operation.reminded_clock is not None:
        # Another attempt, late like the first: one reminder is enough (A61), but the wait must end.
        draft.note(f"{operation.name} is late again; it was reminded of already")
        draft.set_deadline(operation.name.reminder_deadline, draft.clock + window)
        return
    draft.update(
        operation=operation.model_copy(update={"started_clock": started, "reminded_clock": draft.clock})
    )
    elapsed = draft.clock - started
    draft.note(f"timeout: {operation.name} took {elapsed:.0f} s, expected within {limit:.0f} s")
    draft.say(
        TimeoutReminder(
            operation=operation.name.value,
            elapsed_seconds=elapsed,
            threshold_seconds=limit,
            window_seconds=window,
            status=draft.state.active.status,
        ),
        draft.stamped_id("TIMEOUT", operation.name.value),
        summary=f"{operation.name} is late",
        recipient=MAIN_AGENT if operation.name is OperationName.FIX else slot(operation.specialist).handle,
    )
    draft.set_deadline(operation.name.reminder_deadline, draft.clock + window)


def _no_answer(draft: Draft, operation: Operation, reminded: float) -> None:
    window = draft.state.limits.reminder_window_seconds
    _refuse_early(draft, operation.name.reminder_deadline, reminded + window)
    detail = f"{operation.name} was not finished {draft.clock - reminded:.0f} s after its reminder"
    flags = ("unresponsive",) if operation.name is OperationName.FIX else ()
    deciding.escalate(draft, Reason.TIMEOUT, detail, operation=operation.name, flags=flags)


def _iteration_over(draft: Draft, due: float) -> None:
    """K6: a single late operation has its own rule; otherwise the cap escalates at once (A57)."""
    _refuse_early(draft, OperationName.ITERATION.value, due)
    operation = draft.state.operation
    if operation is not None and _governs(draft.state, operation, due):
        draft.note(f"the iteration's cap waits: the limit of {operation.name} decides")
        draft.cap_iteration(draft.clock + draft.state.limits.reminder_window_seconds)
        return
    since = draft.state.iteration_clock
    detail = f"the iteration took {draft.clock - (due if since is None else since):.0f} s in all"
    deciding.escalate(draft, Reason.TIMEOUT, detail, operation=OperationName.ITERATION)


def _governs(state: State, operation: Operation, iteration_due: float) -> bool:
    if operation.reminded_clock is not None:
        return True
    started = operation.started_clock
    if started is None and operation.name is OperationName.FIX and state.attempts == 1:
        # A fixer command that nobody has started, or not long ago: waiting in a queue is no lateness (K34).
        started = state.iteration_clock
    if started is None or operation.limit_seconds is None:
        return False
    return started + operation.limit_seconds <= iteration_due


def _refuse_early(draft: Draft, name: str, due: float) -> None:
    if draft.clock <= due:
        raise NotDue(f"deadline {name} is {due - draft.clock:.1f} seconds away")
