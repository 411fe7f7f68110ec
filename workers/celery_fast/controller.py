"""Celery's worker, with one difference: a request that cannot be handed to the pool keeps no place in it.

Celery ends over such a message. Our consumer prevents that, but then the place would stay taken: after as many of
these messages as there are processes, a worker would take nothing more, without a word.
"""

from typing import Any

from celery.apps import worker
from celery.worker import state

from workers.celery_fast.rejection import reject_message


class Worker(worker.Worker):  # type: ignore[misc]
    """What a process for work or control is made of."""

    def _process_task(self, req: Any) -> None:
        try:
            super()._process_task(req)
        except Exception as error:  # whatever a hostile message makes a serializer or the pool raise
            state.task_ready(req)
            if self.semaphore is not None:
                self._quick_release()
            reject_message(req.message, error)
