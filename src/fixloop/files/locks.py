"""Locks between the processes of one machine: flocks, which the kernel drops when their last holder ends.

Uses only the standard library: the keeper of the embedded Redis also loads it.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from fixloop.errors import InfrastructureError

_SHORTEST_PAUSE_SECONDS: Final = 0.005
_LONGEST_PAUSE_SECONDS: Final = 0.05


def take(
    descriptor: int,
    *,
    shared: bool = False,
    patience_seconds: float = 0.0,
    give_up: Callable[[], bool] = lambda: False,
) -> bool:
    """Lock an open file, trying for `patience_seconds` or until `give_up`; False if somebody else kept it."""
    mode = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
    deadline, pause = time.monotonic() + patience_seconds, _SHORTEST_PAUSE_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, mode)
        except BlockingIOError:
            if give_up() or time.monotonic() >= deadline:
                return False
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        else:
            return True


class Lock:
    """One flock on one file, held by an open descriptor that child programs do not inherit."""

    def __init__(self, path: Path, *, mode: int = 0o600) -> None:
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)

    @classmethod
    def held(cls, descriptor: int) -> "Lock":
        """The lock that the parent process took and passed on, by its open descriptor."""
        lock = cls.__new__(cls)
        lock.descriptor = descriptor
        os.set_inheritable(descriptor, False)
        return lock

    def take(self, *, shared: bool = False, patience_seconds: float = 0.0) -> bool:
        """Take the lock, trying for `patience_seconds`; False if somebody else kept it."""
        return take(self.descriptor, shared=shared, patience_seconds=patience_seconds)

    def is_of(self, path: Path) -> bool:
        """Whether `path` is still the locked file; it may have been replaced or removed."""
        try:
            return os.path.samestat(os.fstat(self.descriptor), path.stat())
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Release; may be called twice. Never by LOCK_UN: a forked child shares the lock and would lose it too."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1


@contextmanager
def held(path: Path, *, timeout_seconds: float, give_up: Callable[[], bool] = lambda: False) -> Iterator[int]:
    """Hold the lock file `path`, or raise InfrastructureError; processes that inherit its descriptor keep the lock."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(Lock(path, mode=0o644)) as lock:
        if not take(lock.descriptor, patience_seconds=timeout_seconds, give_up=give_up):
            raise InfrastructureError(f"another process holds {path}; wait for it to end and try again")
        yield lock.descriptor
