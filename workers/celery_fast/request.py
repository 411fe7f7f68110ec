"""Celery's request, which offers the ticket of a dead process again at once (docs/decisions/0021)."""

import logging
import os
from typing import Any

from celery.worker import request, state

from fixloop.errors import InfrastructureError
from fixloop.machine.owner import VARIABLE, age_seconds
from fixloop.servers.settings import named_urls
from fixloop.store.redis_store import RedisStore
from workers.processes.child import SETTLED_SECONDS
from workers.recovery.release import release_dead
from workers.steps.going_on import GONE_ON

log = logging.getLogger("fixloop.reoffering")


class StepRequest(request.Request):  # type: ignore[misc]
    """A step's request in the main process, which is the first to know that its work process died."""

    def send_event(self, type: str, **fields: Any) -> None:
        """A process that continues with the next step has already sent the success event of the first one."""
        is_told = type == "task-succeeded" and fields.get("result") == repr(GONE_ON)
        if not (is_told and self._app.conf.worker_send_task_events):
            super().send_event(type, **fields)

    def reject(self, requeue: bool = False) -> None:
        """Offer the ticket again, ahead of all others, before the pool takes another message."""
        pid: Any = self.worker_pid
        if not requeue or pid is None:
            super().reject(requeue)
            return
        offered: list[str] = []
        # With a store that does not retry: this process handles the messages of all work processes.
        store = RedisStore(named_urls().state)
        try:
            # Work processes that die at the same moment all count as killed by their steps: two steps that kill their
            # processes look like that, and uncounted they would do so for ever (docs/decisions/0023). A service manager
            # that stops a worker also ends all its processes at once, including the main one.
            stopping = state.should_stop is not None or state.should_terminate is not None
            settled = age_seconds() > SETTLED_SECONDS
            mine = os.environ.get(VARIABLE, "")
            offered = release_dead(store, mine, poison=settled and not stopping, pid=pid)
        except InfrastructureError as error:
            log.warning("%s", error)
        finally:
            store.close()
        if self.id in offered:
            self.acknowledge()
        else:
            super().reject(requeue)
