"""Identifies a ticket's holder by host, boot id, pid namespace, pid and start time, so that a dead owner is recognised.

A pid alone may be reused; with the start time it is unique. Only a process on the same host, boot and namespace can
tell that an owner is gone; others have to wait for the end of its lease. A worker's process adds its supervisor after
an `@`: only the supervisor can judge whether a death was the step's fault (K40).
"""

import os
import socket
import time
from functools import lru_cache
from pathlib import Path
from typing import Final

from fixloop.machine.guard_program import stat_fields

VARIABLE: Final = "FIXLOOP_SUPERVISOR"
"""The environment variable of a worker's processes with the identity of their supervisor."""

# PF_EXITING: the process does nothing more. Its files are closed before it is a zombie, so a process that waited for
# their end would otherwise find it alive.
EXITING: Final = 0x4


@lru_cache(maxsize=1)
def machine() -> str:
    """`{host}/{boot id}/{pid namespace}` of this process."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        boot, namespace = "unknown", "0"
    return f"{socket.gethostname()}/{boot}/{namespace}"


def identity(pid: int | None = None) -> str:
    """`{machine}/{pid}/{start}` of a process, by default this one; the start is in clock ticks since boot."""
    number = os.getpid() if pid is None else pid
    return f"{machine()}/{number}/{_started(number)}"


def owner() -> str:
    """This process's identity, with its supervisor's pid and start if it has one."""
    supervisor = os.environ.get(VARIABLE, "").rsplit("/", 2)
    return f"{identity()}@{':'.join(supervisor[1:])}" if len(supervisor) == 3 else identity()


def supervisor_of(owner: str) -> str:
    """The identity of an owner's supervisor; empty if it has none."""
    where, _, rest = owner.rpartition("@")
    return f"{_parts(where)[0]}/{rest.replace(':', '/')}" if where and rest else ""


def is_dead_here(owner: str) -> bool:
    """Whether `owner` was a process of this machine and no longer runs; False if that is unknown."""
    where, pid, rest = _parts(owner)
    return where == machine() and pid.isdigit() and _started(int(pid)) != rest


def age_seconds() -> float:
    """How long ago this process started; infinite if unknown."""
    started = _started(os.getpid())
    if not started:
        return float("inf")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(started) / os.sysconf("SC_CLK_TCK")


def pid_of(owner: str) -> int | None:
    pid = _parts(owner)[1]
    return int(pid) if pid.isdigit() else None


def _parts(owner: str) -> tuple[str, str, str]:
    where, _, start = owner.rpartition("/")
    machine_, _, pid = where.rpartition("/")
    return machine_, pid, start.partition("@")[0]


def _started(pid: int) -> str:
    """Field 22 of /proc/pid/stat, read after the command's name, which may contain anything; a zombie has ended."""
    fields = stat_fields(str(pid))
    ended = not fields or fields[0] in (b"Z", b"X") or int(fields[6]) & EXITING
    return "" if ended else fields[19].decode()
