"""What a killed guard leaves behind becomes a child of the process above, which is a subreaper meanwhile, and is ended.

Only needed where commands run without a namespace. Linux only: elsewhere nobody learns of orphans.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fixloop.machine.guard_program import children, descendants, end_all, is_running, set_subreaper

_lock: Final = threading.Lock()
_wards: Final[set["Ward"]] = set()
"""Those of all threads: what is a child of this process because of one is no orphan of another."""


class Ward:
    """One command's guard, and the orphans that this process inherits from it."""

    def __init__(self) -> None:
        self.guard = 0
        self._before = frozenset(children(os.getpid()))

    def end(self, group: int = 0) -> None:
        """Kill the guard, the orphans, all below them, and a group; returns when none is left."""
        end_all(self._left, group=group, are_left=self._left)

    def _left(self) -> list[int]:
        # Its pipes end a moment before it hands over its children.
        guard = [self.guard] if is_running(self.guard) else []
        ours = self._before | {ward.guard for ward in _wards}
        # In no session of this process: what it starts itself, such as git, stays in its own.
        orphans = [pid for pid in children(os.getpid()) if pid not in ours and _session(pid) != os.getsid(0)]
        return guard + [each for pid in orphans for each in (pid, *descendants(pid))]


@contextmanager
def adopting() -> Iterator[Ward]:
    """Be a subreaper as long as any thread is in the block."""
    with _lock:
        set_subreaper(on=True)
        ward = Ward()
        _wards.add(ward)
    try:
        yield ward
    finally:
        with _lock:
            _wards.discard(ward)
            if not _wards:
                set_subreaper(on=False)


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0
