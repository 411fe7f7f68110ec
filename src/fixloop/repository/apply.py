"""The way back as files: what was fixed since the snapshot, put into the checkout as uncommitted changes.

Everything is computed, staged and checked before the first file moves; HEAD and index are never written. All
changes take place or none do; after a `kill -9` in between, the same call again completes them.
"""

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fixloop.errors import InfrastructureError, UsageError
from fixloop.repository.flock import held
from fixloop.repository.git import Git, shown
from fixloop.repository.identity import is_repository, top_of
from fixloop.repository.merge import import_folder
from fixloop.repository.mirror import Mirror
from fixloop.repository.threeway import merge_trees
from fixloop.repository.tree import SYMLINK, Delta, Entry, deltas, entries_on_disk

__all__ = ["apply_changes"]

LOCK_TIMEOUT_SECONDS = 60.0


def apply_changes(path: Path, *, base: str, tip: str, mirror: Mirror) -> list[str]:
    """
    Put the changes `base`..`tip` into the checkout or plain folder that holds `path`.

    Where it moved on since `base` was taken, each file is merged three-way. The same call twice changes nothing.

    Returns:
        The files that were changed, as they are printed.

    Raises:
        UsageError: the files named in the sentence conflict; nothing was changed.
        InfrastructureError: the folder cannot be written; nothing was changed.
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
    """Paths where something lies that no tree knows (ignored, special, a symlinked folder) and would be lost."""
    leaving = {delta.path for delta in changes if not delta.is_addition}
    found = []
    for delta in changes:
        if delta.is_deletion:
            continue
        target = os.path.join(os.fsencode(top), delta.path)
        covered = delta.is_addition and os.path.lexists(target) and not _makes_way(top, delta.path, leaving)
        if covered or _parent_is_no_folder(os.fsencode(top), delta.path, leaving):
            found.append(shown(delta.path))
    return found


def _parent_is_no_folder(top: bytes, path: bytes, leaving: set[bytes]) -> bool:
    parts = path.split(b"/")[:-1]
    for depth in range(1, len(parts) + 1):
        folder = b"/".join(parts[:depth])
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if not stat.S_ISDIR(os.lstat(os.path.join(top, folder)).st_mode) and folder not in leaving:
                return True
    return False


def _makes_way(top: Path, path: bytes, leaving: set[bytes]) -> bool:
    """True for a folder that is empty once the files that leave have left."""
    target = os.path.join(os.fsencode(top), path)
    if os.path.islink(target) or not os.path.isdir(target):
        return False
    inside = [
        os.path.relpath(os.path.join(folder, name), os.fsencode(top))
        for folder, _, names in os.walk(target)
        for name in names
    ]
    return leaving.issuperset(inside)


def _carry_out(top: Path, mirror: Mirror, changes: Sequence[Delta]) -> None:
    repository = Git(top) if is_repository(top) else mirror.over(top)
    try:
        with _staging(top) as folder:
            staged = _stage(repository, mirror, folder, changes)
            _check_unmoved(repository, changes)
            with _all_or_nothing(top, folder) as moves:
                # Each path goes from old to new in one rename, so that a crash leaves nothing in between.
                for delta, file in sorted(zip(changes, staged, strict=True), key=_deletions_first):
                    moves.make(delta, file)
                moves.remove_emptied_folders(changes)
    except OSError as error:
        name = shown(os.fsencode(error.filename or top))
        raise InfrastructureError(
            f"cannot write {name}: {error.strerror}; the checkout is as it was before"
        ) from error


@contextmanager
def _staging(top: Path) -> Iterator[Path]:
    """A folder on the same file system as the checkout, in which everything is made ready."""
    own = top / ".fixloop"
    existed = own.is_dir()
    own.mkdir(exist_ok=True)
    ignore = own / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
    for left in own.glob("applying-*"):
        shutil.rmtree(left, ignore_errors=True)
    try:
        with tempfile.TemporaryDirectory(prefix="applying-", dir=own) as folder:
            yield Path(folder)
    finally:
        if not existed:
            shutil.rmtree(own, ignore_errors=True)


def _stage(repository: Git, mirror: Mirror, folder: Path, changes: Sequence[Delta]) -> list[Path | None]:
    return [
        None if delta.is_deletion else _staged(repository, mirror, folder / f"new-{number}", delta)
        for number, delta in enumerate(changes)
    ]


def _staged(repository: Git, mirror: Mirror, file: Path, delta: Delta) -> Path:
    content = mirror.git.output("cat-file", "blob", delta.new_blob)
    if delta.new_mode == SYMLINK:
        os.symlink(content, os.fsencode(file))
        return file
    if not delta.is_addition and delta.new_blob == delta.old_blob and delta.old_mode != SYMLINK:
        shutil.copy2(os.path.join(os.fsencode(repository.directory), delta.path), os.fsencode(file))
    else:
        file.write_bytes(_as_checked_out(repository, delta.path, content))
    file.chmod(_permissions(repository.directory, delta, file))
    return file


def _as_checked_out(repository: Git, path: bytes, content: bytes) -> bytes:
    """The content after the user's own filters and line endings, as a checkout would write it."""
    blob = repository.text("hash-object", "-w", "--no-filters", "--stdin", stdin=content)
    return repository.output("cat-file", "--filters", f"--path={os.fsdecode(path)}", blob)


def _permissions(top: Path, delta: Delta, file: Path) -> int:
    """Those of the file that is replaced, made executable or not as the change says."""
    mode = stat.S_IMODE(file.stat().st_mode)
    if not delta.is_addition and delta.old_mode != SYMLINK:
        mode = stat.S_IMODE(os.lstat(os.path.join(os.fsencode(top), delta.path)).st_mode)
    return mode | (mode & 0o444) >> 2 if delta.new_mode == "100755" else mode & ~0o111


def _check_unmoved(repository: Git, changes: Sequence[Delta]) -> None:
    """What was read a moment ago must still be there: somebody may be typing."""
    old = {delta.path: Entry(delta.old_mode, delta.old_blob) for delta in changes if not delta.is_addition}
    now = entries_on_disk(repository, old, old)
    moved = [shown(path) for path, entry in old.items() if now.get(path) != entry]
    if moved:
        raise UsageError(
            f"{', '.join(moved)} changed while the fix was applied; nothing was applied: try again"
        )


def _deletions_first(change: tuple[Delta, Path | None]) -> bool:
    """A file may become a folder, and the other way round."""
    return not change[0].is_deletion


@dataclass
class _Moves:
    """Renames within one file system, remembered so that they can be undone."""

    top: Path
    folder: Path
    done: list[tuple[bytes, bytes | None]] = field(default_factory=list)
    """Each changed path with the copy of what it was, None where there was nothing."""
    made: list[bytes] = field(default_factory=list)

    def make(self, delta: Delta, file: Path | None) -> None:
        target = self._target(delta.path)
        kept = None if delta.is_addition else os.fsencode(self.folder / f"old-{len(self.done)}")
        if kept is not None:
            _keep(target, kept)
        if file is None:
            os.unlink(target)
        else:
            self._make_room(delta.path, target)
            os.replace(os.fsencode(file), target)
        self.done.append((delta.path, kept))

    def undo(self) -> None:
        for path, kept in reversed(self.done):
            if kept is None:
                os.unlink(self._target(path))
            else:
                self._make_room(path, self._target(path))
                os.replace(kept, self._target(path))
        for folder in reversed(self.made):
            with contextlib.suppress(OSError):
                os.rmdir(folder)

    def remove_emptied_folders(self, changes: Sequence[Delta]) -> None:
        for delta in changes:
            parent = delta.path.rpartition(b"/")[0] if delta.is_deletion else b""
            with contextlib.suppress(OSError):
                while parent:
                    os.rmdir(self._target(parent))
                    parent = parent.rpartition(b"/")[0]

    def _target(self, path: bytes) -> bytes:
        return os.path.join(os.fsencode(self.top), path)

    def _make_room(self, path: bytes, target: bytes) -> None:
        if os.path.isdir(target) and not os.path.islink(target):
            _remove_empty_folders(target)
        parts = path.split(b"/")[:-1]
        for depth in range(1, len(parts) + 1):
            folder = self._target(b"/".join(parts[:depth]))
            if not os.path.isdir(folder):
                os.mkdir(folder)
                self.made.append(folder)


@contextmanager
def _all_or_nothing(top: Path, folder: Path) -> Iterator[_Moves]:
    moves = _Moves(top, folder)
    try:
        yield moves
    except BaseException:
        moves.undo()
        raise


def _keep(target: bytes, kept: bytes) -> None:
    try:
        os.link(target, kept, follow_symlinks=False)
    except OSError:
        shutil.copy2(target, kept, follow_symlinks=False)


def _remove_empty_folders(folder: bytes) -> None:
    for inner, _, _ in os.walk(folder, topdown=False):
        os.rmdir(inner)
