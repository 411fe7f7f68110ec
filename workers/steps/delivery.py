"""Steps that send something outside: letters (docs/decisions/0008) and the verified branch (docs/decisions/0014).

A mailbox that cannot be reached is an event; the state decides how often delivery is retried (A70).
"""

from collections.abc import Callable

from fixloop.errors import InfrastructureError, UsageError
from fixloop.outside.mailbox import Letter
from fixloop.protocol import agent_events
from fixloop.protocol.event import Event
from fixloop.protocol.events import DeliveryFailed, MessageStored
from fixloop.protocol.state import State
from fixloop.protocol.ticket import letter_id
from workers.steps.step import PutOff, Step, crew


def deliver(step: Step) -> MessageStored | DeliveryFailed:
    """Put the open report or escalation into the agent's mailbox: one attempt (A70)."""
    ticket, state = step.holding.ticket, step.holding.state
    letter = _letter(state, ticket.step)
    try:
        step.post(state.agent, letter)
    except InfrastructureError as error:
        return undelivered(step, str(error))
    return MessageStored(message_id=letter.message_id, attempt=ticket.attempt)


def undelivered(step: Step, why: str) -> DeliveryFailed:
    """The event of a report or an escalation that could not be delivered."""
    ticket = step.holding.ticket
    letter = _letter(step.holding.state, ticket.step)
    return DeliveryFailed(message_id=letter.message_id, attempt=ticket.attempt, error=why)


def deliver_letter(step: Step) -> Event | None:
    """Put a letter to an agent of a cycle or of handoffs into its mailbox; None: it has already answered (A70)."""
    state, ticket = step.holding.state, step.holding.ticket
    about = next((kept for kept in state.letters if letter_id(state, kept) == ticket.id), None)
    if about is None:
        return None
    letter = Letter(
        workflow=state.workflow,
        message_id=about.message_id,
        uid=about.uid,
        issue=state.issue,
        type=about.kind,
    )
    try:
        step.post(about.agent, letter)
    except InfrastructureError as error:
        return agent_events.DeliveryFailed(number=about.number, error=str(error))
    return agent_events.MessageStored(number=about.number)


def pushed(step: Step, told: Callable[..., Event]) -> Event:
    """Push the branch to the repository's URL: one attempt; a refused push is not retried."""
    attempt = step.holding.ticket.attempt
    try:
        return told(branch=crew().push(step), attempt=attempt)
    except UsageError as refused:
        return told(attempt=attempt, error=str(refused), fatal=True)


def attend(step: Step) -> Event | None:
    """Raises PutOff always: the worker has already checked that the parent workflow still waits for this one."""
    raise PutOff(f"{step.holding.state.parent} waits for it")


def _letter(state: State, step: str) -> Letter:
    is_escalation = step == "escalate"
    about = state.escalation if is_escalation else state.delivery
    uid, message_id = (about.uid, about.message_id) if about is not None else ("", "")
    kind = "escalation" if is_escalation else "failure-report"
    return Letter(workflow=state.workflow, message_id=message_id, uid=uid, issue=state.issue, type=kind)
