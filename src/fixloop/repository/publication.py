"""Publishes work as refs, and at a URL: the branch `fixloop/{issue}`, never over other people's commits.

In the user's repository it owns that branch and `refs/fixloop/{issue}/tip`; a checked-out branch is left alone.
Credentials for a URL are left to git (a credential helper, an SSH agent); nothing here sees them.
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from fixloop.errors import InfrastructureError, RefusedError, UsageError
from fixloop.repository.git import Git, GitFailure, one_line, without_userinfo
from fixloop.repository.mirror import Mirror
from fixloop.repository.snapshot import Snapshot, write_ref


@dataclass(frozen=True)
class Published:
    """Where the work so far is in the user's repository."""

    branch: str
    """Empty if there is none."""
    note: str = ""
    """One sentence if something was left alone."""


def publish(snapshot: Snapshot, *, issue: int, tip: str, mirror: Mirror) -> Published:
    """Write an issue's refs in a repository so that they show `tip`; repeating the call repairs what is missing."""
    if snapshot.is_url or not snapshot.is_git:
        return Published("")
    git, branch = Git(Path(snapshot.source)), f"fixloop/{issue}"
    if git.run("rev-list", "--quiet", "--objects", tip, "--", accept=(0, 128)).returncode:
        # Copy the missing objects; if the base is gone there, copy everything.
        base = ("rev-list", "--quiet", "-1", snapshot.commit, "--")
        has_base = git.run(*base, accept=(0, 128)).returncode == 0
        try:
            since = snapshot.commit if has_base else ""
            git.run("unpack-objects", "-q", stdin=mirror.pack(tip, since=since))
        except GitFailure:
            git.run("unpack-objects", "-q", stdin=mirror.pack(tip))
    note = _obstacle(git, branch, issue, tip)
    if not note:
        # The branch first: if a crash left the tip's ref ahead of it, the branch would look like a person's.
        try:
            write_ref(git, f"refs/heads/{branch}", tip)
        except UsageError as error:
            note = str(error)
    write_ref(git, f"refs/fixloop/{issue}/tip", tip)
    return Published("" if note else branch, note)


def _obstacle(git: Git, branch: str, issue: int, tip: str) -> str:
    now = git.found("rev-parse", "-q", "--verify", f"refs/heads/{branch}")
    if now in ("", tip):
        return ""
    place, left = "", f"and was left as it is; the work is refs/fixloop/{issue}/tip"
    for field in git.output("worktree", "list", "--porcelain", "-z").split(b"\0"):
        if field.startswith(b"worktree "):
            place = field.decode("utf-8", "replace").removeprefix("worktree ")
        if field == f"branch refs/heads/{branch}".encode() and place:
            return f"branch {branch} is checked out in {place} {left}"
    ours = git.found("rev-parse", "-q", "--verify", f"refs/fixloop/{issue}/tip")
    if now == ours or git.run("merge-base", "--is-ancestor", now, tip, accept=(0, 1)).returncode == 0:
        return ""
    return f"branch {branch} has commits that are not fixloop's {left}"


NO_EXTRAS = ("--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no")


def push(mirror: Mirror, *, issue: int, tip: str, ours: Collection[str]) -> str:
    """
    Set an issue's branch at the mirror's URL to `tip`, and return its name; repeating the call changes nothing.

    `ours`: commits that earlier workflows of the issue may have left there; only they are replaced. Raises
    RefusedError, or InfrastructureError if a retry may help.
    """
    git, url, branch = mirror.git, mirror.source, f"fixloop/{issue}"
    ref, place = f"refs/heads/{branch}", f"branch {branch} at {without_userinfo(url)}"
    try:
        rows = (line.partition("\t") for line in git.text("ls-remote", "--", url, ref).splitlines())
        now = next((commit for commit, _, name in rows if name == ref), "")
        if now == tip:
            return branch
        is_ours = not now or now in ours
        if not is_ours and git.run("merge-base", "--is-ancestor", now, tip, accept=(0, 1, 128)).returncode:
            raise RefusedError(
                f"{place} has commits that are not fixloop's and was left as it "
                f"is ({now[:12]}); rename or remove it there, then `fixloop push {issue}`"
            )
        # The lease: the branch is unchanged since it was read, or nothing happens.
        lease = f"--force-with-lease={ref}:{now}"
        done = git.run("push", "--porcelain", *NO_EXTRAS, lease, "--", url, f"{tip}:{ref}", accept=(0, 1))
    except GitFailure as error:
        said = str(error).partition(": ")[2]
        raise InfrastructureError(f"cannot push to {without_userinfo(url)}: {said}") from error
    if done.returncode == 0:
        return branch
    # The server's messages: the line of the refused ref, and its hook's output.
    out, err = (each.decode("utf-8", "replace").splitlines() for each in (done.stdout, done.stderr))
    refused = [line.split("\t", 2)[-1] for line in out if line.startswith("!")]
    told = [line.removeprefix("remote:").strip() for line in err if line.startswith("remote:")]
    why = one_line(without_userinfo(": ".join([*refused[:1], *filter(None, told[:5])] or err)))
    if "stale info" in why:
        raise InfrastructureError(f"{place} changed while it was pushed")
    raise RefusedError(f"{without_userinfo(url)} refuses branch {branch}: {why}")
