"""Celery's worker and consumer, limited to fixloop's own messages (docs/decisions/0040), and to what Flower asks for:
nobody can reconfigure a worker.

They reconnect soon after the broker is back. Celery's default would wait for 2, 4, 6 … up to 30 seconds between
attempts, and all queued messages with it.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from celery.apps import worker
from celery.bootsteps import RUN
from celery.worker import consumer, pidbox, state
from celery.worker.consumer import control
from celery.worker.control import Panel

from workers.celery_fast.incoming import Order, arrived
from workers.celery_fast.rejection import reject_message
from workers.process import process
from workers.steps.newer_versions import leave_unknown

LONGEST_PAUSE_SECONDS: Final = 1.0
_CELERYS_CONTROL: Final = "celery.worker.consumer.control:Control"
ALLOWED: Final = frozenset(
    {"ping", "stats", "active_queues", "registered", "scheduled", "active", "reserved", "revoked"}
    | {"enable_events", "heartbeat"}
)
"""The commands that Flower sends, except `conf`, and `ping` for people."""
_ARGUMENTS: Final = frozenset({"safe", "taskinfoitems"})


class Worker(worker.Worker):  # type: ignore[misc]
    """A worker for work or control. A request that the pool cannot take frees its place there."""

    def _process_task(self, req: Any) -> None:
        try:
            super()._process_task(req)
        except Exception as error:  # a hostile message can make a serializer or the pool raise anything
            state.task_ready(req)
            if self.semaphore is not None:
                self._quick_release()
            reject_message(req.message, error)

    def stop(self, in_sighandler: bool = False, exitcode: int | None = None) -> None:
        """Stop at once if no task runs: the pool's own shutdown takes a second, and the supervisor ends the forked
        processes."""
        if self.blueprint.state == RUN and not in_sighandler and not state.reserved_requests:
            with suppress(Exception):  # a broker that is away is no reason to stay
                self.consumer.stop()
            os._exit(exitcode or 0)
        super().stop(in_sighandler, exitcode)


class Consumer(consumer.Consumer):  # type: ignore[misc]
    class Blueprint(consumer.Consumer.Blueprint):  # type: ignore[misc]
        default_steps = tuple(
            f"{__name__}:Control" if step == _CELERYS_CONTROL else step
            for step in consumer.Consumer.Blueprint.default_steps
        )

    def ensure_connected(self, conn: Any) -> Any:
        conn.ensure_connection = partial(
            conn.ensure_connection, interval_start=0.2, interval_step=0.2, interval_max=LONGEST_PAUSE_SECONDS
        )
        return super().ensure_connected(conn)

    def create_task_handler(self, *args: Any, **more: Any) -> Callable[[Any], None]:
        celerys = super().create_task_handler(*args, **more)
        # On Redis a KeyError also counts as a connection error, but a message's content may raise it too.
        lost = tuple(error for error in self.connection_errors if error is not KeyError)

        def on_task_received(message: Any) -> None:
            try:
                told = arrived(message, self.app.tasks)
                if told.task in self.app.tasks:
                    celerys(message)
                    return
                leave_unknown(process().store, process().owner, told.task, told.id)
                message.ack()
            except lost:
                raise
            except Exception as error:
                reject_message(message, error)

        return on_task_received

    def on_decode_error(self, message: Any, exc: Exception) -> None:
        reject_message(message, exc)


class _Mailbox(pidbox.Pidbox):  # type: ignore[misc]
    def __init__(self, consumer: Any) -> None:
        super().__init__(consumer)
        self.node.handlers = {name: handler for name, handler in Panel.data.items() if name in ALLOWED}

    def on_message(self, body: Any, message: Any) -> None:
        try:
            order = Order.model_validate(body)
            if order.method not in ALLOWED or not _ARGUMENTS.issuperset(order.arguments or ()):
                raise ValueError(f"{order.method} is no order that a worker takes")
            clock = message.headers.get("clock", 0)
            if not isinstance(clock, int) or not 0 <= clock < 2**63:
                raise ValueError("its clock is no number")
        except ValueError as error:
            reject_message(message, error)
            return
        super().on_message(body, message)


class Control(control.Control):  # type: ignore[misc]
    def __init__(self, c: Any, **more: Any) -> None:
        super().__init__(c, **more)
        self.box = _Mailbox(c)
        self.start, self.stop, self.shutdown = self.box.start, self.box.stop, self.box.shutdown
