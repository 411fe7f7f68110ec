"""The snapshot: the user's content as a commit; checkout, index and HEAD stay unchanged.

Owns `refs/fixloop/{issue}/base` in the user's repository; writes nothing else there, and nothing in a plain folder.
"""

import contextlib
import re
import socket
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from fixloop.errors import FixloopError, InfrastructureError, UsageError
from fixloop.repository import tree as trees
from fixloop.repository.copied import DATE, Wanted, gather
from fixloop.repository.git import Git, GitFailure, LockHeld, one_line, shown
from fixloop.repository.identity import is_repository, public_address, top_of
from fixloop.repository.mirror import Mirror, remove_when_old

MESSAGE: Final = "fixloop: what was there when it began\n"
SUBJECT_CHARACTERS: Final = 100
COMMIT: Final = re.compile(r"[0-9a-f]{7,64}")


class Unseen(InfrastructureError):
    """The repository, or the requested commit in it, is not accessible from this machine."""


class Snapshot(BaseModel):
    """What is validated, and its origin."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="ignore")

    source: str
    """The real path of the top folder, or the URL."""
    subdirectory: str = ""
    """Where commands run, relative to the top."""
    commit: str
    tree: str
    is_git: bool = True
    is_url: bool = False
    changed: bool = False
    """Uncommitted work is included."""
    branch: str = ""
    """The checked-out branch, or the ref; empty if HEAD is on no branch."""
    subject: str = ""
    """The first line of the commit that the work is based on, cut."""
    author: str = ""
    """The author of that commit."""
    copied: str = ""
    """A commit with untracked files that accompany the snapshot, see `copied`."""
    copy_globs: tuple[str, ...] = ()
    """The patterns of `[workspace] copy`, to retake a plain folder whose mirror is lost."""
    submodules: tuple[str, ...] = ()
    """Submodules that are empty folders in a workspace."""
    notes: tuple[str, ...] = ()
    """Messages, shown once, about copied and missing files."""
    base: str = ""
    """The commit whose failures are not the feature's; empty: there is none, see `feature_base`."""
    base_name: str = ""
    """The branch or revision by which it was found."""
    no_base: str = ""
    """Why there is none although one was requested, in one clause."""
    origin: str = ""
    """The address of the remote `origin` without credentials; empty if there is none, or it is local."""


class _Described(NamedTuple):
    """A commit."""

    commit: str = ""
    tree: str = ""
    date: str = ""
    """The committer's, ISO 8601."""
    subject: str = ""
    author: str = ""


def take_snapshot(
    path: Path, *, issue: int, cache: Path, copy_globs: Sequence[str] = (), ref: str | None = None
) -> Snapshot:
    """
    Take the content of `path`, with uncommitted and untracked, not ignored, files; or the committed `ref`.

    The same content gives the same commit. It is kept in the machine's mirror and as `refs/fixloop/{issue}/base`;
    without a workflow, with issue 0, only in the mirror, until it is pruned.
    """
    top, subdirectory = top_of(path)
    mirror = Mirror(cache, str(top))
    if not is_repository(top):
        return _plain(top, mirror, issue, copy_globs, ref)
    git = Git(top)
    head = _described(git, "HEAD")
    if not head.commit and not git.found("rev-parse", "--git-dir"):
        raise UsageError(f"git cannot read the repository {top}; `git status` there says why")
    taken = _described(git, git.commit(ref)) if ref else head
    if ref and not taken.commit:
        raise UsageError(f"{top} has no branch, tag or commit {ref!r}")
    commit, tree = (taken.commit, taken.tree) if ref else _imported(git, head)
    if subdirectory and git.found("cat-file", "-t", f"{commit}:{subdirectory}") != "tree":
        told = f"the folder {subdirectory} is not part of the snapshot: it is empty or ignored there"
        raise UsageError(told)
    mirror.receive(git, commit, _ref(issue))
    wanted = Wanted(copy_globs, top / subdirectory, is_ref=ref is not None)
    gathered = gather(git, mirror, commit, wanted)
    if issue:
        # Both commits get refs in the user's repository, from which other machines fetch them.
        write_ref(git, f"refs/fixloop/{_ref(issue)}", commit)
    if issue and gathered.copied:
        _lend(mirror, git, gathered.copied)
        write_ref(git, f"refs/fixloop/{issue}/copied", gathered.copied)
    return Snapshot(
        source=str(top),
        subdirectory=subdirectory,
        commit=commit,
        tree=tree,
        changed=not ref and commit != head.commit,
        branch=ref or git.found("symbolic-ref", "-q", "--short", "HEAD"),
        subject=taken.subject,
        author=taken.author,
        origin=public_address(git.setting("remote.origin.url")),
        **gathered._asdict(),
    )


def take_snapshot_of_url(url: str, ref: str | None = None, *, issue: int, cache: Path) -> Snapshot:
    """Take `ref` (a branch, a tag or a commit; default: the remote's HEAD) of a repository given as a URL."""
    if not is_url(url):
        raise UsageError(f"{url!r} is not a git URL; https, ssh and file are known")
    parts = urlsplit(url)
    if parts.password is not None or (parts.scheme in ("http", "https") and parts.username is not None):
        raise UsageError("the repository's URL carries credentials; leave them to git's credential helper")
    mirror = Mirror(cache, url)
    mirror.ensure()
    commit = _fetched(mirror, url, ref)
    mirror.keep(commit, _ref(issue))
    submodules: tuple[str, ...] = ()
    if mirror.git.found("cat-file", "-t", f"{commit}:.gitmodules"):
        # All files are listed only if a submodule is declared.
        listed = trees.tracked_in_tree(mirror.git, commit).items()
        submodules = tuple(shown(path) for path, entry in listed if entry.mode == trees.GITLINK)
    note = (
        f"submodules are empty folders where checks and fixers run: {' '.join(submodules[:3])}; "
        "clone with `--recurse-submodules` and name that folder instead of the URL"
    )
    taken = _described(mirror.git, commit)
    return Snapshot(
        source=url,
        commit=commit,
        tree=taken.tree,
        is_url=True,
        branch=ref or "",
        subject=taken.subject,
        author=taken.author,
        submodules=submodules,
        notes=(note,) if submodules else (),
        origin=public_address(url),
    )


def commit_of_source(snapshot: Snapshot, rev: str, mirror: Mirror) -> str:
    """A branch, tag or commit of the submitted repository, brought into its mirror. UsageError: there is none with that
    name; also raises Unseen."""
    if snapshot.is_url:
        return _fetched(mirror, snapshot.source, rev)
    git = Git(Path(snapshot.source))
    commit = git.commit(rev) if snapshot.is_git else ""
    if not commit:
        raise UsageError(f"{snapshot.source} has no branch, tag or commit {rev!r}")
    mirror.receive(git, commit, "received")
    return commit


def bring(snapshot: Snapshot, *, issue: int, cache: Path) -> Mirror:
    """A snapshot's mirror with its commit, on any machine. Raises Unseen."""
    mirror = mirror_of(snapshot, cache)
    needed = [commit for commit in (snapshot.commit, snapshot.copied) if commit]
    if all(map(mirror.has, needed)):
        return mirror
    why = ""
    try:
        if snapshot.is_url:
            take_snapshot_of_url(snapshot.source, snapshot.commit, issue=issue, cache=cache)
        elif snapshot.is_git:
            mirror.receive(Git(Path(snapshot.source)), snapshot.commit, f"{issue}/base")
            if snapshot.copied:
                mirror.receive(Git(Path(snapshot.source)), snapshot.copied, f"{issue}/copied")
        else:
            globs = snapshot.copy_globs
            take_snapshot(Path(snapshot.source), issue=issue, cache=cache, copy_globs=globs)
    except (UsageError, GitFailure) as error:
        why = f": {error}"
    if not all(map(mirror.has, needed)):
        same = "; a path has to be the same on every machine whose worker takes the work"
        remedy = "" if snapshot.is_url else same
        raise Unseen(
            f"{snapshot.source} as seen from {socket.gethostname()} does not hold commit {snapshot.commit[:12]}"
            f"{remedy}{why}"
        )
    return mirror


def mirror_of(snapshot: Snapshot, cache: Path) -> Mirror:
    """This machine's mirror of a snapshot's source, whether it exists or not."""
    return Mirror(cache, snapshot.source)


def _imported(git: Git, head: _Described) -> tuple[str, str]:
    """The checkout as a commit in its own repository, or `head` itself if nothing differs; and its tree."""
    tree = trees.write_tree(git, tracked=trees.tracked_in_index(git))
    if tree == head.tree:
        return head.commit, tree
    parents = [head.commit] if head.commit else []
    return trees.commit_tree(git, tree, parents, MESSAGE, dated=head.date or DATE), tree


def checkout_tree(path: Path) -> str:
    """The current content of the repository around `path` as a tree; empty without a repository."""
    top, _ = top_of(path)
    git = Git(top)
    return _imported(git, _described(git, "HEAD"))[1] if is_repository(top) else ""


def write_ref(git: Git, name: str, commit: str) -> None:
    """Point one of fixloop's refs in the user's repository at a commit; removes a lock file that a dead git left."""
    if git.found("rev-parse", "-q", "--verify", name) == commit:
        return
    try:
        git.run("update-ref", name, commit)
    except LockHeld:
        lock = Path(git.text("rev-parse", "--path-format=absolute", "--git-common-dir")) / f"{name}.lock"
        remove_when_old(lock)
        git.run("update-ref", name, commit)
    except GitFailure as error:
        raise UsageError(f"cannot write {name} in {git.directory}: {error}") from error


def keep_for(snapshot: Snapshot, issues: Collection[int], cache: Path) -> None:
    """Keep for these issues a snapshot that was taken without a workflow, so that other machines can fetch it.
    UsageError: the user's repository is not writable."""
    refs = {f"refs/fixloop/{_ref(issue)}": snapshot.commit for issue in issues}
    mirror, users = mirror_of(snapshot, cache), Git(Path(snapshot.source))
    if snapshot.is_url or not snapshot.is_git:
        with mirror.locked() as git:
            mirror.write(git, "update-ref", "--stdin", stdin=_updates(refs))
        return
    if snapshot.copied:
        _lend(mirror, users, snapshot.copied)
        refs |= {f"refs/fixloop/{issue}/copied": snapshot.copied for issue in issues}
    try:
        users.run("update-ref", "--stdin", stdin=_updates(refs))
    except GitFailure:
        # One by one, each error names its ref, and lock files of a dead git are removed.
        for name, commit in refs.items():
            write_ref(users, name, commit)


def _lend(mirror: Mirror, users: Git, copied: str) -> None:
    """Give the user's repository the objects of a commit with copied files."""
    if not users.found("cat-file", "-t", copied):
        users.run("unpack-objects", "-q", stdin=mirror.pack(copied))


def _updates(refs: Mapping[str, str]) -> bytes:
    return "".join(f"update {name} {commit}\n" for name, commit in refs.items()).encode()


def issues_handed_in(top: Path) -> list[int]:
    """The issues of the bases kept in this repository, the only record of them if a Redis lost its data."""
    try:
        names = Git(top).found("for-each-ref", "--format=%(refname)", "refs/fixloop/*/base")
    except (FixloopError, OSError):
        return []
    return sorted(map(int, re.findall(r"^refs/fixloop/(\d{1,15})/base$", names, re.MULTILINE)))


def is_url(text: str) -> bool:
    """Whether a repository is given as a git URL, not as a path."""
    scp_like = re.fullmatch(r"[\w.-]+@[\w.-]+:.+", text) is not None
    return scp_like or re.match(r"(https?|ssh|git|file)://", text) is not None


def _plain(top: Path, mirror: Mirror, issue: int, copy_globs: Sequence[str], ref: str | None) -> Snapshot:
    if ref:
        raise UsageError(f"{top} is not a git repository, so it has no {ref}; leave the ref out")
    if top in (Path.home(), Path("/")):
        raise UsageError(f"{top} is no project: it is not a git repository and holds everything else too")
    mirror.ensure()
    git = mirror.over(top)
    tree = trees.write_tree(git, tracked={})
    commit = trees.commit_tree(git, tree, [], MESSAGE, dated=DATE)
    mirror.keep(commit, _ref(issue))
    gathered = gather(git, mirror, commit, Wanted(copy_globs, top))
    facts = {"copy_globs": tuple(copy_globs), **gathered._asdict()}
    return Snapshot(source=str(top), commit=commit, tree=tree, is_git=False, changed=True, **facts)


def _ref(issue: int) -> str:
    return f"{issue}/base" if issue else ""


def _described(git: Git, revision: str) -> _Described:
    """The commit of a branch, of HEAD or with an id; empty if there is none, or git does not know."""
    how = ("show", "-s", "--no-show-signature", "--format=%H%x00%T%x00%cI%x00%s%x00%an")
    told = git.found(*how, f"{revision}^{{commit}}", "--") if revision else ""
    if not told:
        return _Described()
    commit, tree, date, subject, author = told.split("\0")
    return _Described(
        commit, tree, date, one_line(subject, SUBJECT_CHARACTERS), one_line(author, SUBJECT_CHARACTERS)
    )


def _fetched(mirror: Mirror, url: str, ref: str | None) -> str:
    """The remote's commit with this name, in the mirror. UsageError: there is none."""
    with mirror.locked() as git:
        _fetch(
            mirror, url, "+HEAD:refs/remote/HEAD", "+refs/heads/*:refs/remote/*", "+refs/tags/*:refs/tags/*"
        )
        commit = _of_remote(git, ref)
        if not commit and ref and trees.OBJECT.fullmatch(ref):
            # No branch or tag leads to it (any more); the server may still provide it.
            with contextlib.suppress(Unseen):
                _fetch(mirror, url, f"+{ref}:refs/remote-commits/{ref}")
                commit = _of_remote(git, ref)
    if not commit:
        raise UsageError(f"{url} has no branch, tag or commit {ref or 'HEAD'!r}")
    return commit


def _fetch(mirror: Mirror, url: str, *specs: str) -> None:
    try:
        # Without the lock's descriptor, which a credential helper's daemon would keep long after git has ended.
        mirror.write(
            mirror.git, "fetch", "--quiet", "--no-tags", "--prune", "--no-write-fetch-head", "--", url, *specs
        )
    except GitFailure as error:
        told = f"cannot fetch {url} from {socket.gethostname()}: {str(error).partition(': ')[2]}"
        raise Unseen(told) from error


def _of_remote(git: Git, ref: str | None) -> str:
    """The commit of a branch, a tag or a (partial) commit id; empty if nothing has that name."""
    wanted = [f"refs/remote/{ref}", f"refs/tags/{ref}"] if ref else ["refs/remote/HEAD"]
    if ref and COMMIT.fullmatch(ref):
        wanted.append(ref)
    return next(filter(None, map(git.commit, wanted)), "")
