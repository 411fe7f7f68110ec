"""Workspaces: a separate checkout for each attempt, outside the user's, with the mirror's objects.

Owns the folder `work` of the cache. No two attempts share a directory, and the directory of a dead attempt is never
reused. Trees are hashed and changes taken through the mirror, so a workspace's own `.git` is never trusted.
"""

import contextlib
import os
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Final

from fixloop.errors import FixloopError, InfrastructureError
from fixloop.files.locks import Lock, take
from fixloop.machine.disk import obstacle
from fixloop.machine.sandbox import own_temporary
from fixloop.reports.document import bytes_if_any
from fixloop.repository.change import Change
from fixloop.repository.copied import copied_paths, lay_copied
from fixloop.repository.git import Git, shown
from fixloop.repository.merge import commit_of_directory
from fixloop.repository.mirror import Mirror, lay_out
from fixloop.repository.tree import (
    CACHES,
    FOREIGN_SECONDS,
    GITLINK,
    NEW_BYTES,
    Entry,
    entries_on_disk,
    tracked_in_index,
    tracked_in_tree,
    write_tree,
)

LOCK: Final = ".owner"
UNOWNED_SECONDS: Final = 60.0
"""An attempt needs microseconds from creating a folder to owning it; after this long, it never will."""

CONFIG: Final = Path(__file__).with_name("workspace.gitconfig").read_text()
REMOTE: Final = '[remote "origin"]\n\turl = {}\n\tpushurl = /dev/null\n'


@dataclass
class Workspace(contextlib.AbstractContextManager["Workspace"]):
    """One attempt's checkout; a context manager that removes it at the end."""

    folder: Path
    """Contains all files of this attempt, and no others."""
    path: Path
    """The checkout's top."""
    directory: Path
    """Where commands run: the top or the snapshot's subdirectory."""
    scratch: Path
    """For reports and caches, outside the checkout."""
    commit: str
    mirror: Mirror
    lock: int = field(repr=False)
    """Held while the owner lives, see `sweep_workspaces`."""
    copied: str = ""
    """A commit with untracked files that were copied here: changes to them are no part of a change."""
    index_digest: bytes = field(default=b"", repr=False)
    """Of the checkout's own index, as it was made."""

    def injury(self) -> str:
        """Damage by a command to the whole workspace, as the end of a sentence about the command; usually empty."""
        if any(place.is_symlink() or not place.is_dir() for place in (self.path, self.directory)):
            return "deleted its workspace"
        full = obstacle(self.folder)
        return f"left no room on the disk of its workspace ({full})" if full else ""

    def tree_hash(self) -> str:
        """The hash of all present files except ignored ones and caches. Every file is read: neither size nor date
        decides, so an edit of the same size in the same second is seen."""
        return write_tree(self._git(), tracked=self._tracked(), without=self._copied_paths)

    def tracked_changes(self, before: str = "") -> tuple[str, ...]:
        """The tracked files that were changed or deleted since `before` (a tree hash; default: the commit). New files
        do not count: a check may write reports and build results."""
        was = tracked_in_tree(self.mirror.git, before or self.commit)
        now = entries_on_disk(self._git(), was)
        return tuple(shown(path) for path in sorted(was) if now.get(path) != was[path])

    def capture(self, parent: str, message: str) -> Change:
        """Take the present files as one commit on `parent`, regardless of the agent's commits; kept in the mirror. The
        change's commit is `parent` itself if nothing differs (K35)."""
        own, copied = self._committed(), self._copied_paths
        return commit_of_directory(self.path, parent, self.mirror, message, also_tracked=own, without=copied)

    def left_out(self) -> tuple[str, ...]:
        """Changed files that are no part of any change: copied files, and everything below submodules."""
        was = tracked_in_tree(self.mirror.git, self.copied) if self.copied else {}
        now = entries_on_disk(self._git(), was)
        changed = [path for path, entry in was.items() if now.get(path) != entry]
        top = os.fsencode(self.path)
        for link, entry in self._tracked().items():
            for inner, names, files in os.walk(os.path.join(top, link)) if entry.mode == GITLINK else ():
                names[:] = [name for name in names if os.fsdecode(name) not in CACHES]
                paths = (os.path.relpath(os.path.join(inner, file), top) for file in files)
                changed += [path for path in paths if path not in was]
        return tuple(map(shown, sorted(changed)))

    def close(self) -> None:
        """Remove the directory. May be called twice."""
        if self.lock >= 0:
            _remove(self.folder)
            os.close(self.lock)
            self.lock = -1

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def _copied_paths(self) -> frozenset[bytes]:
        return copied_paths(self.mirror, self.copied)

    def _git(self) -> Git:
        return self.mirror.over(self.path)

    def _tracked(self) -> dict[bytes, Entry]:
        return {**tracked_in_tree(self.mirror.git, self.commit), **self._committed()}

    def _committed(self) -> Mapping[bytes, Entry]:
        """Files that an agent added or committed although they are ignored. Its repository may be in any state."""
        place = self.path / ".git"
        own = Git(self.path, git_dir=place, work_tree=self.path, seconds=FOREIGN_SECONDS)
        if not all((place / name).is_file() for name in ("HEAD", "config", "index")):
            return {}
        if any(path.is_fifo() for path in place.iterdir()):
            return {}
        with contextlib.suppress(FixloopError, OSError, ValueError):
            is_as_made = _index_digest(self.path) == self.index_digest
            found = tracked_in_tree(self.mirror.git, self.commit) if is_as_made else tracked_in_index(own)
            return {path: each for path, each in found.items() if each.mode != GITLINK and not each.sparse}
        return {}


def open_workspace(
    cache: Path,
    mirror: Mirror,
    commit: str,
    *,
    name: str,
    subdirectory: str = "",
    copied: str = "",
    origin: str = "",
) -> Workspace:
    """Make a checkout of `commit` for one attempt, in a folder `name` of the cache, with a number if that exists.
    `origin`: the address of a remote, for tools that read it; nothing can be pushed there."""
    try:
        folder = _fresh_folder(Path(os.path.abspath(cache)) / "work", name)
        # Named like the source's folder: some tools show the name, some projects depend on it.
        last = mirror.source.rstrip("/").rpartition("/")[2].removesuffix(".git")
        top = re.sub(r"[^\w.+-]", "_", last).lstrip(".-") or "checkout"
        path, new = folder / "tree" / top, folder / f"{LOCK}.new"
        lock = os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        take(lock)
        # Renamed after it is locked, so that a visible file is always locked.
        new.rename(folder / LOCK)
        made = Workspace(folder, path, path / subdirectory, folder / "scratch", commit, mirror, lock, copied)
        with contextlib.ExitStack() as unless_complete:
            unless_complete.callback(made.close)
            made.scratch.mkdir()
            made.path.mkdir(parents=True)
            check_out(path, mirror, commit, copied)
            if origin:
                with (path / ".git/config").open("a") as config:
                    config.write(REMOTE.format(origin))
            made.index_digest = _index_digest(path)
            made.directory.mkdir(parents=True, exist_ok=True)
            unless_complete.pop_all()
    except OSError as error:
        raise InfrastructureError(f"cannot make a workspace in {cache}: {error.strerror}") from error
    return made


def _index_digest(path: Path) -> bytes:
    return sha256(bytes_if_any(path / ".git" / "index", NEW_BYTES)).digest()


def sweep_workspaces(cache: Path) -> list[str]:
    """Remove the directories of dead owners and return their names. An owner holds a lock on its directory, which the
    kernel releases when the process ends."""
    removed = []
    for folder in sorted((cache / "work").glob("*/")):
        with _left_over(folder) as is_left_over:
            if is_left_over:
                _remove(folder)
                removed.append(folder.name)
    return removed


def _remove(folder: Path) -> None:
    """Remove a workspace whose lock is held. It is renamed first: as soon as its name is free, another attempt may take
    it."""
    remove_temporary_files(folder)
    gone = folder.with_name(f".{secrets.token_hex(8)}")
    with contextlib.suppress(FileNotFoundError):
        folder.rename(gone)
    remove_folder(gone)


def remove_folder(folder: Path) -> None:
    """Remove a folder, even if a tool made parts of it read-only, or nested folders too deeply for Python."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        return
    opening = ("find", folder, "-type", "d", "!", "-perm", "-700", "-execdir", "chmod", "u+rwx", "{}", ";")
    for command in (opening, ("rm", "-rf", folder)):
        with contextlib.suppress(OSError):
            subprocess.run(command, env={"PATH": os.defpath}, capture_output=True, check=False)


def remove_temporary_files(folder: Path) -> None:
    """Remove the temporary files of a workspace's commands, and the shared folder if these were the last."""
    own = own_temporary(folder)
    remove_folder(own)
    with contextlib.suppress(OSError):
        own.parent.rmdir()


def _fresh_folder(work: Path, name: str) -> Path:
    """A new folder: mkdir decides between two processes that want the same name."""
    work.mkdir(parents=True, exist_ok=True)
    plain = re.sub(r"[^\w.+-]", "_", name)[-200:].lstrip(".")
    number, folder = 1, work / plain
    while True:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            return folder
        number += 1
        folder = work / f"{plain}-{number}"


@contextlib.contextmanager
def _left_over(folder: Path) -> Iterator[bool]:
    """Whether the owner is dead; its lock is held meanwhile, so that no other sweep removes the folder as well."""
    try:
        lock = Lock.held(os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC))
    except FileNotFoundError:
        age = 0.0
        with contextlib.suppress(FileNotFoundError):
            age = time.time() - folder.stat().st_mtime
        yield age > UNOWNED_SECONDS
        return
    with contextlib.closing(lock):
        # Until it was locked, another sweep may have removed the folder, and an attempt taken its name.
        yield lock.take() and lock.is_of(folder / LOCK)


def check_out(path: Path, mirror: Mirror, commit: str, copied: str = "") -> None:
    """Make an empty folder a detached clone that borrows its objects from the mirror, with the copied files."""
    own = path / ".git"
    lay_out(own, CONFIG, sha256=len(commit) == 64)
    (own / "objects/info/alternates").write_text(f"{mirror.path / 'objects'}\n")
    (own / "packed-refs").write_bytes(
        mirror.git.output("for-each-ref", "--format=%(objectname) %(refname)", "refs/tags")
    )
    for name in ("shallow", "info/exclude"):
        if (mirror.path / name).exists():
            shutil.copyfile(mirror.path / name, own / name)
    (own / "HEAD").write_text(f"{commit}\n")
    Git(path, ours=True, alone=True).run("read-tree", "--reset", "-u", "HEAD")
    lay_copied(path, mirror, copied)
