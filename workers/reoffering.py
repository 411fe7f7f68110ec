"""What a dead process held is offered again: by its own main process at once, by any supervisor of its host in time.

Celery would only send its message back: behind more urgent ones, and to be refused as long as nobody has released
the ticket.
"""

import logging
from typing import Any, Final

from celery.worker import request

from fixloop.errors import InfrastructureError
from fixloop.owner import age_seconds, is_dead_here, pid_of
from fixloop.store.contract import Store
from fixloop.store.redis_store import RedisStore
from workers.following import hint_again
from workers.process import named_urls

__all__ = ["SETTLED_SECONDS", "StepRequest", "release_dead"]

log = logging.getLogger("fixloop.reoffering")

SETTLED_SECONDS: Final = 3.0
"""A death sooner after the start of all of them is not counted as the step's own fault (K40)."""


def release_dead(store: Store, *, poison: bool, pid: int | None = None) -> list[str]:
    """Offer what dead owners of this machine hold again, only that of process `pid` if given; the ids of tickets."""

    def is_meant(owner: str) -> bool:
        return pid in (None, pid_of(owner)) and is_dead_here(owner)

    released = store.release_dead(is_meant, poison=poison)
    for ticket in released:
        log.warning("%s is offered again: its process died", ticket.id)
        hint_again(store, ticket)
    return [ticket.id for ticket in released]


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
            return self.id in release_dead(store, poison=age_seconds() > SETTLED_SECONDS, pid=pid)
        except InfrastructureError as error:
            log.warning("%s", error)
            return False
        finally:
            store.close()
