"""The files that a fix changed, by kind: their paths as checks see them, and their old and new texts."""

import os
from collections.abc import Sequence
from typing import Final

from fixloop.integrity.paths import Kind
from fixloop.repository.tree import Delta, texts
from workers.commands.claim import Claim

MOST_BYTES: Final = 1024 * 1024


def changed_of(claim: Claim, *wanted: Kind) -> Sequence[Delta]:
    """The changed files of these kinds."""
    return [delta for delta in claim.changed if claim.kinds.get(delta.path, Kind.PRODUCT) in wanted]


def sides(claim: Claim, kind: Kind) -> tuple[dict[str, str], dict[str, str]]:
    """The old and new texts of the changed files of one kind, by path from where checks run."""
    changed = {path: one for one in changed_of(claim, kind) if (path := inside(claim, os.fsdecode(one.path)))}
    blobs = [side.blob for each in changed.values() for side in (each.old, each.new)]
    found = texts(claim.git, blobs, MOST_BYTES)
    old = {path: found[delta.old.blob] for path, delta in changed.items() if delta.old.blob in found}
    new = {path: found[delta.new.blob] for path, delta in changed.items() if delta.new.blob in found}
    return old, new


def inside(claim: Claim, path: str) -> str:
    """A path from the repository root relative to where checks run; empty if it is outside."""
    workspace = claim.ground.workspace
    folder = os.path.relpath(workspace.directory, workspace.path)
    if folder == ".":
        return path
    return path.removeprefix(f"{folder}/") if path.startswith(f"{folder}/") else ""
