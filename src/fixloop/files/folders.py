"""The two folders that fixloop writes: the cache directory, and `.fixloop` in a project.

Both hold what agents were told, so only the owner may read them; a link in a project cannot move `.fixloop`.
"""

import os
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from fixloop.errors import UsageError
from fixloop.files.atomic import write_whole

M = TypeVar("M", bound=BaseModel)


def usual_cache() -> Path:
    """The default cache directory, in the user's own, unless the environment names another place."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if os.path.isabs(cache) else Path.home() / ".cache") / "fixloop"


def make_cache(cache: Path) -> None:
    """Make the cache directory for its owner alone; an existing one is not changed, because it may be shared."""
    if not cache.is_dir():
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.mkdir(mode=0o700, exist_ok=True)


def keep_in(cache: Path, file: Path, text: str) -> None:
    """Write a file of the cache, for its owner alone. Raises OSError: the cache cannot be written."""
    make_cache(cache)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, text.encode(), mode=0o600)


def kept_in(file: Path, kind: type[M]) -> M | None:
    """The content of a file of the cache; None if it is missing or cannot be read."""
    try:
        return kind.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None


def is_in_place(path: Path, top: Path) -> bool:
    """Whether a path is below `top`, and no part of it there is a link, which a command may have put there."""
    real = os.path.realpath(top)
    return path.is_relative_to(top) and os.path.realpath(path) == os.path.join(real, path.relative_to(top))


def own_folder(project: Path) -> Path:
    """`.fixloop` in a project, without a link anywhere: the project's author does not decide where fixloop writes."""
    folder = project / ".fixloop"
    make_real(folder)
    for top, folders, files in os.walk(folder):
        for name in (*folders, *files):
            _refuse_link(Path(top, name))
    ignore = folder / ".gitignore"
    if not os.path.lexists(ignore):
        ignore.write_text("*\n", encoding="utf-8")
    return folder


def make_real(folder: Path) -> None:
    """Make a folder for its owner alone, or use the existing one. Raises UsageError: it is a link."""
    _refuse_link(folder)
    folder.mkdir(mode=0o700, exist_ok=True)


def _refuse_link(path: Path) -> None:
    if path.is_symlink():
        raise UsageError(f"{path} is a link to {os.readlink(path)}; replace it by a folder, or remove it")
