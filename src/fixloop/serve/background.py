"""A server thread that repeats one action until the server stops."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from fixloop.errors import InfrastructureError

log = logging.getLogger("fixloop.serve")

AGAIN_SECONDS: Final = 2.0
"""The pause after an error."""


@contextmanager
def repeating(name: str, work: Callable[[], float], stopping: threading.Event) -> Iterator[None]:
    """Repeat `work` until the end of the block, which sets `stopping`; `work` returns the seconds until its next call.
    If Redis is away, it is retried and the follower reports it; any other error is logged."""

    def run() -> None:
        pause = 0.0
        while not stopping.wait(pause):
            pause = AGAIN_SECONDS
            try:
                pause = work()
            except InfrastructureError:
                continue
            except Exception:
                log.exception("the %s has failed; it is tried again", name)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()
