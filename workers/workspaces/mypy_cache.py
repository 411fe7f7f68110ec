"""Keeps mypy's cache for a project's folder from one check to the next; without it mypy takes far longer.

Owns `{cache}/mypy/`: a folder for each project folder, passed only to mypy, and only if it runs no code of the project.
"""

import os
import re
import shutil
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from fixloop.configuration.commands import module_of, without_launchers

DAY_SECONDS: Final = 86_400.0
_SETTINGS: Final = ("mypy.ini", ".mypy.ini", "pyproject.toml", "setup.cfg")
_PLUGINS: Final = re.compile(r"^\s*plugins\s*=\s*(\[[^\]]*\]|.*(?:\n[ \t]+.*)*)", re.MULTILINE)
_WORD: Final = re.compile(r"[\w./]+")
_INTERPRETER: Final = re.compile(r"^\s*python_executable\s*=", re.MULTILINE)


def mypy_cache(cache: Path, folder: Path) -> Path:
    """The cache's place for a folder, whether it exists or not."""
    return cache / "mypy" / sha256(os.fsencode(folder.resolve())).hexdigest()[:24]


def lend_cache(kept: Path, to: Path, before: float) -> None:
    """Copy it to a new folder, unless a part is newer than `before`, seconds since the epoch: an inode's date cannot be
    set back."""

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
    words = without_launchers(tuple(command))
    return os.path.basename(words[0]) == "mypy" or module_of(words) == "mypy"


def runs_other_code(command: Sequence[str], directory: Path) -> bool:
    """Whether this call of mypy in `directory` also runs code of the project, which could write to the cache: a plugin
    of its own, or an interpreter that it names."""
    own = [directory / word.removeprefix("--config-file=") for word in command]
    found = [place / name for place in (directory, *directory.parents) for name in _SETTINGS]
    text = "\n".join(file.read_text(errors="replace") for file in (*own, *found) if file.is_file())
    plugins = {word.split(".")[0] for listed in _PLUGINS.findall(text) for word in _WORD.findall(listed)}
    folders = [directory, *(each for each in directory.iterdir() if each.is_dir())]
    paths = (folder / f"{name}{end}" for folder in folders for name in plugins for end in ("", ".py"))
    return bool(_INTERPRETER.search(text)) or any(path.exists() for path in paths)


def date_by(content: str, folder: Path) -> None:
    """Give all modules a date derived from `content`: mypy takes a file of the same size and second as unchanged, and
    two workspaces may be created within a second. The date is after 1980, the earliest for ZIP files."""
    seconds = 946_684_800 + int(sha256(content.encode()).hexdigest()[:7], 16)
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith((".py", ".pyi")):
                os.utime(os.path.join(place, name), (seconds, seconds), follow_symlinks=False)
