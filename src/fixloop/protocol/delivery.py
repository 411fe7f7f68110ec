"""Delivers messages to a declared outside agent: attempts, receipts, and giving up (A5, A70, G1, K5).

The failure report is said and logged once; the result of its delivery is not logged as another line. The state keeps
what is needed, so that a mailbox can lose everything without harm.
"""

from typing import Final

from fixloop.protocol import ids
from fixloop.protocol.event import NotDue
from fixloop.protocol.events import DeliveryFailed, MessageStored, ReceiptGiven
from fixloop.protocol.messages import ErrorType, Message, Reason
from fixloop.protocol.notices import escalate, say_error, say_recovered
from fixloop.protocol.outcome import Draft
from fixloop.protocol.specialists import WITH_MAIN_AGENT, Status
from fixloop.protocol.state import Delivery, OperationName, PendingError, Receipt

RECEIPT_DEADLINE: Final = "receipt"
"""The deadline for the receipt of an agent with `acks = true` (A70)."""


def hand_over(draft: Draft, report: Message) -> None:
    """Hand over the report: start a command, deliver to a mailbox, or leave it to be fetched."""
    draft.update(delivery=Delivery(uid=report.uid, message_id=report.message_id))
    if draft.state.fixer == "command":
        draft.ask("fix", operation=OperationName.FIX)
    elif draft.state.agent:
        draft.ask("deliver")
    else:
        draft.expect_fix(draft.state.limits.fix_seconds)


def stored(draft: Draft, event: MessageStored) -> None:
    """The mailbox took a message. That is its delivery, unless the agent has to give a receipt (G1)."""
    state = draft.state
    draft.note(f"the mailbox of {state.agent} took {event.message_id} (attempt {event.attempt})")
    if not _is_awaited(draft, event):
        return
    if state.operation is None:
        draft.expect_fix(state.limits.fix_seconds)
    if state.active.status is not Status.AWAITING_FIX:
        return
    if not state.acks:
        error = state.active.error
        if error is not None and error.error_type is ErrorType.COMMUNICATION:
            say_recovered(draft)
    elif state.limits.receipt_seconds is not None and state.delivery is not None:
        due = draft.clock + state.limits.receipt_seconds
        draft.update(delivery=state.delivery.with_(receipt_due=due))
        draft.set_deadline(RECEIPT_DEADLINE, due)


def undelivered(draft: Draft, event: DeliveryFailed) -> None:
    """The mailbox did not take a message: retry with backoff, then escalate to the main orchestrator (A70)."""
    opened = draft.state.escalation
    draft.note(f"delivery of {event.message_id} failed (attempt {event.attempt}): {event.error}")
    if opened is not None and opened.message_id == event.message_id:
        # An escalation has no further recipient; it stays among the open decisions (K27).
        if event.attempt < draft.state.limits.delivery_attempts:
            _ask_again(draft, "escalate", event.attempt + 1)
        return
    delivery = draft.state.delivery
    if (
        delivery is not None
        and _is_awaited(draft, event)
        and draft.state.active.status is Status.AWAITING_FIX
    ):
        _attempt_failed(draft, delivery, event.error)


def receipt_overdue(draft: Draft) -> None:
    """An agent with `acks = true` gave no receipt in time, which is a failed attempt (A70, G1)."""
    state, delivery = draft.state, draft.state.delivery
    awaited = state.active.status is Status.AWAITING_FIX
    if not awaited or delivery is None or delivery.receipt_due is None:
        draft.note("a receipt is no longer waited for")
        return
    if draft.clock <= delivery.receipt_due:
        raise NotDue(f"the receipt has {delivery.receipt_due - draft.clock:.1f} seconds left")
    error = f"{state.agent} gave no receipt within {state.limits.receipt_seconds or 0.0:g} s"
    draft.note(f"delivery of {delivery.message_id} failed (attempt {delivery.attempt}): {error}")
    _attempt_failed(draft, delivery, error)


def receipt_given(draft: Draft, event: ReceiptGiven) -> None:
    """A message that asks for no fix has arrived; this is no line of the log and changes nothing (G1, K39)."""
    opened = draft.state.escalation
    draft.note(f"receipt by {event.by} of {event.message_id}")
    if opened is not None and opened.message_id == event.message_id and opened.receipt is None:
        receipt = Receipt(uid=event.uid, message_id=event.message_id, by=event.by, at=draft.at)
        draft.update(escalation=opened.with_(receipt=receipt))


def record_receipt(draft: Draft, by: str) -> None:
    """Store the first receipt of the open report with its run, and stop waiting for one (A5, G1)."""
    state, active, delivery = draft.state, draft.state.active, draft.state.delivery
    draft.clear_deadlines(RECEIPT_DEADLINE)
    uid = delivery.uid if delivery is not None else ""
    run = active.last_run
    if run is None or (run.receipt is not None and run.receipt.uid == uid):
        return
    message_id = ids.report_id(state.issue, active.name, active.iteration)
    last = run.with_(receipt=Receipt(uid=uid, message_id=message_id, by=by, at=draft.at))
    draft.update_specialist(active.name, runs=(*active.runs[:-1], last))


def _is_awaited(draft: Draft, event: MessageStored | DeliveryFailed) -> bool:
    """Whether the message is the open report; a person or the agent may have acted before (R8)."""
    state, delivery = draft.state, draft.state.delivery
    return (
        not state.paused
        and delivery is not None
        and (delivery.message_id, delivery.attempt) == (event.message_id, event.attempt)
        and state.active.status in WITH_MAIN_AGENT
    )


def _attempt_failed(draft: Draft, delivery: Delivery, error: str) -> None:
    state, active, attempt = draft.state, draft.state.active, delivery.attempt
    tried = active.error.recovery if active.error is not None else ()
    again = attempt < state.limits.delivery_attempts
    step = f"delivery attempt {attempt + 1}, {state.limits.backoff(attempt + 1):g} s after: {error}"
    pending = PendingError(
        error_type=ErrorType.COMMUNICATION,
        context=f"delivery of {delivery.message_id} to {state.agent}",
        error=error,
        attempts=attempt,
        recovery=(*tried, step) if again else tried,
    )
    draft.update_specialist(active.name, error=pending)
    if again:
        draft.update(delivery=delivery.with_(attempt=attempt + 1, receipt_due=None))
        _ask_again(draft, "deliver", attempt + 1)
        return
    say_error(draft, pending)
    escalate(draft, Reason.COMMUNICATION_ERROR, f"{delivery.message_id}: {error}")


def _ask_again(draft: Draft, step: str, attempt: int) -> None:
    draft.ask(step, attempt=attempt, delay_seconds=draft.state.limits.backoff(attempt))
