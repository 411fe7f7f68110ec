"""What fixloop writes into a project: one folder, which no link of the project's author leads elsewhere."""

import os
from pathlib import Path

from fixloop.errors import UsageError


def own_folder(project: Path) -> Path:
    """`.fixloop` in a project; a link is refused: the author of a project does not decide where fixloop writes."""
    folder = project / ".fixloop"
    make_real(folder)
    ignore = folder / ".gitignore"
    if not os.path.lexists(ignore):
        ignore.write_text("*\n", encoding="utf-8")
    return folder


def make_real(folder: Path) -> None:
    """Make a folder for its owner alone, or take the one that is there. Raises UsageError: it is a link."""
    if folder.is_symlink():
        raise UsageError(f"{folder} is a link to {os.readlink(folder)}; replace it by a folder, or remove it")
    folder.mkdir(mode=0o700, exist_ok=True)
