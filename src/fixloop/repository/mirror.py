"""The mirror: one bare repository per source and machine, from which workspaces borrow objects.

Owns `{cache}/mirrors/`. Next to each mirror, in `….used/`, a note for each workflow names the commits it needs. Every
ref is written under a flock that git's children inherit, so a lock file found under it belongs to no live process. A
running workspace's objects are reachable only through the mirror, so forgotten ones stay for two more weeks.
"""

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.errors import InfrastructureError
from fixloop.files.atomic import sync, write_whole
from fixloop.files.folders import make_cache
from fixloop.files.locks import held
from fixloop.repository.git import Git, LockHeld

LOCK_TIMEOUT_SECONDS: Final = 900.0
STALE_SECONDS: Final = 2.0
"""git holds a lock file for milliseconds; a writer outside the flock would be a person's, who gets this long."""
KEPT_FORGOTTEN: Final = "2.weeks.ago"
"""Longer than any workspace that borrowed it exists."""
TAGS: Final = 500
"""The newest tags are copied, for tools that derive a version from them."""

CONFIG: Final = Path(__file__).with_name("mirror.gitconfig").read_text()


class User(NamedTuple):
    """A workflow that needs commits of a mirror."""

    base: str
    tip: str
    others: tuple[str, ...]
    """The commit with copied files, and the commit for comparison, if any."""
    noted_at: float
    """The time of its last note, as `time.time`."""


@dataclass(frozen=True)
class Mirror:
    """The mirror of one source in one cache directory."""

    cache: Path
    source: str
    """The real path of a top folder, or a URL without credentials."""

    @property
    def path(self) -> Path:
        digest = hashlib.sha256(os.fsencode(self.source)).hexdigest()[:16]
        return Path(os.path.abspath(self.cache)) / "mirrors" / f"{digest}.git"

    @property
    def git(self) -> Git:
        return Git(self.path, git_dir=self.path, ours=True)

    def over(self, folder: Path) -> Git:
        """Git at the top of `folder`, with the mirror as its repository: no file in the folder configures it."""
        return Git(folder, git_dir=self.path, work_tree=folder, ours=True)

    def ensure(self, *, sha256: bool = False) -> None:
        """Create a missing mirror: built under another name, renamed when it is complete."""
        try:
            if (self.path / "HEAD").is_file():
                return
            make_cache(Path(os.path.abspath(self.cache)))
            with held(self._lock_path, timeout_seconds=LOCK_TIMEOUT_SECONDS):
                if (self.path / "HEAD").is_file():
                    return
                self.path.parent.mkdir(parents=True, exist_ok=True)
                shutil.rmtree(self.path, ignore_errors=True)
                with tempfile.TemporaryDirectory(prefix="making-", dir=self.path.parent) as making:
                    made = Path(making) / "mirror"
                    lay_out(made, CONFIG, sha256=sha256)
                    (made / "description").write_text(self.source + "\n", errors="replace")
                    (made / "HEAD").write_text("ref: refs/heads/received\n")
                    # Git syncs objects and refs, not HEAD and configuration, without which there is no repository.
                    for file in filter(Path.is_file, made.rglob("*")):
                        sync(file)
                    made.rename(self.path)
        except OSError as error:
            raise InfrastructureError(f"cannot write to the cache {self.cache}: {error.strerror}") from error

    def has(self, commit: str) -> bool:
        """Whether the commit was kept, so that everything it needs is here."""
        if not (self.path / "HEAD").is_file():
            return False
        return bool(self.git.found("rev-parse", "-q", "--verify", _kept(commit)))

    def keep(self, commit: str, name: str = "") -> None:
        """Create a ref for a commit whose objects are all in the mirror (and `refs/fixloop/{name}`, if given)."""
        with self.locked() as git:
            self._keep(git, commit, name)

    def receive(self, source: Git, commit: str, name: str) -> None:
        """
        Copy a commit with its history from another repository, and keep it (as `refs/fixloop/{name}`, if given).

        `source` pushes, so that it is read with its own settings, whoever owns it.
        """
        self.ensure(sha256=len(commit) == 64)
        if self.has(commit) and (
            not name or self.git.found("rev-parse", "-q", "--verify", f"refs/fixloop/{name}") == commit
        ):
            return
        with self.locked() as git:
            pushing = replace(source, inherited=git.inherited)
            youngest = ("--merged=HEAD", "--sort=-creatordate", f"--count={TAGS}", "--format=%(refname)")
            tags = source.found("for-each-ref", *youngest, "refs/tags").splitlines()
            # Two pushes: git fails when two refs of one push bring the same boundary of a shallow clone.
            for specs in [f"+{commit}:refs/heads/received"], [f"+{tag}:{tag}" for tag in tags if tag]:
                if specs:
                    self.write(pushing, "push", "--quiet", "--no-verify", "--no-signed", self.path, *specs)
            self._keep(git, commit, name)

    def use(self, workflow: str, base: str, tip: str, *others: str) -> None:
        """Note that a workflow of this machine needs these commits; without a note nothing is ever forgotten."""
        note, text = self._notes / workflow, " ".join(filter(None, (base, tip, *others))) + "\n"
        with contextlib.suppress(OSError):
            if note.read_text() == text:
                os.utime(note)
                return
        self._notes.mkdir(exist_ok=True)
        write_whole(note, text.encode(), synced=True)

    def users(self) -> dict[str, User]:
        found = {}
        for note in self._notes.glob("[!.]*"):
            with contextlib.suppress(OSError, ValueError):
                base, tip, *others = note.read_text().split()
                found[note.name] = User(base, tip, tuple(others), note.stat().st_mtime)
        return found

    def forget(self, workflows: Iterable[str]) -> list[str]:
        """Remove the refs that only these workflows needed; returns the commits."""
        gone, users = set(workflows), self.users()
        staying = (user for name, user in users.items() if name not in gone)
        kept = {commit for user in staying for commit in (user.base, user.tip, *user.others)}
        with self.locked() as git:
            theirs: set[str] = set()
            for user in (users[name] for name in gone & users.keys()):
                done = self.git.run("rev-list", user.tip, f"^{user.base}", accept=(0, 128))
                fixes = done.stdout.decode().split() if done.returncode == 0 else [user.tip]
                theirs |= {user.base, *user.others, *fixes} - kept
            refs = git.output("for-each-ref", "--format=%(objectname) %(refname)", "refs/fixloop").decode()
            for commit, _, name in (line.partition(" ") for line in refs.splitlines()):
                if commit in theirs:
                    self.write(git, "update-ref", "-d", name, commit)
            self.write(git, "prune", f"--expire={KEPT_FORGOTTEN}")
            for name in gone:
                (self._notes / name).unlink(missing_ok=True)
        return sorted(theirs)

    @property
    def _notes(self) -> Path:
        return self.path.with_suffix(".used")

    def pack(self, commit: str, *, since: str = "") -> bytes:
        """The objects of `commit` that another repository with `since` lacks."""
        wanted = f"{commit}\n" + (f"^{since}\n" if since else "")
        return self.git.output("pack-objects", "--revs", "--thin", "--stdout", "-q", stdin=wanted.encode())

    @contextmanager
    def bundled(self, commit: str, *, since: str) -> Iterator[Path]:
        """A temporary file with the thin bundle of a kept `commit` for a mirror that has `since`."""
        with tempfile.TemporaryDirectory(prefix="bundle-", dir=self.path.parent) as folder:
            file = Path(folder) / "bundle"
            self.git.run("bundle", "create", "--quiet", file, _kept(commit), f"^{since}")
            yield file

    def unbundle(self, bundle: bytes) -> None:
        """Read a bundle made by `bundled` on another machine, and keep its commit."""
        with (
            tempfile.TemporaryDirectory(prefix="bundle-", dir=self.path.parent) as folder,
            self.locked() as git,
        ):
            file = Path(folder) / "bundle"
            file.write_bytes(bundle)
            commit = git.text("bundle", "list-heads", file).partition(" ")[0]
            if not self.has(commit):
                self.write(git, "bundle", "unbundle", file)
                self._keep(git, commit, "")

    @contextmanager
    def locked(self) -> Iterator[Git]:
        """Hold the mirror's lock; yields git in the mirror, whose children hold it too."""
        with held(self._lock_path, timeout_seconds=LOCK_TIMEOUT_SECONDS) as descriptor:
            yield replace(self.git, inherited=(descriptor,))

    def write(self, git: Git, *args: str | Path, stdin: bytes = b"") -> None:
        """Run a git command that writes to the mirror, under its lock; lock files of dead writers are removed."""
        try:
            git.run(*args, stdin=stdin)
        except LockHeld:
            for folder, names, files in os.walk(self.path):
                if Path(folder) == self.path:
                    names.remove("objects")
                for file in files:
                    if file.endswith(".lock"):
                        remove_when_old(Path(folder) / file)
            git.run(*args, stdin=stdin)

    @property
    def _lock_path(self) -> Path:
        return self.path.with_suffix(".lock")

    def _keep(self, git: Git, commit: str, name: str) -> None:
        # Checked first: update-ref alone would accept a commit whose tree never arrived.
        git.run("cat-file", "-e", f"{commit}^{{tree}}")
        self.write(git, "update-ref", _kept(commit), commit)
        if name:
            self.write(git, "update-ref", f"refs/fixloop/{name}", commit)


def _kept(commit: str) -> str:
    return f"refs/fixloop/kept/{commit}"


def lay_out(repository: Path, config: str, *, sha256: bool) -> None:
    """Create the folders and configuration of a new repository, which has no HEAD yet."""
    for folder in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
        (repository / folder).mkdir(parents=True)
    text = config.format(format_version=int(sha256))
    (repository / "config").write_text(text + ("[extensions]\n\tobjectFormat = sha256\n" if sha256 else ""))


def remove_when_old(lock: Path) -> None:
    """Remove a git lock file of a dead process: wait until it is old, in case a live one holds it."""
    with contextlib.suppress(FileNotFoundError):
        while time.time() - lock.stat().st_mtime < STALE_SECONDS:
            time.sleep(0.1)
        lock.unlink()
