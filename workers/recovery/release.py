"""Offers the tickets of dead processes again: their own main process at once, any supervisor of the host later."""

import logging
import threading
from collections.abc import Callable
from typing import Final

from fixloop.errors import Damaged, InfrastructureError, UsageError
from fixloop.machine.owner import identity, is_dead_here, pid_of, supervisor_of
from fixloop.protocol.ticket import Ticket
from fixloop.store.contract import Store
from workers.log_once import say_once
from workers.process import process
from workers.steps.hints import hint_again

log = logging.getLogger("fixloop.reoffering")

LOOK_SECONDS: Final = 1.0


def release_dead(store: Store, supervisor: str, *, poison: bool, pid: int | None = None) -> list[str]:
    """Offer the tickets of dead owners on this machine again and hint them; returns their ids. See `released`."""
    tickets = released(store, supervisor, poison=poison, pid=pid)
    for ticket in tickets:
        log.warning("%s is offered again: its process died", ticket.id)
        hint_again(store, ticket)
    return [ticket.id for ticket in tickets]


def released(store: Store, supervisor: str, *, poison: bool, pid: int | None = None) -> list[Ticket]:
    """Release the tickets of dead owners on this machine, or only of process `pid`; returns them to be hinted. Owners
    that belong to another live supervisor are left to it. For which death is poison see docs/decisions/0023 (K40)."""
    given_back = []
    for ticket_id, (owner, fence) in store.owners().items():
        if pid not in (None, pid_of(owner)) or not is_dead_here(owner):
            continue
        theirs = supervisor_of(owner)
        if theirs != supervisor and (pid is not None or (theirs and not is_dead_here(theirs))):
            continue
        try:
            ticket = store.release(ticket_id, owner, fence, poison=poison and theirs == supervisor)
        except (Damaged, UsageError) as error:
            say_once(log, f"{ticket_id} is not offered again: {error}")
            continue
        if ticket is not None:
            given_back.append(ticket)
    return given_back


def release_for_ever(stopped: threading.Event, is_steady: Callable[[], bool]) -> None:
    """Release at once and then every second. A death is the step's fault only if other processes live (K40)."""
    while True:
        try:
            release_dead(process().store, identity(), poison=is_steady() and not stopped.is_set())
        except InfrastructureError as error:
            log.warning("%s", error)
        except Exception:
            # Without this thread the tickets of a dead process would wait for the end of their leases.
            log.exception("the steps of dead processes could not be offered again")
        if stopped.wait(LOOK_SECONDS):
            return
