"""Landlock: a process gives up rights for itself and its descendants, by three system calls and without a library.

Loaded by the guard's program next to it, so it uses only the standard library. A ruleset applies to a file's real path,
whatever name, link or mount leads there. No version so far covers `connect` to a socket with a path, `chmod`, dates,
and UDP.
"""

import ctypes
import errno
import os
import stat
import struct
import sys
from collections.abc import Iterator, Sequence

OLDEST = 2
"""Earlier versions do not allow moving files between folders."""
KNOWN = 7
WITH_NETWORK = 4
WITH_SCOPES = 6
SCOPED = "scoped"
"""The rules that allow everything but abstract sockets of outside processes, and signals to them."""
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_BY_VERSION = 1
_BENEATH = 1
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_LIBRARY = ctypes.CDLL(None, use_errno=True)

_EXECUTE, _WRITE, _READ, _LIST = 1, 1 << 1, 1 << 2, 1 << 3
_DEVICES = 1 << 6 | 1 << 11
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE
_TCP = 1 | 1 << 1
_SCOPES = 1 | 1 << 1
"""Abstract sockets of outside processes, and signals to them."""
_CAPABILITIES = (2, 12, 16, 17, 19, 21, 22, 25, 38, 39, 40)
"""Of root: with these it could read files by number and other processes' memory and environment, load a module, or set
the machine's network and clock."""
_WRITABLE_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "dri", "kvm")


def version() -> int:
    """The kernel's version; 0 if it has none, or a system call filter blocks it."""
    try:
        return _call(_CREATE, None, 0, _BY_VERSION)
    except OSError:
        return 0


def ruleset(rules: str) -> int:
    """
    An open ruleset that allows reading everything except hidden paths, and writing writable ones.

    `rules` has lines `hidden PATH`, `shown PATH` (below a hidden one), `writable PATH` and `network off`, or is SCOPED.
    """
    if rules == SCOPED:
        return _call(_CREATE, struct.pack("=QQQ", 0, 0, _SCOPES), 24, 0)
    lines = [line.partition(" ")[::2] for line in rules.splitlines()]
    hidden = [path for kind, path in lines if kind == "hidden"]
    all_files = (1 << {1: 13, 2: 14}.get(version(), 15)) - 1
    asked = struct.pack("=QQQ", all_files, _TCP if ("network", "off") in lines else 0, _SCOPES)
    size = 8 if version() < WITH_NETWORK else 16 if version() < WITH_SCOPES else 24
    made = _call(_CREATE, asked[:size], size, 0)
    allowed = [("/", _LIST), *((path, _READ | _EXECUTE) for path in around("/", hidden))]
    allowed += [(path, _READ | _EXECUTE | _LIST) for kind, path in lines if kind == "shown"]
    for kind, path in lines:
        if kind == "writable":
            allowed += [(each, all_files & ~_DEVICES) for each in around(path, hidden)]
    allowed += [(f"/dev/{name}", all_files & ~_DEVICES) for name in _WRITABLE_DEVICES]
    if os.geteuid() != 0:
        # As root, this would be the settings of the whole system.
        allowed.append(("/proc", _WRITE | _TRUNCATE))
    for path, rights in allowed:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            # A missing path needs no right.
            continue
        own = all_files if stat.S_ISDIR(os.fstat(place).st_mode) else all_files & _FILES
        _call(_ADD, made, _BENEATH, struct.pack("=Qi", rights & own, place), 0)
        os.close(place)
    return made


def enforce(made: int, rules: str) -> None:
    """Give up the rights outside the ruleset, for good; bubblewrap, for which SCOPED is, needs its capabilities."""
    for number in () if rules == SCOPED else _CAPABILITIES:
        _LIBRARY.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
    try:
        _call(_RESTRICT, made, 0)
    except PermissionError:
        # An unprivileged process may do so only if no program can give it new rights.
        _LIBRARY.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        _call(_RESTRICT, made, 0)


def around(top: str, hidden: Sequence[str]) -> Iterator[str]:
    """The largest files and folders that make up `top` without the hidden ones; `top` itself if it has none."""
    below = top.rstrip("/") + "/"
    if top in hidden:
        return
    if not any(path.startswith(below) for path in hidden):
        yield top
        return
    try:
        entries = [entry.path for entry in os.scandir(top) if not entry.is_symlink()]
    except OSError:
        return
    for entry in entries:
        yield from around(entry, hidden)


def _call(number: int, *arguments: object) -> int:
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    result: int = _LIBRARY.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
