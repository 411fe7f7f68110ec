"""The task of a step, which sends the next one of its chain by a short way where it can (docs/decisions/0029)."""

import os
from functools import lru_cache
from typing import Any, Final

from celery import Celery, signals
from kombu.entity import PERSISTENT_DELIVERY_MODE
from kombu.exceptions import KombuError
from kombu.serialization import dumps
from redis.exceptions import RedisError

from workers.celery_fast.following import FollowedTask
from workers.celery_fast.incoming import StepCall
from workers.celery_fast.transport import SharedClient

_HOP: Final = frozenset({"queue", "priority", "chain", "root_id", "parent_id"})
"""All that is said of the next step of a chain besides its task, its arguments and its id."""


class StepTask(FollowedTask):
    abstract = True
    form = StepCall

    def apply_async(
        self, args: Any = None, kwargs: Any = None, task_id: str | None = None, **options: Any
    ) -> Any:
        is_hop = _HOP.issuperset(options) and options.get("root_id") and options.get("parent_id")
        if is_hop and task_id and not args and isinstance(options.get("queue"), str):
            try:
                if _send(self, kwargs or {}, task_id, **options):
                    return None
            except (RedisError, KombuError, OSError):
                # Celery's way connects again, and says so when it cannot; a hint that is sent twice changes nothing.
                pass
        return super().apply_async(args, kwargs, task_id, **options)


def _send(
    task: StepTask,
    kwargs: dict[str, Any],
    task_id: str,
    *,
    queue: str,
    priority: int | None = None,
    **origin: Any,
) -> bool:
    """Send the message that Celery would send; False when this is not the way to it."""
    app, name = task.app, task.name
    producer, says_sent = _producer_of(app, os.getpid())
    channel = producer.channel
    if not isinstance(channel, SharedClient):
        return False
    headers, properties, body, event = app.amqp.as_task_v2(
        task_id,
        name,
        kwargs=kwargs,
        argsrepr="()",
        kwargsrepr=repr(kwargs),
        reply_to=app.thread_oid,
        ignore_result=task.ignore_result,
        create_sent_event=says_sent,
        **origin,
    )
    place = {"exchange": "", "routing_key": queue}
    signals.before_task_publish.send(
        sender=name, body=body, headers=headers, properties=properties, declare=None, retry_policy={}, **place
    )
    kind, encoding, text = dumps(body, "json")
    properties["delivery_mode"] = PERSISTENT_DELIVERY_MODE
    kombus: Any = channel
    kombus.basic_publish(kombus.prepare_message(text, priority, kind, encoding, headers, properties), **place)
    signals.after_task_publish.send(sender=name, body=body, headers=headers, **place)
    if event:
        app.amqp._event_dispatcher.publish("task-sent", {**event, "queue": queue, **place}, producer)
    return True


@lru_cache(maxsize=1)
def _producer_of(app: Celery, pid: int) -> tuple[Any, bool]:
    """A process' own, and whether its hops are told as events; its channel connects again when a connection is lost."""
    producer = app.amqp.Producer(app.connection_for_write(), auto_declare=False)
    return producer, bool(app.conf.task_send_sent_event)
