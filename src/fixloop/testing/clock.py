"""A wrong wall clock for a process that loads a copy of this file as `sitecustomize`, as in a chaos run.

Shifts `time.time`, `time.time_ns`, `datetime.now` and `datetime.utcnow` by the seconds in the file that
`FIXLOOP_TESTING_CLOCK` names, at any time, even if they were already imported. It affects a worker's own code, Celery
and kombu, but not Redis and the monotonic clock. It uses only the standard library, because it is loaded first.
"""

import ctypes
import datetime
import mmap
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

VARIABLE = "FIXLOOP_TESTING_CLOCK"
_SECONDS = struct.Struct("d")
_NO_ARGUMENTS = (ctypes.c_void_p, ctypes.c_void_p)
_ARGUMENTS = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p)
_METH_NOARGS = 0x0004
_kept: list[object] = []
"""C has pointers to these objects, so they must not be collected."""


class _Method(ctypes.Structure):
    """CPython's PyMethodDef, which all references to a built-in function share."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Function(ctypes.Structure):
    _fields_ = (("head", ctypes.c_byte * object.__basicsize__), ("method", ctypes.POINTER(_Method)))


def set_clock(path: Path, seconds: float) -> None:
    """Shift the clocks of all processes that read `path`, from now on."""
    with path.open("r+b" if path.exists() else "wb") as file:
        file.write(_SECONDS.pack(seconds))


def skew_seconds() -> float:
    """The error of this process' wall clock, as its code sees it."""
    return time.time() - time.clock_gettime(time.CLOCK_REALTIME)


def shift_clock(path: Path) -> None:
    """Shift this process' wall clock by the current content of `path`."""
    with path.open("rb") as file:
        shared = mmap.mmap(file.fileno(), _SECONDS.size, prot=mmap.PROT_READ)

    def off() -> float:
        seconds: float = _SECONDS.unpack_from(shared)[0]
        return seconds

    _change(time.time, lambda now: now + off())
    _change(time.time_ns, lambda now: now + int(off() * 1e9))
    for function in (datetime.datetime.now, datetime.datetime.utcnow):
        _change(function, lambda now: now + datetime.timedelta(seconds=off()))


def _change(function: Callable[..., Any], changed: Callable[[Any], Any]) -> None:
    method = _Function.from_address(id(function)).method.contents
    words = _NO_ARGUMENTS if method.flags & _METH_NOARGS else _ARGUMENTS
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, *words)
    before = kind(method.function)
    after = kind(lambda *passed: changed(before(*passed)))
    _kept.extend((before, after))
    method.function = ctypes.cast(after, ctypes.c_void_p).value


if __name__ == "sitecustomize" and os.environ.get(VARIABLE):
    shift_clock(Path(os.environ[VARIABLE]))
