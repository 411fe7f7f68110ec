"""The Celery app: settings from config/, tasks from this folder. `celery -A workers.app` from the root works too."""

from typing import Any

from celery import Celery, Task
from pydantic import BaseModel

from fixloop.servers.broker import amqp_of
from workers.celery_fast import transport

transport.register()
app = Celery("fixloop", include=["workers.tasks", "workers.chats"], amqp=amqp_of)
app.conf.worker_consumer = "workers.celery_fast.consumer:Consumer"
# Loaded on first use, because a worker imports this module before it knows its broker.
app.config_from_object("config.celeryconfig")


def taken_for(done: Task, name: str, form: type[BaseModel]) -> None:
    """Register the task `name`, which any caller may send and which queues the task `done` for a work process."""

    @app.task(name=name, form=form)  # type: ignore[untyped-decorator]
    def take(**given: Any) -> None:
        done.apply_async(kwargs=given, queue="fixloop.prepare")
