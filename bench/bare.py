"""The baseline: a bare Celery chain of no-op tasks, with fixloop's settings (acks late, prefetch 1, JSON)."""

import os
import time

from celery import Celery, chain
from redis import Redis

from fixloop.servers.broker_url import celery_url

app = Celery("bare")
app.config_from_object("config.celeryconfig")
app.conf.update(broker_url=celery_url(os.environ.get("FIXLOOP_BROKER_URL", "redis://localhost:6379/0")))


@app.task(name="bare.hop")  # type: ignore[untyped-decorator]
def hop(*, ticket: str, issue: int, specialist: str, iteration: int) -> None:
    """Do nothing; the message has the same arguments as fixloop's."""


@app.task(name="bare.last")  # type: ignore[untyped-decorator]
def last(*, ticket: str, issue: int, specialist: str, iteration: int) -> None:
    """Count the end of a chain, to verify that all hops were done."""
    _counter().incr("bare:done")


@app.task(name="bare.noted")  # type: ignore[untyped-decorator]
def noted() -> None:
    """Record its start by the monotonic clock, which all processes of the machine share."""
    _counter().rpush("bare:began", repr(time.monotonic()))


def hop_chain(hops: int, issue: int) -> None:
    arguments = {"issue": issue, "specialist": "test-runner", "iteration": 1}
    tickets = [f"be9c4a11-{issue}-1.test-runner.recheck.{number}.1" for number in range(hops)]
    steps = [hop.si(ticket=ticket, **arguments).set(queue="bare") for ticket in tickets[:-1]]
    chain(*steps, last.si(ticket=tickets[-1], **arguments).set(queue="bare")).apply_async()


_client: dict[int, Redis] = {}


def _counter() -> Redis:
    return _client.setdefault(os.getpid(), Redis.from_url(os.environ["FIXLOOP_STATE_URL"]))
