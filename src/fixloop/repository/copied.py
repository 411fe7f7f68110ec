"""Files that accompany a snapshot although git does not track them: needed ignored files, the content of submodules.

They are a separate commit without references, kept as `refs/fixloop/{issue}/copied`. Its files are written into each
workspace next to the tracked ones and, like all ignored files, are no part of a tree's hash or of a fix.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.repository import tree as trees
from fixloop.repository.generated import absent_version_files, needed_and_ignored
from fixloop.repository.git import Git, shown
from fixloop.repository.mirror import Mirror

DATE: Final = "2000-01-01T00:00:00+0000"
"""The date of commits without a parent, so that the same tree gives the same commit."""
LIMIT_BYTES: Final = 32 * 1024 * 1024
"""For a module that is copied unasked; the largest extension modules of well-known packages have about 20 MB."""
SECRET: Final = re.compile(rb"secret|credential|passw|private|(^|_)local(_|\.|settings)", re.IGNORECASE)
"""Names of modules that a person may want to keep private; they are copied only if `[workspace] copy` says so."""
SHOWN: Final = 3


class Copied(NamedTuple):
    """The copied files, and the messages about them: fields of a `Snapshot`."""

    copied: str
    submodules: tuple[str, ...]
    notes: tuple[str, ...]


class Wanted(NamedTuple):
    globs: Sequence[str] = ()
    """The patterns of `[workspace] copy`, relative to `directory`."""
    directory: Path = Path()
    """Where commands run."""
    is_ref: bool = False
    """Committed work is validated, not the checkout's content: only a submodule at the same commit can be filled."""


def gather(git: Git, mirror: Mirror, commit: str, wanted: Wanted) -> Copied:
    """Store the files that accompany `commit` in the mirror; `git` is at the folder's top, its ignore rules apply."""
    tracked = trees.tracked_in_tree(mirror.git, commit)
    found = needed_and_ignored(git, tracked, wanted.directory)
    copied: dict[bytes, str] = {}
    refused = []
    for path, other in sorted(found.items()):
        how = "compiled from" if path.endswith(b".mo") else "imported by"
        use, why = f"{'read by' if other == b'pytest' else how} {shown(other)}", ""
        if SECRET.search(path.rpartition(b"/")[2]):
            why = "its name sounds like a secret's"
        elif os.path.getsize(os.path.join(os.fsencode(git.directory), path)) > LIMIT_BYTES:
            why = f"it is larger than {LIMIT_BYTES // 1024 // 1024} MB"
        if why:
            refused.append(
                f"does not copy {shown(path)}, ignored by git and {use}, because {why}; "
                f'`copy = ["{shown(path)}"]` below [workspace] takes it along'
            )
        else:
            copied[path] = use
    filled, empty = _submodules(git.directory, tracked, wanted)
    asked = [path for path in trees.globbed(git, wanted.globs, wanted.directory) if path not in tracked]
    files = {*copied, *filled, *(path for path in asked if b"node_modules" not in path.split(b"/"))}
    made = ""
    if files:
        tree = trees.tree_of_files(mirror.over(git.directory), files)
        made = trees.commit_tree(mirror.git, tree, [], "fixloop: copied along\n", dated=DATE)
        mirror.keep(made)
    notes = tuple(_notes(git.directory, copied, refused[:SHOWN], empty))
    return Copied(made, tuple(map(shown, empty)), notes)


def copied_paths(mirror: Mirror, commit: str) -> frozenset[bytes]:
    """The files of such a commit; none without a commit."""
    return frozenset(trees.tracked_in_tree(mirror.git, commit)) if commit else frozenset()


def lay_copied(top: Path, mirror: Mirror, commit: str) -> None:
    """Write the files into a checkout that has nothing in their places yet."""
    if not commit:
        return
    with mirror.over(top).empty_index() as own:
        own.run("read-tree", commit)
        own.run("checkout-index", "--all", "--quiet", accept=(0, 1, 128))


def _notes(
    top: Path, copied: Mapping[bytes, str], refused: Collection[str], empty: Collection[bytes]
) -> Iterator[str]:
    if copied:
        first, *others = copied
        if others:
            yield f"copies {shown(first)} and {len(others)} more: ignored by git, {copied[first]} and others"
        else:
            yield f"copies {shown(first)}: ignored by git and {copied[first]}"
    yield from refused
    file = top / "pyproject.toml"
    if file.is_file():
        for said in absent_version_files(top, file.read_text(errors="replace")):
            yield f"{said} (`pip install -e .` here, or a `setup` below [workspace])"
    if empty:
        names = " ".join(shown(path) for path in sorted(empty)[:SHOWN])
        more = f" and {len(empty) - SHOWN} more" if len(empty) > SHOWN else ""
        yield (
            f"submodules are empty folders where checks and fixers run: {names}{more}; "
            f"`git submodule update --init --recursive` in the checkout fills them"
        )


def _submodules(
    top: Path, tracked: Mapping[bytes, trees.Entry], wanted: Wanted
) -> tuple[list[bytes], list[bytes]]:
    """The files of checked-out submodules, as they are on disk, and the paths of all other submodules."""
    filled: list[bytes] = []
    empty: list[bytes] = []
    excluded = [f"--exclude={name}" for name in trees.CACHES]
    links = [(path, entry.blob) for path, entry in tracked.items() if entry.mode == trees.GITLINK]
    for path, recorded in links:
        folder = top / os.fsdecode(path)
        inner = Git(folder)
        if not os.path.lexists(folder / ".git") or (wanted.is_ref and inner.commit() != recorded):
            empty.append(path)
            continue
        index = trees.tracked_in_index(inner)
        listed = trees.records(inner.output("ls-files", "-o", "-z", "--exclude-standard", *excluded))
        own = [name for name, entry in index.items() if entry.mode != trees.GITLINK]
        below, missing = _submodules(folder, index, wanted)
        filled += [path + b"/" + name for name in (*trees.files_only(inner, [*own, *listed]), *below)]
        empty += [path + b"/" + name for name in missing]
    return filled, empty
