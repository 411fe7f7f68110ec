"""Adopts and ends the processes that a killed guard leaves behind; this process is a subreaper in the meantime.

Only needed if commands run without a namespace. Linux only: other systems do not report orphans.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fixloop.machine.guard_program import children, descendants, end_all, is_running, set_subreaper

_lock: Final = threading.Lock()
_wards: Final[set["Ward"]] = set()
"""The wards of all threads: the child of one ward is no orphan of another."""


class Ward:
    """One command's guard, and the orphans that this process adopts from it."""

    def __init__(self) -> None:
        self.guard = 0
        self._before = frozenset(children(os.getpid()))

    def end(self, group: int = 0) -> None:
        """Kill the guard, the orphans, their descendants and a group; returns when none is left."""
        end_all(self._left, group=group, are_left=self._left)

    def _left(self) -> list[int]:
        # Its pipes close shortly before its children get a new parent.
        guard = [self.guard] if is_running(self.guard) else []
        ours = self._before | {ward.guard for ward in _wards}
        # Only in other sessions: processes that this one starts, such as git, stay in its session.
        orphans = [pid for pid in children(os.getpid()) if pid not in ours and _session(pid) != os.getsid(0)]
        return guard + [each for pid in orphans for each in (pid, *descendants(pid))]


@contextmanager
def adopting() -> Iterator[Ward]:
    """Be a subreaper while any thread is in the block."""
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
