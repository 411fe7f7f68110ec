"""Loads the modules of a worker's processes once, before the processes are forked (docs/decisions/0030).

Nothing here may start a thread, open a connection or determine a process's name.
"""

from contextlib import suppress
from importlib import import_module
from typing import Final

from fixloop.protocol.event import Value
from workers.steps.step import crew_factory

_MODULES: Final = (
    *("celery.app.amqp", "celery.app.control", "celery.app.events", "celery.app.log", "celery.apps.worker"),
    *("celery.backends.base", "celery.concurrency.solo", "celery.concurrency.prefork", "celery.events"),
    *("celery.worker.autoscale", "celery.worker.components", "celery.worker.consumer.delayed_delivery"),
    *("celery.worker.strategy", "workers.celery_fast.consumer", "workers.celery_fast.request"),
    *("workers.recovery.supervisor", "workers.recovery.sweeper", "workers.tasks", "workers.chats"),
)


def load() -> None:
    """Load all modules; this is most of a worker's start-up time."""
    for name in _MODULES:
        import_module(name)
    # The process that needs the crew reports a wrong name as the failure of its first step.
    with suppress(Exception):
        crew_factory()
    Value.build()
