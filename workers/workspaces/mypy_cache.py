"""What mypy remembers of a project's folder from one check to the next; without it mypy takes far longer.

Owns `{cache}/mypy/`: a folder for each, of which only mypy is told.
"""

import os
import shutil
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path


def mypy_cache(cache: Path, folder: Path) -> Path:
    """Where it is for a folder, whether it exists yet or not."""
    return cache / "mypy" / sha256(os.fsencode(folder.resolve())).hexdigest()[:24]


def lend(kept: Path, to: Path, before: float) -> None:
    """Copy it to a new folder, unless some of it is younger than `before`, seconds since the epoch: the date of an
    inode cannot be set back."""
    if all(path.lstat().st_ctime < before for path in (kept, *kept.rglob("*"))):
        shutil.copytree(kept, to, symlinks=True)


def is_mypy(command: Sequence[str]) -> bool:
    return "mypy" in map(os.path.basename, command)


def date_by(content: str, folder: Path) -> None:
    """Give all modules a date that no other content has: for mypy a file of the same size and second is the same, and
    two workspaces are made within one. It is after 1980, before which a ZIP file knows no date."""
    seconds = 946_684_800 + int(sha256(content.encode()).hexdigest()[:7], 16)
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith((".py", ".pyi")):
                os.utime(os.path.join(place, name), (seconds, seconds), follow_symlinks=False)
