"""The commit a feature began from: what its failures are compared with.

Owns which branch is the default one, and the merge base with it. Reads git; changes nothing.
"""

from typing import Final, NamedTuple

from fixloop.errors import UsageError
from fixloop.repository.git import Git

NONE: Final = "none"
"""What `--base` takes where nothing is to be compared."""
_USUAL: Final = ("main", "master", "trunk")


class Base(NamedTuple):
    """A commit to compare with, or why there is none."""

    commit: str = ""
    name: str = ""
    """The branch or revision it was found by: `origin/main`."""
    missing: str = ""
    """One clause; empty where there is a commit, and where nobody wanted one."""


def base_of_checkout(git: Git, commit: str, *, wanted: str = "", ref: str = "") -> Base:
    """
    The base of what a checkout holds, or of one of its refs.

    Args:
        commit: HEAD, or the commit that `ref` names.
        wanted: A revision, or `none`; empty: the merge base with the default branch.
        ref: The branch, tag or commit that is validated instead of the working tree.

    Raises:
        UsageError: `wanted` is no commit of this repository.
    """
    if wanted:
        return _wanted(git, wanted, wanted)
    default = _default_branch(git)
    if not default:
        return Base(
            missing="the repository has no default branch (main, master, trunk); name one with --base"
        )
    present = ref or git.found("symbolic-ref", "-q", "--short", "HEAD")
    if present and present == _short(default):
        return Base(commit, present)
    return _merge_base(git, commit, default, _shown(default))


def base_of_remote(git: Git, commit: str, *, wanted: str = "") -> Base:
    """
    The base of a commit in the mirror of a URL, whose branches stand below `refs/remote`.

    Raises:
        UsageError: `wanted` is no commit of it.
    """
    if wanted:
        names = (f"refs/remote/{wanted}", f"refs/tags/{wanted}", wanted)
        return _wanted(git, next((name for name in names if _commit(git, name)), wanted), wanted)
    return _merge_base(git, commit, "refs/remote/HEAD", "the default branch")


def _wanted(git: Git, revision: str, shown: str) -> Base:
    if shown == NONE:
        return Base()
    commit = _commit(git, revision)
    if not commit:
        raise UsageError(f"{git.directory} has no branch, tag or commit {shown!r} to take as the base")
    return Base(commit, shown)


def _default_branch(git: Git) -> str:
    """The full name of a ref: what origin calls its HEAD, else a branch with a usual name, here or there."""
    named = git.found("symbolic-ref", "-q", "refs/remotes/origin/HEAD")
    configured = git.found("config", "--get", "init.defaultBranch")
    names = dict.fromkeys(filter(None, (*_USUAL, configured)))
    refs = [named, *(f"{place}/{name}" for name in names for place in ("refs/heads", "refs/remotes/origin"))]
    return next((ref for ref in refs if ref and _commit(git, ref)), "")


def _merge_base(git: Git, commit: str, default: str, shown: str) -> Base:
    found = git.found("merge-base", commit, default)
    if found:
        return Base(found, shown)
    if git.found("rev-parse", "--is-shallow-repository") == "true":
        return Base(
            missing=f"the clone is too shallow to reach {shown}; `git fetch --unshallow` completes it"
        )
    return Base(missing=f"the feature has no commit in common with {shown}; name a base with --base")


def _commit(git: Git, revision: str) -> str:
    return git.found("rev-parse", "-q", "--verify", "--end-of-options", f"{revision}^{{commit}}")


def _short(ref: str) -> str:
    """The branch's own name, without where it lies."""
    return ref.removeprefix("refs/heads/").removeprefix("refs/remotes/origin/")


def _shown(ref: str) -> str:
    return ref.removeprefix("refs/heads/").removeprefix("refs/remotes/")
