"""Runs git: one command, a clean environment, a time limit, and errors of one sentence.

Ignores the caller's GIT_* variables, hooks, signing, prompts, maintenance, and programs that a repository names.
"""

import contextlib
import functools
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from fixloop.errors import FixloopError, InfrastructureError, UsageError
from fixloop.repository.git_config import Setting, overrides, settings_of

TIMEOUT_SECONDS: Final = 600.0

# `safe.directory` allows a checkout that another user owns (containers). With hooks and fsmonitor off, and the
# overrides of `git_config`, none of the commands used here starts a program that such a repository names.
SETTINGS: Final = (
    *("safe.directory=*", "core.hooksPath=/dev/null", "core.fsmonitor=false", "protocol.ext.allow=never"),
    *("core.untrackedCache=false", "core.splitIndex=false", "core.quotePath=false", "core.safecrlf=false"),
    *("core.filesRefLockTimeout=1000", "core.packedRefsTimeout=1000"),
    *("core.fsync=committed", "core.fsyncMethod=batch"),
    *("commit.gpgSign=false", "tag.gpgSign=false", "log.showSignature=false"),
    *("gc.auto=0", "maintenance.auto=false", "submodule.recurse=false", "advice.detachedHead=false"),
)
_COMMAND: Final = ("git", *(part for setting in SETTINGS for part in ("-c", setting)))
_VARIABLES: Final = {
    "LC_ALL": "C",
    "LANGUAGE": "",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_AUTHOR_NAME": "fixloop",
    "GIT_AUTHOR_EMAIL": "fixloop@localhost",
    "GIT_COMMITTER_NAME": "fixloop",
    "GIT_COMMITTER_EMAIL": "fixloop@localhost",
}
_ALONE: Final = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "core.attributesFile",
    "GIT_CONFIG_VALUE_0": os.devnull,
}


class GitFailure(InfrastructureError):
    """A git command failed unexpectedly; the message contains git's own."""


class LockHeld(UsageError):
    """A lock file of git's exists: another command holds it, or a dead one left it."""


@dataclass(frozen=True)
class Git:
    """Git in one directory, optionally with another git directory, work tree or index than the directory's own."""

    directory: Path
    git_dir: Path | None = None
    work_tree: Path | None = None
    index: Path | None = None
    ours: bool = False
    """fixloop wrote its configuration; programs named by any other configuration are not started."""
    alone: bool = False
    """The configuration of the user and the machine is not in force either: no filter rewrites what is checked out."""
    inherited: tuple[int, ...] = ()
    """File descriptors that git and its children keep open: a lock that must outlive this process."""

    seconds: float = TIMEOUT_SECONDS
    """The time limit of each command."""

    def with_index(self, index: Path) -> "Git":
        return replace(self, index=index)

    @contextlib.contextmanager
    def empty_index(self) -> Iterator["Git"]:
        """The same repository with an empty temporary index."""
        with tempfile.TemporaryDirectory(prefix="fixloop-index-") as folder:
            yield self.with_index(Path(folder) / "index")

    def run(
        self, *args: str | Path, stdin: bytes = b"", accept: tuple[int, ...] = (0,), dated: str = ""
    ) -> subprocess.CompletedProcess[bytes]:
        """
        Run one git command. Raises as `explained`, or InfrastructureError if git is missing or too slow.

        `accept`: exit codes that are answers, not failures. `dated`: author and committer date, for a
        reproducible commit.
        """
        require_git()
        environment = self._environment()
        if not self.ours:
            environment |= overrides(self._settings(environment), str(self.directory))
        if dated:
            environment |= {"GIT_AUTHOR_DATE": dated, "GIT_COMMITTER_DATE": dated}
        done = _run(args, self, environment, stdin)
        if done.returncode not in accept:
            raise explained(str(args[0]), done, self.directory)
        return done

    def settings(self) -> Sequence[Setting]:
        """The configuration in force, without starting git where it is unchanged."""
        require_git()
        return self._settings(self._environment())

    def setting(self, key: str) -> str:
        """The value that is in force for a key, as git lists it; empty if there is none."""
        return next((each.value for each in reversed(self.settings()) if each.key == key), "")

    def _environment(self) -> dict[str, str]:
        places = {"GIT_DIR": self.git_dir, "GIT_WORK_TREE": self.work_tree, "GIT_INDEX_FILE": self.index}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        set_here = {name: str(place) for name, place in places.items() if place is not None}
        return kept | _VARIABLES | set_here | (_ALONE if self.alone else {})

    def _settings(self, environment: dict[str, str]) -> Sequence[Setting]:
        """The configuration in force, read for each command, because an agent may have changed it."""

        def listed() -> bytes | None:
            listing = ("config", "--list", "--show-scope", "-z")
            done = _run(listing, self, environment, b"")
            # A configuration that cannot be read makes the command itself fail with an explanation.
            return done.stdout if done.returncode == 0 else None

        return settings_of(self.directory, self.git_dir, environment, listed)

    def output(self, *args: str | Path, stdin: bytes = b"") -> bytes:
        """The command's output. Raises as `run`."""
        return self.run(*args, stdin=stdin).stdout

    def text(self, *args: str | Path, stdin: bytes = b"") -> str:
        """The command's output, decoded like a file name, without the last newline."""
        return os.fsdecode(self.run(*args, stdin=stdin).stdout).removesuffix("\n")

    def found(self, *args: str | Path) -> str:
        """The command's output, or an empty text if it fails with exit code 1, 2 or 128."""
        done = self.run(*args, accept=(0, 1, 2, 128))
        return os.fsdecode(done.stdout).removesuffix("\n") if done.returncode == 0 else ""

    def commit(self, revision: str = "HEAD") -> str:
        """The id of the commit that a revision names; empty if there is none."""
        return self.found("rev-parse", "-q", "--verify", "--end-of-options", f"{revision}^{{commit}}")


def branch_of(directory: Path) -> str | None:
    """The branch that is checked out around `directory`; None without git."""
    if shutil.which("git") is None:
        return None
    git = Git(directory)
    if git.found("rev-parse", "--is-inside-work-tree") != "true":
        return None
    return git.found("symbolic-ref", "--short", "--quiet", "HEAD") or "(detached HEAD)"


@functools.cache
def require_git() -> None:
    """Check once per process that git exists and is not older than 2.38, else InfrastructureError."""
    try:
        said = subprocess.run(["git", "--version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InfrastructureError("git does not run on this machine; install git 2.38 or later") from error
    version = re.search(r"(\d+)\.(\d+)", said.stdout)
    if version is None or (int(version[1]), int(version[2])) < (2, 38):
        raise InfrastructureError(f"{said.stdout.strip()} is too old; install git 2.38 or later")


def shown(path: bytes) -> str:
    """A file name for printing: escaped if it is not UTF-8 or would break a line."""
    text = path.decode("utf-8", "backslashreplace")
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def one_line(text: str, limit: int = 300) -> str:
    """The text on one line, at most `limit` characters."""
    joined = " ".join(text.split())
    return joined if len(joined) <= limit else joined[: limit - 1] + "…"


def without_userinfo(text: str) -> str:
    """The text without user and password in URLs, because git prints addresses after its rewrite rules."""
    return re.sub(r"(\b[a-z][a-z0-9+.-]*://)[^/@\s'\"]*@", r"\1", text, flags=re.IGNORECASE)


def _run(
    args: tuple[str | Path, ...], git: Git, variables: dict[str, str], stdin: bytes
) -> subprocess.CompletedProcess[bytes]:
    argv = [*_COMMAND, *(os.fspath(arg) for arg in args)]
    try:
        # A new session: no terminal for prompts, and one group to kill after the time limit.
        with subprocess.Popen(
            argv,
            cwd=git.directory,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=git.inherited,
        ) as process:
            try:
                out, err = process.communicate(stdin, timeout=git.seconds)
            except BaseException:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                raise
    except subprocess.TimeoutExpired as error:
        told = f"git {args[0]} in {git.directory} took more than {git.seconds:.0f} s and was stopped"
        raise InfrastructureError(told) from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError(f"{git.directory} is not a directory") from error
    except OSError as error:
        raise InfrastructureError(f"git does not start in {git.directory}: {error.strerror}") from error
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


def explained(verb: str, done: subprocess.CompletedProcess[bytes], directory: Path) -> FixloopError:
    """The error that explains a failed git command in one sentence, of the class that says who has to act."""
    said = done.stderr.decode("utf-8", "replace")
    lock = re.search(r"Unable to create '([^']+\.lock)': File exists", said)
    if lock:
        return LockHeld(
            f"another git command holds {lock[1]}; wait for it to end, or remove the file if none is running"
        )
    if "dubious ownership" in said:
        told = f"git refuses {directory}: another user owns it; run as the owner or change the owner"
        return UsageError(told)
    if "No space left on device" in said:
        return InfrastructureError(f"no space is left on the device for git {verb} in {directory}")
    closed = ("insufficient permission", "Read-only file system", "unable to create directory for")
    if any(words in said for words in closed):
        return UsageError(f"this user may not write to the repository of {directory}; run as its owner")
    if "Permission denied" in said:
        return UsageError(f"git {verb} may not read or write in {directory}: {_cause(said)}")
    return GitFailure(f"git {verb} failed in {directory}: {_cause(said) or f'exit code {done.returncode}'}")


def _cause(said: str) -> str:
    """The lines that name the cause; git prints the consequences last."""
    told = [line for line in said.splitlines() if line.strip() and not line.startswith(("hint:", "warning:"))]
    telling = [line for line in told if line.startswith(("error:", "fatal:", "remote: fatal:"))] or told
    return one_line(without_userinfo("; ".join(telling[:2])))
