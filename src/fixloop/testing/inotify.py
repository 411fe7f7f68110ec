"""Changes of directories, as the Linux kernel reports them."""

import ctypes
import os
import select
import struct
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.errors import InfrastructureError

MODIFIED: Final = 0x2
MOVED_TO: Final = 0x80
CREATED: Final = 0x100
"""A name appeared: a new file, or a link to one."""
_HEAD: Final = struct.Struct("iIII")
_BYTES: Final = 65536


class FileChange(NamedTuple):
    directory: Path
    what: int
    """`CREATED`, `MODIFIED` or `MOVED_TO`."""
    name: str


class Watch:
    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._check(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "inotify")
        self._directories: dict[int, Path] = {}

    def add(self, directory: Path) -> None:
        mask = MODIFIED | MOVED_TO | CREATED
        number = self._libc.inotify_add_watch(self._descriptor, os.fsencode(directory), mask)
        self._directories[self._check(number, str(directory))] = directory

    def changes(self, seconds: float) -> list[FileChange]:
        """The changes in order; waits at most `seconds` for the first."""
        if not select.select([self._descriptor], [], [], seconds)[0]:
            return []
        data, found, at = os.read(self._descriptor, _BYTES), [], 0
        while at < len(data):
            number, what, _, length = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            name = os.fsdecode(data[at : at + length].rstrip(b"\0"))
            at += length
            found.append(FileChange(self._directories[number], what, name))
        return found

    def close(self) -> None:
        os.close(self._descriptor)

    def _check(self, number: int, what: str) -> int:
        if number < 0:
            raise InfrastructureError(f"{what} cannot be watched: {os.strerror(ctypes.get_errno()).lower()}")
        return number
