"""Workflows that do the work of another's agent, as far as whoever follows that one has to know of them."""

from contextlib import suppress

from fixloop.commands.session import Seen, Session
from fixloop.engine.bridging import child_of, has_word_of
from fixloop.errors import Damaged


def waiting_child(session: Session, workflow: str) -> Seen | None:
    """
    A workflow that does some of the work of this one, at any depth, and waits for a person or somebody outside.

    None where none does, or its end is only to be fetched yet.
    """
    found = session.store.read(workflow)
    for held in found.tickets if found is not None else ():
        # A damaged one ends what it was begun for with an error of its own.
        with suppress(Damaged):
            waiting = _waiting_for(session, held.ticket.id)
            if waiting is not None:
                return waiting
    return None


def _waiting_for(session: Session, ticket: str) -> Seen | None:
    child = session.store.read(child_of(ticket))
    if child is None or has_word_of(session.store, ticket):
        return None
    seen = Seen.of(child)
    return seen if seen.standing.waits_for else waiting_child(session, child.workflow)
