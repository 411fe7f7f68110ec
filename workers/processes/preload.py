"""What a worker's processes load: once, before they are forked (docs/decisions/0030).

Nothing here may start a thread, open a connection or decide by which name a process is known to others.
"""

from contextlib import suppress
from importlib import import_module
from typing import Final

from fixloop.protocol.event import Value
from workers.steps.step import crew_factory

_MODULES: Final = (
    "celery.app.amqp",
    "celery.app.control",
    "celery.app.events",
    "celery.app.log",
    "celery.apps.worker",
    "celery.backends.base",
    "celery.concurrency.solo",
    "celery.events",
    "celery.worker.autoscale",
    "celery.worker.components",
    "celery.worker.consumer.delayed_delivery",
    "celery.worker.strategy",
    "workers.chats",
    "celery.concurrency.prefork",
    "workers.celery_fast.consumer",
    "workers.celery_fast.remote_control",
    "workers.celery_fast.request",
    "workers.recovery.supervisor",
    "workers.recovery.sweeper",
    "workers.tasks",
)


def load() -> None:
    """Load it all; most of what a worker takes to start is this."""
    for name in _MODULES:
        import_module(name)
    # A wrong name is told by the process that needs the crew, as the failure of its first step.
    with suppress(Exception):
        crew_factory()
    Value.build()
