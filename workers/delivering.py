"""Bringing messages to a declared outside agent: the steps `deliver` and `escalate`, and what is told beside them.

What a message says is in the store; its mailbox gets a letter with ids. A mailbox that cannot be reached is an event
like any other: how often it is tried again is decided from the state (A70).
"""

import logging

from fixloop.errors import InfrastructureError
from fixloop.mailbox import Letter, letters_of
from fixloop.profiles.profile import AnyOutcome
from fixloop.protocol.events import DeliveryFailed, MessageStored
from fixloop.protocol.state import State
from workers.crew import Work
from workers.process import process

__all__ = ["announce", "deliver"]

log = logging.getLogger("fixloop.delivering")


def deliver(work: Work) -> MessageStored | DeliveryFailed:
    """Put the open report, or the open escalation, into the agent's mailbox: one attempt (A70)."""
    ticket, state = work.holding.ticket, work.holding.state
    letter = _letter(state, ticket.step)
    try:
        process().mailboxes.put(state.agent, letter, ticket.priority)
    except InfrastructureError as error:
        return DeliveryFailed(message_id=letter.message_id, attempt=ticket.attempt, error=str(error))
    return MessageStored(message_id=letter.message_id, attempt=ticket.attempt)


def announce(outcome: AnyOutcome[State]) -> None:
    """Tell the agent what was just said to it; a letter that cannot be stored is missed by nobody."""
    for letter, priority in letters_of(outcome):
        try:
            process().mailboxes.put(outcome.state.agent, letter, priority)
        except InfrastructureError as error:
            log.warning("%s is not in the mailbox of %s: %s", letter.message_id, outcome.state.agent, error)


def _letter(state: State, step: str) -> Letter:
    if step == "escalate":
        opened = state.escalation
        uid, message_id = (opened.uid, opened.message_id) if opened is not None else ("", "")
        kind = "escalation"
    else:
        delivery = state.delivery
        uid, message_id = (delivery.uid, delivery.message_id) if delivery is not None else ("", "")
        kind = "failure-report"
    return Letter(workflow=state.workflow, message_id=message_id, uid=uid, issue=state.issue, type=kind)
