"""Lateness: reminders, the escalation five minutes later, and the cap on an iteration (A56-A64, K6, K34)."""

from fixloop.protocol import deciding
from fixloop.protocol.events import DeadlineReached
from fixloop.protocol.messages import MAIN_AGENT, Reason, TimeoutReminder
from fixloop.protocol.outcome import Draft, NotDue
from fixloop.protocol.specialists import specialist as slot
from fixloop.protocol.state import Operation, OperationName

__all__ = ["deadline_reached"]


def deadline_reached(draft: Draft, event: DeadlineReached) -> None:
    """A deadline fell due; one that no longer matters is cleared and noted (R6)."""
    if draft.clock <= event.due:
        raise NotDue(f"deadline {event.name} is {event.due - draft.clock:.1f} seconds away")
    operation = draft.state.operation
    draft.clear_deadlines(event.name)
    if draft.state.paused:
        draft.note(f"deadline {event.name} passed while paused")
    elif event.name == OperationName.ITERATION.value:
        _iteration_over(draft, event)
    elif operation is not None and event.name == operation.name.value:
        _late(draft, event, operation)
    elif operation is not None and event.name == operation.name.reminder_deadline:
        _no_answer(draft, operation)
    else:
        draft.note(f"deadline {event.name} no longer matters")


def _late(draft: Draft, event: DeadlineReached, operation: Operation) -> None:
    if operation.reminded_clock is not None:
        draft.note(f"{operation.name} is late again; it was reminded of already")
        return
    limit = operation.limit_seconds or 0.0
    started = operation.started_clock if operation.started_clock is not None else event.due - limit
    draft.update(
        operation=operation.model_copy(update={"started_clock": started, "reminded_clock": draft.clock})
    )
    elapsed, window = draft.clock - started, draft.state.limits.reminder_window_seconds
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


def _no_answer(draft: Draft, operation: Operation) -> None:
    started = operation.started_clock if operation.started_clock is not None else draft.clock
    detail = f"{operation.name} took {draft.clock - started:.0f} s and a reminder was not answered"
    flags = ("unresponsive",) if operation.name is OperationName.FIX else ()
    deciding.escalate(draft, Reason.TIMEOUT, detail, operation=operation.name, flags=flags)


def _iteration_over(draft: Draft, event: DeadlineReached) -> None:
    """K6: a single late operation has its own rule; otherwise the cap escalates at once (A57)."""
    operation = draft.state.operation
    window = draft.state.limits.reminder_window_seconds
    if operation is not None and _governs(operation, event.due):
        draft.note(f"the iteration's cap waits for the answer to the reminder of {operation.name}")
        draft.set_deadline(event.name, draft.clock + window)
        return
    detail = f"the iteration took more than {draft.state.limits.iteration_seconds:.0f} s in all"
    deciding.escalate(draft, Reason.TIMEOUT, detail, operation=OperationName.ITERATION)


def _governs(operation: Operation, iteration_due: float) -> bool:
    if operation.reminded_clock is not None:
        return True
    if operation.started_clock is None or operation.limit_seconds is None:
        return False
    return operation.started_clock + operation.limit_seconds <= iteration_due
