"""Merges trees three-way, and takes fixes from elsewhere: a directory, the user's checkout, or a commit.

A merge only decides files and lines that one side changed; everything else is a conflict. Renames are not followed, as
`git merge-tree` always does: a merge that is repeated after a crash must find each file old or new, never half renamed.
Each fix is a commit in the mirror, whose parent is the work so far.
"""

import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fixloop.errors import UsageError
from fixloop.repository import tree as trees
from fixloop.repository.change import Change, change_between
from fixloop.repository.copied import DATE
from fixloop.repository.git import Git, shown
from fixloop.repository.identity import is_repository, top_of
from fixloop.repository.mirror import Mirror

NOTHING: Final = trees.Entry(trees.ABSENT, "0" * 40)
"""The entry of a path that is not in a tree."""


@dataclass(frozen=True)
class Merged:
    """A merged tree, and the paths that could not be merged (then the tree is ours)."""

    tree: str
    conflicts: tuple[str, ...]


def merge_trees(mirror: Mirror, base: str, ours: str, theirs: str) -> Merged:
    """Apply the changes from `base` to `theirs` to `ours`, a tree; the others may be commits."""
    git = mirror.git
    current = trees.tracked_in_tree(git, ours)
    wanted, conflicts = {}, set()
    for delta in trees.deltas(git, base, theirs):
        entry = _merged(git, delta, current.get(delta.path, NOTHING))
        if entry is None:
            conflicts.add(delta.path)
        elif entry != current.get(delta.path, NOTHING):
            wanted[delta.path] = entry
    # Nor may a new file need a folder in place of a remaining file, or the name of a folder with remaining files.
    leaving = {path for path, entry in wanted.items() if entry.mode == trees.ABSENT}
    staying = current.keys() - leaving
    folders = {parent for path in staying for parent in trees.folders_of(path)}
    for path in wanted.keys() - leaving - current.keys():
        if path in folders or not staying.isdisjoint(trees.folders_of(path)):
            conflicts.add(path)
    if conflicts or not wanted:
        return Merged(ours, tuple(sorted(map(shown, conflicts))))
    return Merged(trees.tree_with(git, ours, wanted), ())


def _merged(git: Git, delta: trees.Delta, ours: trees.Entry) -> trees.Entry | None:
    """The merged entry of one path; None if both sides changed the same lines, or if it has no lines."""
    base, theirs = delta.old, delta.new
    if _same(ours, base):
        return theirs
    if _same(ours, theirs):
        return ours
    mode = ours.mode if base.mode == theirs.mode else theirs.mode
    if {ours.mode, base.mode, theirs.mode} & {trees.ABSENT, trees.GITLINK, trees.SYMLINK}:
        return None
    with tempfile.TemporaryDirectory(prefix="fixloop-merge-") as folder:
        files = [Path(folder) / name for name in ("ours", "base", "theirs")]
        for file, side in zip(files, (ours, base, theirs), strict=True):
            file.write_bytes(git.output("cat-file", "blob", side.blob))
        done = git.run("merge-file", "-p", "--quiet", *files, accept=tuple(range(256)))
    if done.returncode:
        return None
    return trees.Entry(mode, git.text("hash-object", "-w", "--no-filters", "--stdin", stdin=done.stdout))


def _same(one: trees.Entry, other: trees.Entry) -> bool:
    return one.mode == other.mode and (one.mode == trees.ABSENT or one.blob == other.blob)


def commit_of_directory(
    directory: Path,
    parent: str,
    mirror: Mirror,
    message: str,
    *,
    also_tracked: Mapping[bytes, trees.Entry] | None = None,
    without: Collection[bytes] = frozenset(),
) -> Change:
    """Take a directory as it is as a change of `parent`; `parent` itself if nothing differs."""
    git = mirror.over(directory)
    tracked = {**(also_tracked or {}), **trees.tracked_in_tree(git, parent)}
    tree = trees.write_tree(git, tracked=tracked, without=without)
    return _kept_change(mirror, parent, tree, message)


def commit_of_patch(patch: bytes, parent: str, mirror: Mirror, message: str) -> Change:
    """Apply a unified diff to `parent` as its next change; `parent` itself if it changes nothing. UsageError if git
    cannot apply it unchanged: nothing is merged, and no file outside the tree is named or touched."""
    with tempfile.TemporaryDirectory(prefix="fixloop-patch-") as folder:
        top = Path(folder) / "tree"
        top.mkdir()
        git = mirror.over(top).with_index(Path(folder) / "index")
        git.run("read-tree", parent)
        done = git.run("apply", "--cached", "--whitespace=nowarn", "-", stdin=patch, accept=(0, 1, 128))
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["git says nothing"]
            cause = said[0].removeprefix("error: ").removeprefix("fatal: ")
            raise UsageError(f"the patch does not apply to {parent[:12]}: {cause}")
        tree = git.text("write-tree")
    return _kept_change(mirror, parent, tree, message)


def take_checkout(
    path: Path, *, base: str, tip: str, mirror: Mirror, message: str = "fixed in the checkout\n"
) -> Change:
    """
    Take the checkout (or plain folder) exactly as it is as the next change of `tip`.

    Fixes between the snapshot `base` and `tip` that the checkout lacks are left out and named.
    """
    top, _ = top_of(path)
    tree = import_folder(top, base, mirror)
    there = trees.tracked_in_tree(mirror.git, tree)
    fixes = trees.deltas(mirror.git, base, tip)
    left_out = [fix for fix in fixes if there.get(fix.path, NOTHING) != fix.new]
    change = _kept_change(mirror, tip, tree, message)
    return change.model_copy(update={"left_out": tuple(shown(fix.path) for fix in left_out)})


def merge_checkout(
    path: Path, *, base: str, tip: str, mirror: Mirror, message: str = "fixed in the checkout\n"
) -> Change:
    """Merge the checkout's (or plain folder's) changes since the snapshot `base` onto `tip`, or refuse them."""
    top, _ = top_of(path)
    current = import_folder(top, base, mirror)
    merged = merge_trees(mirror, base, current, tip)
    advice = "mend it in the directory that holds those fixes, which `fixloop inbox` names"
    _refuse(merged, "the checkout and the fixes so far", advice)
    return _kept_change(mirror, tip, merged.tree, message)


def rebased(tip: str, change: Change, *, base: str, mirror: Mirror, message: str) -> Change:
    """Rebase a change of `base` onto a later commit of the same work, or refuse it."""
    if change.commit == base or tip == base:
        return change if tip == base else Change(commit=tip, tree=trees.tree_id(mirror.git, tip))
    merged = merge_trees(mirror, base, trees.tree_id(mirror.git, tip), change.commit)
    _refuse(merged, f"this work and what others did since {base[:12]}", f"bring it onto {tip[:12]}")
    return _kept_change(mirror, tip, merged.tree, message)


def _refuse(merged: Merged, both: str, advice: str) -> None:
    if merged.conflicts:
        files = ", ".join(merged.conflicts)
        raise UsageError(f"{both} changed the same lines in {files}; nothing was taken: {advice}")


def resolve_descendant(rev: str, *, path: Path, tip: str, mirror: Mirror) -> Change:
    """Take a commit of the user's repository, which must descend from `tip`."""
    top, _ = top_of(path)
    git = Git(top)
    commit = git.commit(rev)
    if not commit:
        raise UsageError(f"{top} has no branch, tag or commit {rev!r}")
    mirror.receive(git, commit, "received")
    return change_onto(tip, commit, rev, mirror)


def change_onto(tip: str, commit: str, rev: str, mirror: Mirror) -> Change:
    """The change of a commit in the mirror, which was named as `rev`. UsageError: it does not descend from `tip`."""
    if mirror.git.run("merge-base", "--is-ancestor", tip, commit, accept=(0, 1)).returncode:
        raise UsageError(f"{rev} does not build on the work so far ({tip[:12]}); rebase it onto that commit")
    return change_between(mirror.git, tip, commit)


def import_folder(top: Path, base: str, mirror: Mirror) -> str:
    """The tree of a checkout or plain folder as it is now, with all its objects in the mirror."""
    if not is_repository(top):
        git = mirror.over(top)
        return trees.write_tree(git, tracked=trees.tracked_in_tree(git, base))
    git = Git(top)
    # Files in the snapshot count as tracked, even if the user's own repository ignores them.
    tracked = {**trees.tracked_in_tree(mirror.git, base), **trees.tracked_in_index(git)}
    tree = trees.write_tree(git, tracked=tracked)
    commit = trees.commit_tree(git, tree, [], "fixloop: the checkout\n", dated=DATE)
    mirror.receive(git, commit, "checkout")
    return tree


def _kept_change(mirror: Mirror, parent: str, tree: str, message: str) -> Change:
    git = mirror.git
    if tree == trees.tree_id(git, parent):
        return Change(commit=parent, tree=tree)
    commit = trees.commit_tree(git, tree, [parent], message)
    mirror.keep(commit)
    return change_between(git, parent, commit)
