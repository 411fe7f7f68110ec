"""What a dead process held is offered again: by its own main process at once, by any supervisor of its host in time.

Celery would only send its message back: behind more urgent ones, and to be refused as long as nobody has released
the ticket.
"""

import logging
import os
import threading
from collections.abc import Callable
from typing import Any, Final

from celery.worker import request, state

from fixloop.errors import Damaged, InfrastructureError, UsageError
from fixloop.machine.owner import VARIABLE, age_seconds, identity, is_dead_here, pid_of, supervisor_of
from fixloop.protocol.ticket import Ticket
from fixloop.store.contract import Store
from fixloop.store.redis_store import RedisStore
from workers.child import SETTLED_SECONDS
from workers.following import hint_again
from workers.process import named_urls, process
from workers.saying import say_once

log = logging.getLogger("fixloop.reoffering")

LOOK_SECONDS: Final = 1.0


def release_dead(store: Store, supervisor: str, *, poison: bool, pid: int | None = None) -> list[str]:
    """Offer what dead owners of this machine hold again, and hint it; the ids of the tickets, see `released`."""
    tickets = released(store, supervisor, poison=poison, pid=pid)
    for ticket in tickets:
        log.warning("%s is offered again: its process died", ticket.id)
        hint_again(store, ticket)
    return [ticket.id for ticket in tickets]


def released(store: Store, supervisor: str, *, poison: bool, pid: int | None = None) -> list[Ticket]:
    """
    Give back what dead owners of this machine hold; the tickets, to be hinted.

    What belongs to another supervisor that lives is its own to judge. With a supervisor the rest of its processes
    died, too: that is never the step's fault (K40).

    Args:
        supervisor: the identity of the one that asks.
        poison: the rest of its processes live, so a death among them counts.
        pid: only what this process held.
    """
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
    """Release at once and then every second; only a death among living fellows may be the step's own fault (K40)."""
    while True:
        try:
            release_dead(process().store, identity(), poison=is_steady() and not stopped.is_set())
        except InfrastructureError as error:
            log.warning("%s", error)
        except Exception:
            # Without this thread a dead process' step would wait for its lease.
            log.exception("the steps of dead processes could not be offered again")
        if stopped.wait(LOOK_SECONDS):
            return


class StepRequest(request.Request):  # type: ignore[misc]
    """A step as the main process sees it, which knows first that the process doing it died."""

    def reject(self, requeue: bool = False) -> None:
        """Offer its ticket again, in front of all that waits, before there is room for another message."""
        if requeue and self._is_offered_again():
            self.acknowledge()
        else:
            super().reject(requeue)

    def _is_offered_again(self) -> bool:
        pid: Any = self.worker_pid
        if pid is None:
            return False
        # Without the patience of a step: the messages of all processes go through this one.
        store = RedisStore(named_urls().state)
        try:
            # Work processes that die in the same moment are each counted: two steps that kill their own look like
            # that, and uncounted they would do so for ever (docs/decisions/0023).
            # A service manager that stops a worker ends all its processes at once, the main one included.
            stopping = state.should_stop is not None or state.should_terminate is not None
            settled = age_seconds() > SETTLED_SECONDS
            mine = os.environ.get(VARIABLE, "")
            return self.id in release_dead(store, mine, poison=settled and not stopping, pid=pid)
        except InfrastructureError as error:
            log.warning("%s", error)
            return False
        finally:
            store.close()
