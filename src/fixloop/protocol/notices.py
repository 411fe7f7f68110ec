"""Words and notices every part of the flow uses: counts, the next phase, error notifications (A74-A76)."""

from fixloop.protocol import ids
from fixloop.protocol.messages import MAIN_AGENT, ErrorNotification, ErrorType
from fixloop.protocol.outcome import Draft
from fixloop.protocol.specialists import AFTER_THE_LAST_PHASE
from fixloop.protocol.specialists import specialist as slot
from fixloop.protocol.state import OperationName, PendingError, State
from fixloop.protocol.statuses import Status


def count_of(count: int) -> str:
    """`1 failure`, `3 failures`."""
    return f"{count} failure" if count == 1 else f"{count} failures"


def next_phase(state: State) -> str:
    """The phase after the current one; behind the last comes the end: nothing is deployed (U2)."""
    names = [entry.name for entry in state.specialists]
    later = state.specialists[names.index(state.current) + 1 :]
    pending = (entry.name for entry in later if entry.applicable and entry.status is not Status.COMPLETED)
    name = next(pending, "")
    return slot(name).phase if name else AFTER_THE_LAST_PHASE


def say_recovered(draft: Draft) -> None:
    """If an error was being recovered from, say that it was (A75, S9)."""
    active = draft.state.active
    if active.error is not None:
        draft.update_specialist(active.name, error=None)
        _say(draft, active.error, recovered=True)


def say_unrecovered(draft: Draft, error: PendingError) -> None:
    """ERR with Recovered No (A74-A76); the escalation follows."""
    _say(draft, error, recovered=False)


def _say(draft: Draft, error: PendingError, *, recovered: bool) -> None:
    state, active = draft.state, draft.state.active
    by_specialist = error.error_type is ErrorType.SPECIALIST_FAILURE
    operation = OperationName.FIX
    if by_specialist:
        again = bool(active.runs) and not active.has_passed
        operation = OperationName.REVALIDATION if again else OperationName.VALIDATION
    # A fixer that failed did answer, in its way: what it said is told, and no verdict on it (A73).
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
