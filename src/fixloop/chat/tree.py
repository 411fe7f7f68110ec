"""Finds chats: in any tree, and a single one by its name or number."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fixloop.chat.message import CHAT_NAME, read_name
from fixloop.chat.meta import META
from fixloop.chat.sources import printable
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
