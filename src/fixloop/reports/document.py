"""Reads the bytes of one report file, so that no file can block the reader, fill its memory or mislead it.

Refuses everything but a regular file of limited size: a pipe, a device, a directory, a link.
"""

import json
import os
import stat
from pathlib import Path
from typing import Any, Final

from fixloop.protocol.limits import cut
from fixloop.reports.report import Unusable

LIMIT_BYTES: Final = 64 * 1024 * 1024

# An empty list is two bytes of JSON and 64 of memory: without a count, 64 MB of `[],` would take 1.4 GB.
MAX_CONTAINERS: Final = 4_000_000

# Without O_NONBLOCK, opening a pipe waits for a writer.
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_KINDS: Final = (
    *((stat.S_ISDIR, "a directory"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISLNK, "a symbolic link")),
    *((stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device")),
)


def read_bytes(path: Path, limit_bytes: int = LIMIT_BYTES) -> bytes:
    """The content of the regular file `path`. Raises Unusable: not one, empty, or over `limit_bytes`."""
    try:
        # Checked before opening, which has effects on some devices, and again after, in case it was replaced.
        _require_regular(os.lstat(path))
        descriptor = os.open(path, _FLAGS)
    except FileNotFoundError:
        raise Unusable("is missing; the command did not write it") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise Unusable(f"cannot be opened: {str(reason).lower()}") from None
    with open(descriptor, "rb", buffering=0, closefd=True) as file:
        status = os.fstat(file.fileno())
        _require_regular(status)
        _require_size(status.st_size, limit_bytes)
        content, room = bytearray(), limit_bytes + 1
        try:
            # The limit also holds for a file that is still growing.
            while room > 0 and (piece := file.read(min(room, 1 << 20))):
                content += piece
                room -= len(piece)
        except OSError as error:
            raise Unusable(f"cannot be read: {error.strerror}") from None
    _require_size(len(content), limit_bytes)
    if not content.strip():
        raise Unusable("is empty")
    return bytes(content)


def bytes_if_any(path: Path, limit_bytes: int = LIMIT_BYTES) -> bytes:
    """The same; empty if it is unusable."""
    try:
        return read_bytes(path, limit_bytes)
    except Unusable:
        return b""


def json_object(content: bytes) -> dict[str, Any]:
    """The JSON object in `content`. Raises Unusable: not one, or parsers could read it differently."""
    parts = content.count(b"{") + content.count(b"[")
    if parts > MAX_CONTAINERS:
        raise Unusable(f"holds {parts} lists and objects, the limit is {MAX_CONTAINERS}")
    try:
        value = json.loads(content, object_pairs_hook=_object, parse_constant=_refused)
    except RecursionError:
        raise Unusable("is nested too deeply to be a report") from None
    except ValueError as error:
        raise Unusable(f"is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise Unusable("is JSON, but not an object")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Unusable(f"names {cut(twice, 60)!r} twice in one object")
    return found


def _refused(constant: str) -> Any:
    raise Unusable(f"holds {constant}, which is no JSON")


def _require_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for test, name in _KINDS if test(status.st_mode)), "a special file")
        raise Unusable(f"is {kind}, not a regular file")


def _require_size(size: int, limit_bytes: int) -> None:
    if size > limit_bytes:
        raise Unusable(f"has {size} bytes, the limit is {limit_bytes}")
