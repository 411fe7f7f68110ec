"""Finds chats, in any tree and a single one by its name or number, and reads their files, which others wrote.

What is read is always a text or a finding, and never a wait: symbolic links are not followed, pipes and devices not
opened, and no more is read than a person would write.
"""

import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from fixloop.chat.conversation import Source
from fixloop.chat.message import CHAT_NAME, read_name
from fixloop.chat.meta import META
from fixloop.chat.vocabulary import Finding
from fixloop.errors import UsageError

CHATS: Final = "theory_api/agents/chats"
"""The place of chats in a project (E2)."""

_SKIPPED: Final = frozenset({".git", ".hg", ".venv", "node_modules", "__pycache__", ".fixloop"})


def chats_below(path: Path) -> Iterator[Path | Finding]:
    """The directories at or below `path` that are chats or were meant as one, in order; links are not followed. A part
    that cannot be listed is a finding: unchecked chats have not passed."""
    if not path.is_dir():
        raise UsageError(f"{path} is no directory; name a chat, or a directory with chats")
    refused: list[OSError] = []
    for top, folders, files in os.walk(path, onerror=refused.append):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        here = Path(top)
        for link in (here / name for name in folders if (here / name).is_symlink()):
            if CHAT_NAME.fullmatch(printable(link.name)):
                told = "it is a symbolic link, which is not followed; a chat is a directory of its own"
                yield Finding("file", printable(str(link)), told)
        if _is_chat(here, files, folders):
            folders[:] = []
            yield here
        yield from map(_unlisted, refused)
        refused.clear()
    yield from map(_unlisted, refused)


def default_chats(here: Path) -> Path:
    """`CHATS` in `here`, or in the nearest directory above it that has them or is the top of a checkout."""
    for folder in (here, *here.parents):
        if (folder / CHATS).is_dir() or (folder / ".git").exists():
            return Path(os.path.relpath(folder / CHATS, here))
    return Path(CHATS)


def find_chat(chats: Path, word: str) -> Path:
    """The chat that `word` names: a directory, a name below `chats`, or a number such as 5 or 0005."""
    if os.sep in word or word in (".", ".."):
        return Path(word)
    names = sorted(os.listdir(chats)) if chats.is_dir() else []
    numbered = [name for name in names if word.isdecimal() and CHAT_NAME.fullmatch(name)]
    found = [name for name in names if name == word or (name in numbered and int(name[:4]) == int(word))]
    if len(found) == 1:
        return chats / found[0]
    if found:
        raise UsageError(f"{word} is the number of {', '.join(found)}; name one of them")
    if Path(word).is_dir():
        return Path(word)
    known = f"there are {', '.join(names[-5:])}" if names else "`fixloop chat new` makes one"
    raise UsageError(f"there is no chat {word} in {chats}; {known}")


def _is_chat(here: Path, files: list[str], folders: list[str]) -> bool:
    name = here.resolve().name if here.name in ("", "..") else here.name
    if CHAT_NAME.fullmatch(printable(name)):
        return True
    if any(read_name(file) for file in (*files, *folders)):
        return True
    # Other programs have a meta.yaml, too; a chat's names its branch and acceptance criteria.
    try:
        text = (here / META).read_bytes()[:4096] if META in files else b""
    except OSError:
        return False
    return b"acceptance" in text or b"branch" in text


def _unlisted(error: OSError) -> Finding:
    told = f"it cannot be listed: {(error.strerror or '').lower()}"
    return Finding("file", printable(str(error.filename)), told)


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
