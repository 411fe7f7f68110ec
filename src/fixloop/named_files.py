"""Files that others read while they change: each is whole at every moment, and never older than it was (K23, R13).

A file is replaced by renaming, a directory whose files move between folders by renaming a link to the next generation
of it. Whoever draws files from a state says which version of the state it is; an older one writes nothing.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Final, NamedTuple

from fixloop.errors import RefusedError, UsageError
from fixloop.repository.flock import held

__all__ = ["Folders", "NamedFiles"]

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
KEPT_GENERATIONS: Final = 2
"""A reader that opened the one before may finish."""
LOCK_SECONDS: Final = 30.0


class Folders(NamedTuple):
    """All of a directory whose files change places at one moment."""

    folders: tuple[str, ...]
    """They are there, empty or not."""
    files: Mapping[str, bytes]
    """By path in the directory."""


class NamedFiles:
    """The named files of one workflow below one folder."""

    def __init__(self, root: Path, name: str) -> None:
        """
        Nothing is written yet.

        Args:
            root: the folder that all paths are relative to.
            name: of the workflow; its lock and version are kept under it.
        """
        self._root = root
        self._version = root / ".fixloop" / "files" / f"{name}.version"

    def write(
        self,
        version: int,
        files: Iterable[tuple[str, bytes]],
        swapped: Mapping[str, Folders] = MappingProxyType({}),
    ) -> bool:
        """
        Bring the files to a version of their state; the last file is the last that changes.

        Args:
            files: path and content, in order.
            swapped: by path, directories whose files move between folders.

        Returns:
            False when a later version, or this one, is written already.

        Raises:
            RefusedError: something else stands in the place of a directory.
            UsageError: a path leads out of the folder.
        """
        self._version.parent.mkdir(parents=True, exist_ok=True)
        with held(self._version.with_suffix(".lock"), timeout_seconds=LOCK_SECONDS):
            if self.version >= version:
                return False
            for directory, inside in swapped.items():
                _swap(self._root, directory, inside, version)
            for path, content in files:
                _replace(self._root, path, content)
            _replace(self._version.parent, self._version.name, str(version).encode())
        return True

    @property
    def version(self) -> int:
        """Of the state that the files were last drawn from; 0 before the first."""
        try:
            return int(self._version.read_text())
        except (FileNotFoundError, ValueError):
            return 0

    def edited(self, files: Iterable[tuple[str, bytes]]) -> Iterator[str]:
        """Those that somebody else changed or removed since they were written as given here (K23)."""
        for path, content in files:
            try:
                with _folder(self._root, path, make=False) as (folder, name):
                    found = _content(folder, name)
            except (OSError, RefusedError):
                found = None
            if found != content:
                yield path


def _replace(root: Path, path: str, content: bytes) -> None:
    with _folder(root, path, make=True) as (folder, name):
        if _content(folder, name) == content:
            return
        hidden = f".{name}.new"
        _write_new(folder, hidden, content)
        os.rename(hidden, name, src_dir_fd=folder, dst_dir_fd=folder)


def _write_new(folder: int, name: str, content: bytes) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
    descriptor = os.open(name, _NEW, 0o644, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _content(folder: int, name: str) -> bytes | None:
    """What a regular file holds; None for anything else."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read() if stat.S_ISREG(os.fstat(descriptor).st_mode) else None


@contextmanager
def _folder(root: Path, path: str, *, make: bool) -> Iterator[tuple[int, str]]:
    """The open directory a path leads to, followed through no link, and the path's last part."""
    parts = PurePosixPath(path).parts
    if not parts or parts[0] == "/" or ".." in parts:
        raise UsageError(f"{path!r} leads out of {root}")
    with ExitStack() as opened:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        opened.callback(os.close, folder)
        for part in parts[:-1]:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
            folder = _enter(folder, part, path)
            opened.callback(os.close, folder)
        yield folder, parts[-1]


def _enter(folder: int, part: str, path: str) -> int:
    try:
        return os.open(part, _DIRECTORY, dir_fd=folder)
    except NotADirectoryError:
        raise RefusedError(
            f"{part} in {path} is no directory; move it away, the files are written there"
        ) from None


def _swap(root: Path, directory: str, inside: Folders, version: int) -> None:
    """Make the next generation beside the present one, then have the directory's name lead to it."""
    with _folder(root, directory, make=True) as (folder, name):
        if not _is_link_or_nothing(folder, name):
            raise RefusedError(
                f"{directory} is a directory that fixloop did not make; move it away, its files change places there"
            )
        place = root / PurePosixPath(directory).parent
        generation = f".{name}.{version:08}"
        for path in inside.folders:
            (place / generation / path).mkdir(parents=True, exist_ok=True)
        for path, content in inside.files.items():
            _replace(place / generation, path, content)
        with suppress(FileNotFoundError):
            os.unlink(f".{name}.link", dir_fd=folder)
        os.symlink(generation, f".{name}.link", dir_fd=folder)
        os.rename(f".{name}.link", name, src_dir_fd=folder, dst_dir_fd=folder)
        _drop_generations(place, name)


def _is_link_or_nothing(folder: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return True


def _drop_generations(place: Path, name: str) -> None:
    generations = sorted(place.glob(f".{name}.[0-9]*"))
    for old in generations[:-KEPT_GENERATIONS]:
        for path in sorted(old.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        old.rmdir()
