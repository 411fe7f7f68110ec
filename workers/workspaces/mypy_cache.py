"""Keeps mypy's cache for a project's folder from one check to the next; without it mypy takes far longer.

Owns `{cache}/mypy/`: a folder for each project folder, passed only to mypy.
"""

import os
import shutil
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

DAY_SECONDS: Final = 86_400.0


def mypy_cache(cache: Path, folder: Path) -> Path:
    """The cache's place for a folder, whether it exists or not."""
    return cache / "mypy" / sha256(os.fsencode(folder.resolve())).hexdigest()[:24]


def lend_cache(kept: Path, to: Path, before: float) -> None:
    """Copy it to a new folder, unless a part is newer than `before` (epoch): an inode's date cannot be set back."""

    def is_old() -> bool:
        return all(path.lstat().st_ctime < before for path in (kept, *kept.rglob("*")))

    if is_old():
        shutil.copytree(kept, to, symlinks=True)
        # A copy that was written to in the meantime is worse than none.
        if not is_old():
            shutil.rmtree(to)


def is_due(kept: Path, now: float) -> bool:
    """Whether it has to be rewritten: it is missing, or all of it is older than a day."""
    return all(now - path.stat().st_mtime > DAY_SECONDS for path in kept.rglob("*") if path.is_file())


def is_mypy(command: Sequence[str]) -> bool:
    return "mypy" in map(os.path.basename, command)


def date_by(content: str, folder: Path) -> None:
    """Give all modules a date derived from `content`: mypy takes a file of the same size and second as unchanged, and
    two workspaces may be created within a second. The date is after 1980, the earliest for ZIP files."""
    seconds = 946_684_800 + int(sha256(content.encode()).hexdigest()[:7], 16)
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith((".py", ".pyi")):
                os.utime(os.path.join(place, name), (seconds, seconds), follow_symlinks=False)
