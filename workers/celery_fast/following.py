"""Celery's tracer of a step. It also runs the next step in the same process, if that is already claimed
(docs/decisions/0050): as a separate task, with Celery's signals and events, as if its message had arrived."""

import os
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from celery import Celery, Task, states
from celery.utils.saferepr import saferepr

from workers.celery_fast.incoming import StepCall
from workers.steps.going_on import CURRENT, GOES_ON, Following, Going


class StepTask(Task):  # type: ignore[misc]
    """A task with fixloop's tracer in place of the one that Celery sets in each work process."""

    abstract = True
    form = StepCall
    alone: Callable[..., Any] | None = None
    """Celery's own tracer."""

    @property
    def __trace__(self) -> Callable[..., Any] | None:
        return self._trace if GOES_ON and self.alone is not None else self.alone

    @__trace__.setter
    def __trace__(self, celerys: Callable[..., Any] | None) -> None:
        self.alone = celerys

    def _trace(self, uuid: str, args: Any, kwargs: Any, request: Any = None) -> Any:
        going, known = Going(), dict(request or {})
        tells, before = self.app.conf.worker_send_task_events, CURRENT.set(going)
        assert self.alone is not None
        try:
            first = made = self.alone(uuid, args, kwargs, known)
            while (following := going.next()) is not None:
                ended, known = known.get("id", uuid), _as_message(known, following)
                if tells:
                    _send_events(self.app, known, [_end_event(ended, made), *_start_events(known)])
                made = self.app.tasks[known["task"]].alone(known["id"], (), known["kwargs"], known)
            if tells and made is not first:
                _send_events(self.app, known, [_end_event(known["id"], made)])
        finally:
            CURRENT.reset(before)
        return first


def _as_message(before: dict[str, Any], following: Following) -> dict[str, Any]:
    """The request that Celery would have made from the step's message."""
    signature, ticket = following.signature, following.claim.ticket
    assert ticket is not None
    kwargs = signature["kwargs"]
    place = {"exchange": "", "routing_key": ticket.queue, "priority": ticket.priority, "redelivered": False}
    return {
        **before,
        "task": signature["task"],
        "id": ticket.id,
        "correlation_id": ticket.id,
        "root_id": before.get("root_id") or before.get("id"),
        "parent_id": before.get("id"),
        "args": [],
        "kwargs": kwargs,
        "argsrepr": "()",
        "kwargsrepr": repr(kwargs),
        "chain": following.chain,
        "retries": 0,
        "eta": None,
        "delivery_info": place,
    }


def _start_events(known: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    said = {name: known.get(name) for name in ("root_id", "parent_id", "retries", "eta", "expires")}
    said |= {"uuid": known["id"], "name": known["task"], "args": "()", "kwargs": known["kwargsrepr"]}
    queue = known["delivery_info"]["routing_key"]
    yield "task-sent", {**said, "queue": queue, "exchange": "", "routing_key": queue}
    yield "task-received", said
    yield "task-started", {"uuid": known["id"]}


def _end_event(uuid: str, made: Any) -> tuple[str, dict[str, Any]]:
    if made.info is None:
        return "task-succeeded", {"uuid": uuid, "result": made.retstr, "runtime": made.runtime}
    kind = "task-retried" if made.info.state == states.RETRY else "task-failed"
    return kind, {"uuid": uuid, "exception": saferepr(made.info.retval), "traceback": ""}


def _send_events(app: Celery, known: dict[str, Any], events: list[tuple[str, dict[str, Any]]]) -> None:
    """Send events to Flower, several in one message."""
    dispatcher = _dispatcher(app, str(known.get("hostname")), os.getpid())
    for kind, said in events:
        dispatcher.send(kind, **said)
    dispatcher.flush()


@lru_cache(maxsize=1)
def _dispatcher(app: Celery, hostname: str, pid: int) -> Any:
    """This process's dispatcher. Events that cannot be sent while the broker is away are sent later."""
    return app.events.Dispatcher(
        app.connection_for_write(), hostname=hostname, buffer_group=frozenset({"task"}), buffer_limit=1000
    )
