"""The way back as refs: the branch `fixloop/{issue}` and `refs/fixloop/{issue}/tip` in the user's repository.

Owns those two names and moves nothing else. A branch that somebody has checked out or committed to is left alone.
"""

from dataclasses import dataclass
from pathlib import Path

from fixloop.errors import UsageError
from fixloop.repository.git import Git, GitFailure
from fixloop.repository.mirror import Mirror
from fixloop.repository.snapshot import Snapshot, write_ref


@dataclass(frozen=True)
class Published:
    """Where the work so far can be found in the user's repository."""

    branch: str
    """Empty where there is none."""
    note: str = ""
    """One sentence when something was left alone."""


def publish(snapshot: Snapshot, *, issue: int, tip: str, mirror: Mirror) -> Published:
    """
    Write the refs of an issue so that they show `tip`; the same call again repairs what is missing.

    A plain folder and a URL have no refs to write: nothing happens.

    Raises:
        UsageError: the repository cannot be written.
    """
    if snapshot.is_url or not snapshot.is_git:
        return Published("")
    git, branch = Git(Path(snapshot.source)), f"fixloop/{issue}"
    if git.run("rev-list", "--quiet", "--objects", tip, "--", accept=(0, 128)).returncode:
        # Copy what is lacking; the base may be gone there, then everything is copied.
        base = ("rev-list", "--quiet", "-1", snapshot.commit, "--")
        has_base = git.run(*base, accept=(0, 128)).returncode == 0
        try:
            since = snapshot.commit if has_base else ""
            git.run("unpack-objects", "-q", stdin=mirror.pack(tip, since=since))
        except GitFailure:
            git.run("unpack-objects", "-q", stdin=mirror.pack(tip))
    note = _in_the_way(git, branch, issue, tip)
    if not note:
        # The branch first: were the tip's ref ahead of it after a crash, the branch would look like a person's.
        try:
            write_ref(git, f"refs/heads/{branch}", tip)
        except UsageError as error:
            note = str(error)
    write_ref(git, f"refs/fixloop/{issue}/tip", tip)
    return Published("" if note else branch, note)


def _in_the_way(git: Git, branch: str, issue: int, tip: str) -> str:
    now = git.found("rev-parse", "-q", "--verify", f"refs/heads/{branch}")
    if now in ("", tip):
        return ""
    place = ""
    for field in git.output("worktree", "list", "--porcelain", "-z").split(b"\0"):
        if field.startswith(b"worktree "):
            place = field.decode("utf-8", "replace").removeprefix("worktree ")
        if field == f"branch refs/heads/{branch}".encode() and place:
            return (
                f"branch {branch} is checked out in {place} and was left as it is; "
                f"the work is refs/fixloop/{issue}/tip"
            )
    ours = git.found("rev-parse", "-q", "--verify", f"refs/fixloop/{issue}/tip")
    if now == ours or git.run("merge-base", "--is-ancestor", now, tip, accept=(0, 1)).returncode == 0:
        return ""
    return (
        f"branch {branch} has commits that are not fixloop's and was left as it is; "
        f"the work is refs/fixloop/{issue}/tip"
    )
