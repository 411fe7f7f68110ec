"""Reads files of other authors: the result is always a text or a finding, and never a wait.

Symbolic links are not followed, pipes and devices not opened, and no more is read than a person would write.
"""

import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from fixloop.chat.conversation import Source
from fixloop.chat.vocabulary import Finding

MAX_BYTES: Final = 1024 * 1024

_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_KINDS: Final = {stat.S_IFLNK: "a symbolic link", stat.S_IFDIR: "a directory", stat.S_IFIFO: "a pipe"}
_BOMS: Final = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def printable(name: str) -> str:
    """A file's name as text, even if it is not valid text."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def read_source(path: Path, shown: str) -> Source:
    """The file `path`, called `shown` in findings; its name is that of `path`."""
    name = printable(path.name)
    try:
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode):
            kind = _KINDS.get(stat.S_IFMT(found.st_mode), "a device or socket")
            return _unread(name, shown, f"it is {kind}, not a file of its own")
        # It may have been replaced by a link or a pipe since lstat.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        return _unread(name, shown, f"it cannot be read: {(error.strerror or str(error)).lower()}")
    modified = datetime.fromtimestamp(found.st_mtime, UTC)
    if len(content) > MAX_BYTES:
        told = f"it is larger than {MAX_BYTES // 1024} KiB, the limit for a file of a chat"
        return _unread(name, shown, told)
    source = Source(name, content, None, modified)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, wide = content.count(b"\n", 0, error.start) + 1, _BOMS.get(content[:2])
        told = f"it is {wide}, not UTF-8" if wide else f"byte 0x{content[error.start]:02x} is not UTF-8"
        return source._replace(findings=(Finding("encoding", shown, f"{told}; save it as UTF-8", line),))
    if "\0" in text:
        line = content.count(b"\n", 0, content.index(b"\0")) + 1
        return source._replace(findings=(Finding("encoding", shown, "it holds NUL; it is no text", line),))
    return source._replace(text=text)


def _unread(name: str, shown: str, told: str) -> Source:
    return Source(name, None, None, _EPOCH, (Finding("file", shown, told),))
