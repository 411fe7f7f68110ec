"""The contrast: the steps of the same workflows as a chain of plain Celery tasks, without fixloop.

Each step counts its start in Redis, works for a moment, and counts its effect. The settings are the best known for a
durable chain: late acknowledgment, requeue on a lost process, a visibility timeout of seconds.
"""

import os
import signal
import threading
import time
from typing import Any, Final

import redis
from celery import Celery, chain
from celery.signals import worker_init

from fixloop.servers.broker_url import celery_url
from fixloop.testing.executions import record_execution
from fixloop.testing.wire import BEGUN, EFFECTS

QUEUE: Final = "bare"
WORK_SECONDS: Final = 0.02
VISIBILITY_SECONDS: Final = 10

app = Celery("bare", set_as_current=False)
app.conf.update(
    broker_url=celery_url(os.environ.get("FIXLOOP_BROKER_URL", "redis://localhost:6379/0")),
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={
        "visibility_timeout": VISIBILITY_SECONDS,
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
        "socket_connect_timeout": 2.0,
        "socket_timeout": 10.0,
        "health_check_interval": 2,
    },
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
)


@app.task(name="bare.step")  # type: ignore[untyped-decorator]
def step(*, ticket: str) -> None:
    """Count the start, work, count the effect."""
    client: Any = redis.Redis.from_url(os.environ["FIXLOOP_STATE_URL"])
    client.hincrby(BEGUN, ticket, 1)
    record_execution(os.environ["FIXLOOP_EXECUTIONS"], ticket, 0, "bare", "-")
    time.sleep(WORK_SECONDS)
    client.hincrby(EFFECTS, ticket, 1)
    client.close()


@worker_init.connect(weak=False)  # type: ignore[untyped-decorator]
def _end_with_the_caller(**_: object) -> None:
    def watch() -> None:
        os.read(int(os.environ["FIXLOOP_LIFELINE"]), 1)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def send(to: Celery, tickets: list[str]) -> None:
    """Send a chain with one step for each of `tickets`, which become the task ids."""
    steps = [
        to.signature("bare.step", kwargs={"ticket": ticket}, task_id=ticket, queue=QUEUE, immutable=True)
        for ticket in tickets
    ]
    chain(*steps, app=to).apply_async()
