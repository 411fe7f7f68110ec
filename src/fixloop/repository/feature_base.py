"""A snapshot's base: the commit that its failures are compared with, and its objects in the mirror.

Taken from the user's repository before anything is fixed; nothing that an agent commits moves it.
"""

from pathlib import Path

from fixloop.repository.git import Git
from fixloop.repository.merge_base import Base, base_of_checkout, base_of_remote
from fixloop.repository.mirror import Mirror
from fixloop.repository.snapshot import Snapshot, Unseen, mirror_of, take_snapshot_of_url


def with_base(snapshot: Snapshot, *, issue: int, cache: Path, wanted: str = "", ref: str = "") -> Snapshot:
    """
    The snapshot with its base, or with the reason why it has none; the mirror has the base's objects then.

    Args:
        wanted: A revision, or `none`; empty: the merge base with the default branch.
        ref: What is validated instead of the working tree.

    Raises:
        UsageError: `wanted` is no commit of the repository.
    """
    found = _found(snapshot, cache, wanted, ref)
    based = snapshot.model_copy(
        update={"base": found.commit, "base_name": found.name, "no_base": found.missing}
    )
    if based.base:
        bring_base(based, issue=issue, cache=cache)
    return based


def bring_base(snapshot: Snapshot, *, issue: int, cache: Path) -> Mirror:
    """
    The mirror of this machine, with the snapshot's base in it.

    Raises:
        InfrastructureError: the base cannot be had from here (any more).
    """
    mirror = mirror_of(snapshot, cache)
    if _holds(mirror, snapshot.base):
        return mirror
    if snapshot.is_url:
        take_snapshot_of_url(snapshot.source, snapshot.base, issue=0, cache=cache)
    else:
        mirror.receive(Git(Path(snapshot.source)), snapshot.base, f"{issue}/baseline")
    if not _holds(mirror, snapshot.base):
        raise Unseen(f"{snapshot.source} does not hold the base {snapshot.base[:12]}")
    return mirror


def _found(snapshot: Snapshot, cache: Path, wanted: str, ref: str) -> Base:
    if not snapshot.is_git:
        return Base(missing="the folder is not a git repository")
    if snapshot.is_url:
        return base_of_remote(mirror_of(snapshot, cache).git, snapshot.commit, wanted=wanted)
    git = Git(Path(snapshot.source))
    commit = snapshot.commit if ref else git.found("rev-parse", "-q", "--verify", "HEAD^{commit}")
    if not commit:
        return Base(missing="the repository has no commits yet")
    return base_of_checkout(git, commit, wanted=wanted, ref=ref)


def _holds(mirror: Mirror, commit: str) -> bool:
    """Whether the commit is there with its tree: a feature's history brings it, unless it is another branch's."""
    if not (mirror.path / "HEAD").is_file():
        return False
    return mirror.git.found("cat-file", "-t", f"{commit}^{{tree}}") == "tree"
