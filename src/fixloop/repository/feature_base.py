"""Finds the commit a feature started from, with which its failures are compared, and brings it into the mirror.

Owns the choice of the default branch, and the merge base with it. It is taken from the user's repository before
anything is fixed; no agent's commit changes it.
"""

from pathlib import Path
from typing import Final, NamedTuple

from fixloop.errors import UsageError
from fixloop.repository.git import Git
from fixloop.repository.mirror import Mirror
from fixloop.repository.snapshot import Snapshot, Unseen, mirror_of, take_snapshot_of_url

NONE: Final = "none"
"""The value of `--base` for no comparison."""
_ORIGINS: Final = "refs/remotes/origin/HEAD"
_USUAL: Final = ("main", "master", "trunk")


class _Base(NamedTuple):
    """A commit to compare with, or why there is none: fields of a `Snapshot`."""

    base: str = ""
    base_name: str = ""
    no_base: str = ""


def with_base(snapshot: Snapshot, *, issue: int, cache: Path, wanted: str = "") -> Snapshot:
    """
    The snapshot with its base, which is then in the mirror, or with the reason why it has none.

    `wanted`: a revision, or `none`; empty: the merge base with the default branch.
    """
    based = snapshot.model_copy(update=_base_of(snapshot, cache, wanted)._asdict())
    if based.base and based.base != snapshot.commit:
        bring_base(based, issue=issue, cache=cache)
    return based


def bring_base(snapshot: Snapshot, *, issue: int, cache: Path) -> Mirror:
    """This machine's mirror, with the snapshot's base. InfrastructureError: it is not available."""
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


def _base_of(snapshot: Snapshot, cache: Path, wanted: str) -> _Base:
    """In the checkout, or in the mirror of a URL, whose branches are below `refs/remote`."""
    if not snapshot.is_git:
        return _Base(no_base="the folder is not a git repository")
    git = mirror_of(snapshot, cache).git if snapshot.is_url else Git(Path(snapshot.source))
    commit = git.commit() if snapshot.changed else snapshot.commit
    if not commit:
        return _Base(no_base="the repository has no commits yet")
    if wanted == NONE:
        return _Base()
    if wanted:
        names = (f"refs/remote/{wanted}", f"refs/tags/{wanted}", wanted) if snapshot.is_url else (wanted,)
        found = next(filter(None, map(git.commit, names)), "")
        if not found:
            raise UsageError(f"{git.directory} has no branch, tag or commit {wanted!r} to take as the base")
        return _Base(found, wanted)
    if snapshot.is_url:
        return _merge_base(git, commit, "refs/remote/HEAD", "the default branch")
    # The branch that origin names as its HEAD, else one with a usual name, local or remote.
    usual = dict.fromkeys(filter(None, (*_USUAL, git.setting("init.defaultbranch"))))
    places = ("refs/heads", "refs/remotes/origin")
    refs = [_ORIGINS, *(f"{place}/{name}" for name in usual for place in places)]
    listed = git.found("for-each-ref", "--format=%(refname)%00%(symref)", *refs).splitlines()
    present_refs = dict(line.split("\0") for line in listed)
    default = next((present_refs[ref] or ref for ref in refs if ref in present_refs), "")
    if not default:
        return _Base(
            no_base="the repository has no default branch (main, master, trunk); name one with --base"
        )
    local = default.removeprefix("refs/heads/")
    if snapshot.branch and snapshot.branch == local.removeprefix("refs/remotes/origin/"):
        return _Base(commit, snapshot.branch)
    return _merge_base(git, commit, default, local.removeprefix("refs/remotes/"))


def _merge_base(git: Git, commit: str, default: str, shown: str) -> _Base:
    if found := git.found("merge-base", commit, default):
        return _Base(found, shown)
    why = f"the feature has no commit in common with {shown}; name a base with --base"
    if git.found("rev-parse", "--is-shallow-repository") == "true":
        why = f"the clone is too shallow to reach {shown}; `git fetch --unshallow` completes it"
    return _Base(no_base=why)


def _holds(mirror: Mirror, commit: str) -> bool:
    """Whether the commit is there with its tree: a feature's history includes it, unless it is of another branch."""
    if not (mirror.path / "HEAD").is_file():
        return False
    return mirror.git.found("cat-file", "-t", f"{commit}^{{tree}}") == "tree"
