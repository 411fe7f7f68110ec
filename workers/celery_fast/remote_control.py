"""Limits remote control to what Flower asks for: nobody can reconfigure a worker (docs/decisions/0040)."""

from typing import Any, Final

from celery.worker import pidbox
from celery.worker.consumer import control
from celery.worker.control import Panel

from workers.celery_fast.incoming import Order
from workers.celery_fast.rejection import reject_message

ALLOWED: Final = frozenset(
    {"ping", "stats", "active_queues", "registered", "scheduled", "active", "reserved", "revoked"}
    | {"enable_events", "heartbeat"}
)
"""The commands that Flower sends, except `conf`, and `ping` for people."""
_ARGUMENTS: Final = frozenset({"safe", "taskinfoitems"})


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
