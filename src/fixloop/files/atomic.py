"""Writes files atomically; those put below a folder are not written outside it or through a link (C18, R13).

Renaming replaces a file; a swapped directory, whose files change together, is a link renamed to a new generation.
"""

import errno
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final, NamedTuple

from fixloop.errors import RefusedError, UsageError

LIMIT_BYTES: Final = 64 * 1024 * 1024
"""A larger file counts as none: an agent may have made it to fill memory."""
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class File(NamedTuple):
    """One file to write."""

    path: str
    """Below the root."""
    sources: str
    """The same for the same content; see `Kept`."""
    parts: Callable[[], tuple[bytes, ...]]
    """Makes the content, which is expensive."""

    @classmethod
    def of(cls, path: str, content: bytes) -> "File":
        """A file of known content."""
        return cls(path, sha256(content).hexdigest(), lambda: (content,))

    @property
    def content(self) -> bytes:
        return b"".join(self.parts())

    def made(self) -> "File":
        """The same file with its content made."""
        parts = self.parts()
        return self._replace(parts=lambda: parts)


class Folders(NamedTuple):
    """The complete content of a swapped directory."""

    folders: tuple[str, ...]
    """Folders that exist, empty or not."""
    files: Mapping[str, bytes]
    """By path in the directory."""


def place(root: Path, files: Iterable[File], folders: Iterable[str] = ()) -> None:
    """Put files below a folder, each atomically, and make folders there."""
    for inner in folders:
        with _folder(root, f"{inner}/file", make=True):
            pass
    for file in files:
        _replace(root, file.path, file.content)


def read(root: Path, path: str, swapped: Iterable[str] = ()) -> bytes | None:
    """
    The content of a named file; None if there is none.

    `swapped`: the swapped directories; they are read through their link, and no other link is followed.
    """
    for directory in swapped:
        generation = _generation(root, directory) if path.startswith(f"{directory}/") else ""
        if generation:
            path = f"{generation}{path.removeprefix(directory)}"
    try:
        with _folder(root, path, make=False) as (folder, name):
            return _content(folder, name)
    except (OSError, RefusedError):
        return None


def is_ours(root: Path, directory: str) -> bool:
    """Whether a directory exists as `swap` made it."""
    generation = _generation(root, directory)
    return bool(generation) and (root / generation).is_dir()


def _generation(root: Path, directory: str) -> str:
    try:
        with _folder(root, directory, make=False) as (folder, name):
            leads_to = os.readlink(name, dir_fd=folder)
    except (OSError, UsageError):
        return ""
    made_here = re.fullmatch(rf"\.{re.escape(name)}\.\d+", leads_to)
    return str(PurePosixPath(directory).with_name(leads_to)) if made_here else ""


def listed(root: Path, directory: str) -> Iterator[str]:
    """Every file in a swapped directory, by path below the root."""
    top = root / (_generation(root, directory) or directory)
    for folder, _, names in os.walk(top):
        yield from (f"{directory}/{(Path(folder) / name).relative_to(top).as_posix()}" for name in names)


def write_whole(path: Path, content: bytes, *, mode: int = 0o666, synced: bool = False) -> None:
    """Replace a file so that a reader sees all of it or the old content; `synced`: also after a power loss."""
    with replacing(path, mode=mode, synced=synced) as file:
        file.write(content)


@contextmanager
def replacing(path: Path, *, mode: int = 0o666, synced: bool = False) -> Iterator[BinaryIO]:
    """A new file that replaces a file when the block ends; if the block fails, the old file stays."""
    # Not the process id: containers that share a folder may have equal ones.
    hidden = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        with os.fdopen(os.open(hidden, _NEW, mode), "wb") as file:
            yield file
            if synced:
                file.flush()
                os.fsync(file.fileno())
        os.rename(hidden, path)
    except BaseException:
        hidden.unlink(missing_ok=True)
        raise


def write_new(
    path: str | Path, content: bytes, *, mode: int = 0o644, synced: bool = False, folder: int | None = None
) -> None:
    """Write a file that does not exist yet, in the open directory `folder` if given. Raises FileExistsError."""
    descriptor = os.open(path, _NEW, mode, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        if synced:
            file.flush()
            os.fsync(descriptor)


def sync(path: Path) -> None:
    """Flush a file's content, or a folder's names, to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems have nothing to flush for a folder.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


def _replace(root: Path, path: str, content: bytes) -> None:
    with _folder(root, path, make=True) as (folder, name):
        if _content(folder, name) == content:
            return
        hidden = f".{name}.new"
        with suppress(FileNotFoundError):
            os.unlink(hidden, dir_fd=folder)
        # Not synced to the disk: a file that a power failure damages differs from its record, and is rendered again.
        write_new(hidden, content, folder=folder)
        os.rename(hidden, name, src_dir_fd=folder, dst_dir_fd=folder)


def _content(folder: int, name: str) -> bytes | None:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        return file.read() if stat.S_ISREG(found.st_mode) and found.st_size <= LIMIT_BYTES else None


@contextmanager
def _folder(root: Path, path: str, *, make: bool) -> Iterator[tuple[int, str]]:
    """The open directory of a path, reached through no link, and the path's last part."""
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
            try:
                folder = os.open(part, _DIRECTORY, dir_fd=folder)
            except NotADirectoryError:
                told = f"{part} in {path} is no directory; move it away, the files are written there"
                raise RefusedError(told) from None
            opened.callback(os.close, folder)
        yield folder, parts[-1]


def swap(root: Path, directory: str, inside: Folders) -> None:
    """Make the next generation next to the present one, then point the directory's link to it."""
    with _folder(root, directory, make=True) as (folder, name):
        with suppress(FileNotFoundError):
            if not stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                raise RefusedError(
                    f"{directory} is a directory that fixloop did not make; move it away, its files change places there"
                )
        parent = root / PurePosixPath(directory).parent
        present = PurePosixPath(_generation(root, directory)).name
        generations = {path.name: path for path in parent.glob(f".{name}.[0-9]*")}
        numbers = (old.rpartition(".")[2] for old in generations)
        last = max((int(number) for number in numbers if number.isdecimal()), default=0)
        generation = f".{name}.{last + 1:08}"
        for path in inside.folders:
            (parent / generation / path).mkdir(parents=True, exist_ok=True)
        for path, content in inside.files.items():
            _replace(parent / generation, path, content)
        with suppress(FileNotFoundError):
            os.unlink(f".{name}.link", dir_fd=folder)
        os.symlink(generation, f".{name}.link", dir_fd=folder)
        os.rename(f".{name}.link", name, src_dir_fd=folder, dst_dir_fd=folder)
        # A reader of the previous generation may finish.
        for old, place in generations.items():
            if old != present:
                shutil.rmtree(place, ignore_errors=True)
