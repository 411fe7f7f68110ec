"""What a fix changed, by what the files are: their paths as checks see them, and their texts before and after."""

import os
from collections.abc import Sequence
from typing import Final

from fixloop.integrity.paths import Kind
from fixloop.repository.tree import Delta, texts
from workers.commands.claim import Claim

MOST_BYTES: Final = 1024 * 1024


def changed_of(claim: Claim, *wanted: Kind) -> Sequence[Delta]:
    """The changes of these kinds of files."""
    return [delta for delta in claim.changed if claim.kinds.get(delta.path, Kind.PRODUCT) in wanted]


def sides(claim: Claim, kind: Kind) -> tuple[dict[str, str], dict[str, str]]:
    """The texts of the changed files of one kind before and after, by their paths from where checks run."""
    changed = {path: one for one in changed_of(claim, kind) if (path := inside(claim, os.fsdecode(one.path)))}
    blobs = [side.blob for each in changed.values() for side in (each.old, each.new)]
    found = texts(claim.git, blobs, MOST_BYTES)
    old = {path: found[delta.old.blob] for path, delta in changed.items() if delta.old.blob in found}
    new = {path: found[delta.new.blob] for path, delta in changed.items() if delta.new.blob in found}
    return old, new


def inside(claim: Claim, path: str) -> str:
    """A path from the top as it is seen from where checks run; empty outside of that."""
    workspace = claim.ground.workspace
    folder = os.path.relpath(workspace.directory, workspace.path)
    if folder == ".":
        return path
    return path.removeprefix(f"{folder}/") if path.startswith(f"{folder}/") else ""
