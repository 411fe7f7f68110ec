"""The way out to a URL: the branch `fixloop/{issue}` there, without ever covering what somebody else has pushed.

Credentials are git's business (a credential helper, an SSH agent); nothing here sees them.
"""

from collections.abc import Collection

from fixloop.errors import InfrastructureError, RefusedError
from fixloop.repository.git import GitFailure, one_line, without_userinfo
from fixloop.repository.mirror import Mirror

NO_EXTRAS = ("--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no")


def push(mirror: Mirror, *, issue: int, tip: str, ours: Collection[str]) -> str:
    """
    Make the branch of an issue at the mirror's URL show `tip`; the same call again changes nothing.

    Args:
        ours: commits that earlier workflows of the issue may have left there; only they are replaced.

    Returns:
        The branch's name.

    Raises:
        RefusedError: the branch has somebody else's commits, or the server does not take it.
        InfrastructureError: the server cannot be reached or lets nobody in, or another push was faster.
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
        # The lease: it is still what was looked at a moment ago, or nothing happens.
        lease = f"--force-with-lease={ref}:{now}"
        done = git.run("push", "--porcelain", *NO_EXTRAS, lease, "--", url, f"{tip}:{ref}", accept=(0, 1))
    except GitFailure as error:
        said = str(error).partition(": ")[2]
        raise InfrastructureError(f"cannot push to {without_userinfo(url)}: {said}") from error
    if done.returncode == 0:
        return branch
    # The server's own words: the refused ref's line, and what its hook printed.
    out, err = (each.decode("utf-8", "replace").splitlines() for each in (done.stdout, done.stderr))
    refused = [line.split("\t", 2)[-1] for line in out if line.startswith("!")]
    told = [line.removeprefix("remote:").strip() for line in err if line.startswith("remote:")]
    why = one_line(without_userinfo(": ".join([*refused[:1], *filter(None, told[:5])] or err)))
    if "stale info" in why:
        raise InfrastructureError(f"{place} changed while it was pushed")
    raise RefusedError(f"{without_userinfo(url)} refuses branch {branch}: {why}")
