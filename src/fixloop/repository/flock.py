"""A lock between processes of one machine: an flock, waited for with a limit.

The kernel frees it when its last holder is gone, however it went.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fixloop.errors import InfrastructureError

POLL_SECONDS = 0.05


@contextmanager
def held(path: Path, *, timeout_seconds: float, give_up: Callable[[], bool] = lambda: False) -> Iterator[int]:
    """
    Hold the lock file `path`; yields its descriptor, which children may inherit to keep the lock.

    Raises:
        InfrastructureError: somebody else held it for `timeout_seconds`, or `give_up` said so.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        until = time.monotonic() + timeout_seconds
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if give_up() or time.monotonic() > until:
                    raise InfrastructureError(
                        f"another process holds {path}; wait for it to end and try again"
                    ) from None
            time.sleep(POLL_SECONDS)
        yield descriptor
    finally:
        os.close(descriptor)
