"""Returns fixes as files: puts the changes since the snapshot into the checkout, uncommitted.

Everything is computed, staged and checked before the first file moves; HEAD and index are never written. All changes
are made or none; after a `kill -9` in between, repeating the call completes them.
"""

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fixloop.errors import InfrastructureError, UsageError
from fixloop.files.folders import own_folder
from fixloop.files.locks import held
from fixloop.repository.git import Git, shown
from fixloop.repository.identity import is_repository, top_of
from fixloop.repository.merge import import_folder, merge_trees
from fixloop.repository.mirror import Mirror
from fixloop.repository.tree import SYMLINK, Delta, deltas, entries_on_disk, folders_of

LOCK_TIMEOUT_SECONDS = 60.0
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
MOST_OPEN = 200
"""Open folders at once, well below a process's limit."""


def apply_changes(path: Path, *, base: str, tip: str, mirror: Mirror) -> list[str]:
    """
    Apply the changes `base`..`tip` to the checkout or plain folder that holds `path`; returns the files, as printed.

    If it has changed since `base` was taken, each file is merged three-way. Repeating the call changes nothing, nor
    does a call that raises: a UsageError names the conflicting files.
    """
    top, _ = top_of(path)
    with held(mirror.path.with_suffix(".apply"), timeout_seconds=LOCK_TIMEOUT_SECONDS):
        current = import_folder(top, base, mirror)
        merged = merge_trees(mirror, base, current, tip)
        _refuse(merged.conflicts)
        changes = [delta for delta in deltas(mirror.git, current, merged.tree) if not delta.is_submodule]
        _refuse(_obstacles(top, mirror, changes))
        if changes:
            _carry_out(top, mirror, changes)
    return [shown(delta.path) for delta in changes]


def _refuse(conflicts: Sequence[str]) -> None:
    if conflicts:
        raise UsageError(
            f"the checkout has other changes in {', '.join(conflicts)}; nothing was applied: "
            "commit or undo them there, or merge by hand"
        )


def _obstacles(top: Path, mirror: Mirror, changes: Sequence[Delta]) -> list[str]:
    """Paths with something that no tree contains (ignored, special, a symlinked folder) and that would be lost."""
    leaving = {delta.path for delta in changes if not delta.is_addition}
    found = []
    for delta in changes:
        if delta.is_deletion:
            continue
        target = os.path.join(os.fsencode(top), delta.path)
        blocked = delta.is_addition and os.path.lexists(target)
        if blocked and os.path.isdir(target) and not os.path.islink(target):
            # A folder may be replaced if it is empty after the deleted files are gone.
            inside = (os.path.join(folder, name) for folder, _, names in os.walk(target) for name in names)
            blocked = not leaving.issuperset(os.path.relpath(path, os.fsencode(top)) for path in inside)
        for folder in folders_of(delta.path):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                is_folder = stat.S_ISDIR(os.lstat(os.path.join(os.fsencode(top), folder)).st_mode)
                blocked = blocked or not (is_folder or folder in leaving)
        if blocked:
            found.append(shown(delta.path))
    return found


def _carry_out(top: Path, mirror: Mirror, changes: Sequence[Delta]) -> None:
    repository = Git(top) if is_repository(top) else mirror.over(top)
    try:
        with _staging(top) as folder:
            staged = [
                None if delta.is_deletion else _staged(repository, mirror, folder / f"new-{number}", delta)
                for number, delta in enumerate(changes)
            ]
            # The files must still be as they were read: somebody may be editing them.
            old = {delta.path: delta.old for delta in changes if not delta.is_addition}
            now = entries_on_disk(repository, old)
            moved = [shown(path) for path, entry in old.items() if now.get(path) != entry]
            if moved:
                told = f"{', '.join(moved)} changed while the fix was applied; nothing was applied: try again"
                raise UsageError(told)
            with _Moves(top, folder) as moves:
                # Each path goes from old to new in one rename, so that a crash leaves no intermediate state.
                # Deletions first: a file may become a folder, and the other way round.
                for delta, file in sorted(
                    zip(changes, staged, strict=True), key=lambda change: not change[0].is_deletion
                ):
                    moves.make(delta, file)
                for delta in changes:
                    parent = delta.path.rpartition(b"/")[0] if delta.is_deletion else b""
                    while parent and moves.remove_folder(parent):
                        parent = parent.rpartition(b"/")[0]
    except OSError as error:
        name = shown(os.fsencode(error.filename or top))
        told = f"cannot write {name}: {error.strerror}; the checkout is as it was before"
        raise InfrastructureError(told) from error


@contextmanager
def _staging(top: Path) -> Iterator[Path]:
    """A folder on the checkout's file system in which all new files are prepared."""
    own = top / ".fixloop"
    existed = own.is_dir()
    own_folder(top)
    for left in own.glob("applying-*"):
        shutil.rmtree(left, ignore_errors=True)
    try:
        with tempfile.TemporaryDirectory(prefix="applying-", dir=own) as folder:
            yield Path(folder)
    finally:
        if not existed:
            shutil.rmtree(own, ignore_errors=True)


def _staged(repository: Git, mirror: Mirror, file: Path, delta: Delta) -> Path:
    content = mirror.git.output("cat-file", "blob", delta.new.blob)
    if delta.new.mode == SYMLINK:
        os.symlink(content, os.fsencode(file))
        return file
    present = os.path.join(os.fsencode(repository.directory), delta.path)
    if not delta.is_addition and delta.new.blob == delta.old.blob and delta.old.mode != SYMLINK:
        shutil.copy2(present, os.fsencode(file))
    else:
        # With the user's own filters and line endings, as a checkout would write it.
        blob = repository.text("hash-object", "-w", "--no-filters", "--stdin", stdin=content)
        path = f"--path={os.fsdecode(delta.path)}"
        file.write_bytes(repository.output("cat-file", "--filters", path, blob))
    # Like the replaced file, but with the change's executable bit.
    replaces = not delta.is_addition and delta.old.mode != SYMLINK
    mode = stat.S_IMODE((os.lstat(present) if replaces else file.stat()).st_mode)
    file.chmod(mode | (mode & 0o444) >> 2 if delta.new.mode == "100755" else mode & ~0o111)
    return file


class _Moves:
    """Renames within one file system, recorded so that they can be undone; no link in the checkout is followed."""

    def __init__(self, top: Path, folder: Path) -> None:
        self.folder = folder
        self.done: list[tuple[bytes, bytes | None]] = []
        """Each changed path with the copy of its old content, or None if it is new."""
        self.made: list[bytes] = []
        # The checkout itself may be reached through a link.
        self._top = os.open(top, FOLDER & ~os.O_NOFOLLOW)
        self._open: dict[bytes, int] = {}
        """Open folders below the top: a folder that is moved in the meantime remains the one that was checked."""

    def __enter__(self) -> "_Moves":
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """All or nothing: an error undoes every change."""
        try:
            if error is not None:
                for path, kept in reversed(self.done):
                    if kept is None:
                        folder, name = self._place(path)
                        os.unlink(name, dir_fd=folder)
                    else:
                        self._put(kept, path)
                for path in reversed(self.made):
                    self.remove_folder(path)
        finally:
            self._forget()
            os.close(self._top)

    def make(self, delta: Delta, file: Path | None) -> None:
        kept = None if delta.is_addition else os.fsencode(self.folder / f"old-{len(self.done)}")
        try:
            if kept is not None:
                folder, name = self._place(delta.path)
                try:
                    os.link(name, kept, src_dir_fd=folder, follow_symlinks=False)
                except OSError:
                    # The file system has no hard links.
                    if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                        os.symlink(os.readlink(name, dir_fd=folder), kept)
                    else:
                        source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
                        with open(source, "rb") as old, open(kept, "wb") as new:
                            shutil.copyfileobj(old, new)
                            os.fchmod(new.fileno(), stat.S_IMODE(os.fstat(source).st_mode))
            if file is None:
                folder, name = self._place(delta.path)
                os.unlink(name, dir_fd=folder)
            else:
                self._put(os.fsencode(file), delta.path)
        except OSError as error:
            # The whole path; calls relative to an open folder only have its last part.
            error.filename = delta.path
            raise
        self.done.append((delta.path, kept))

    def _put(self, file: bytes, path: bytes) -> None:
        folder, name = self._place(path, make=True)
        if _is_folder(folder, name):
            self._forget()
            folder, name = self._place(path)
            for _, names, _, above in os.fwalk(name, topdown=False, dir_fd=folder):
                for each in names:
                    os.rmdir(each, dir_fd=above)
            os.rmdir(name, dir_fd=folder)
        os.replace(file, name, dst_dir_fd=folder)

    def remove_folder(self, path: bytes) -> bool:
        """Remove a folder if it is empty; whether it was."""
        with contextlib.suppress(OSError):
            folder, name = self._place(path)
            os.rmdir(name, dir_fd=folder)
            self._forget()
            return True
        return False

    def _place(self, path: bytes, *, make: bool = False) -> tuple[int, bytes]:
        parent, _, name = path.rpartition(b"/")
        if len(self._open) > MOST_OPEN:
            self._forget()
        return self._folder(parent, make=make), name

    def _folder(self, path: bytes, *, make: bool) -> int:
        if not path:
            return self._top
        if path not in self._open:
            parent, _, name = path.rpartition(b"/")
            above = self._folder(parent, make=make)
            if make and not _is_folder(above, name):
                os.mkdir(name, dir_fd=above)
                self.made.append(path)
            self._open[path] = os.open(name, FOLDER, dir_fd=above)
        return self._open[path]

    def _forget(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1])


def _is_folder(folder: int, name: bytes) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False
