"""Workflows that do the work of another's agent, as far as whoever follows that one has to know of them."""

from fixloop.bridging import child_of, has_word_of
from fixloop.commands.session import Seen, Session

__all__ = ["waiting_child"]


def waiting_child(session: Session, workflow: str) -> Seen | None:
    """
    A workflow that does some of the work of this one, at any depth, and waits for a person or somebody outside.

    None where none does, or its end is only to be fetched yet.
    """
    found = session.store.read(workflow)
    for held in found.tickets if found is not None else ():
        child = session.store.read(child_of(held.ticket.id))
        if child is None or has_word_of(session.store, held.ticket.id):
            continue
        seen = Seen.of(child)
        if seen.standing.waits_for:
            return seen
        below = waiting_child(session, child.workflow)
        if below is not None:
            return below
    return None
