"""The baseline: a bare Celery chain of no-op tasks, with the settings fixloop uses (acks late, prefetch 1, JSON)."""

import os
import time

from celery import Celery, chain
from redis import Redis

from fixloop.settings import celery_url

__all__ = ["app", "hop", "hop_chain", "noted"]

app = Celery("bare")
app.config_from_object("config.celeryconfig")
app.conf.update(broker_url=celery_url(os.environ.get("FIXLOOP_BROKER_URL", "redis://localhost:6379/0")))


@app.task(name="bare.hop")  # type: ignore[untyped-decorator]
def hop(*, payload: str, number: int) -> None:
    """Nothing, with a message of the same size."""


@app.task(name="bare.last")  # type: ignore[untyped-decorator]
def last(*, payload: str, number: int) -> None:
    """The end of one chain: counted, so that both sides are known to have done all their hops."""
    _counter().incr("bare:done")


@app.task(name="bare.noted")  # type: ignore[untyped-decorator]
def noted() -> None:
    """When it began, on the clock that all processes of the machine share."""
    _counter().rpush("bare:began", repr(time.monotonic()))


def hop_chain(hops: int, payload: str) -> None:
    """Send a chain of `hops` no-ops."""
    steps = [hop.si(payload=payload, number=n).set(queue="bare") for n in range(hops - 1)]
    chain(*steps, last.si(payload=payload, number=hops - 1).set(queue="bare")).apply_async()


_client: dict[int, Redis] = {}


def _counter() -> Redis:
    return _client.setdefault(os.getpid(), Redis.from_url(os.environ["FIXLOOP_STATE_URL"]))
