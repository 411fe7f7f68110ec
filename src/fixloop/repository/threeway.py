"""The three-way merge of trees, file by file.

Owns what a merge may decide: a file that only one side changed, and lines that only one side changed.
Everything else is a conflict. Renames are not followed, which `git merge-tree` always does: a merge that is made again
after a crash must find each file old or new, never half renamed.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fixloop.repository.git import Git, shown
from fixloop.repository.mirror import Mirror
from fixloop.repository.tree import (
    ABSENT,
    GITLINK,
    SYMLINK,
    Delta,
    Entry,
    deltas,
    folders_of,
    tracked_in_tree,
)

NOTHING: Final = Entry(ABSENT, "0" * 40)
"""What a tree has of a path that is not in it."""


@dataclass(frozen=True)
class Merged:
    """A merge's tree, and the paths that could not be merged (then the tree is ours)."""

    tree: str
    conflicts: tuple[str, ...]


def merge_trees(mirror: Mirror, base: str, ours: str, theirs: str) -> Merged:
    """Bring what changed from `base` to `theirs` into `ours`, a tree; the others may be commits."""
    git = mirror.git
    current = tracked_in_tree(git, ours)
    wanted, conflicts = {}, set()
    for delta in deltas(git, base, theirs):
        entry = _merged(git, delta, current.get(delta.path, NOTHING))
        if entry is None:
            conflicts.add(delta.path)
        elif entry != current.get(delta.path, NOTHING):
            wanted[delta.path] = entry
    # Nor may a new file need a folder where a file stays, or the name of a folder whose files stay.
    leaving = {path for path, entry in wanted.items() if entry.mode == ABSENT}
    staying = current.keys() - leaving
    folders = {parent for path in staying for parent in folders_of(path)}
    for path in wanted.keys() - leaving - current.keys():
        if path in folders or not staying.isdisjoint(folders_of(path)):
            conflicts.add(path)
    if conflicts:
        return Merged(ours, tuple(sorted(map(shown, conflicts))))
    if not wanted:
        return Merged(ours, ())
    # Removals first: a file may become a folder.
    ordered = sorted(wanted.items(), key=lambda item: item[1].mode != ABSENT)
    lines = [b"%s %s\t%s\0" % (entry.mode.encode(), entry.blob.encode(), path) for path, entry in ordered]
    with git.empty_index() as own:
        own.run("read-tree", ours)
        own.run("update-index", "-z", "--index-info", stdin=b"".join(lines))
        return Merged(own.text("write-tree", "--missing-ok"), ())


def _merged(git: Git, delta: Delta, ours: Entry) -> Entry | None:
    """What becomes of one path; None where both sides changed the same lines, or one that has no lines."""
    base, theirs = Entry(delta.old_mode, delta.old_blob), Entry(delta.new_mode, delta.new_blob)
    if _same(ours, base):
        return theirs
    if _same(ours, theirs):
        return ours
    mode = ours.mode if base.mode == theirs.mode else theirs.mode
    if {ours.mode, base.mode, theirs.mode} & {ABSENT, GITLINK, SYMLINK}:
        return None
    with tempfile.TemporaryDirectory(prefix="fixloop-merge-") as folder:
        files = [Path(folder) / name for name in ("ours", "base", "theirs")]
        for file, side in zip(files, (ours, base, theirs), strict=True):
            file.write_bytes(git.output("cat-file", "blob", side.blob))
        done = git.run("merge-file", "-p", "--quiet", *files, accept=tuple(range(256)))
    if done.returncode:
        return None
    return Entry(mode, git.text("hash-object", "-w", "--no-filters", "--stdin", stdin=done.stdout))


def _same(one: Entry, other: Entry) -> bool:
    return one.mode == other.mode and (one.mode == ABSENT or one.blob == other.blob)
