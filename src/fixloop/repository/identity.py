"""Finds the project of a path, and the path's place in it.

Owns a project's name, which is the same on every machine. Reads git; changes nothing.
"""

import hashlib
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from fixloop.errors import UsageError
from fixloop.repository.git import Git
from fixloop.repository.git_config import git_directory

DEFAULT_PORTS = {"http": 80, "https": 443, "ssh": 22, "git": 9418}
SCP_LIKE = re.compile(r"(?:[^@/:\s]+@)?(\[[^\]]+\]|[^@/:\s]+):(?!//)(.+)")
_PLAIN = re.compile(r"[\w@:/.~+%-]+", re.ASCII)


@dataclass(frozen=True)
class Project:
    """A project's name, and the eight hex digits that stand for it in ids and keys."""

    name: str
    hash8: str


def project_of(path: Path, configured: str = "") -> Project:
    """The project of a path: the configured name, else the address of `origin`, else the top folder's real path."""
    if configured:
        return _project(configured)
    top, _ = top_of(path)
    address = ""
    if is_repository(top) and (git := Git(top)).setting("remote.origin.url"):
        address = git.found("remote", "get-url", "origin")
    return _project(normalised_url(address, top) if address else str(top))


def project_of_url(url: str, configured: str = "") -> Project:
    return _project(configured or normalised_url(url, Path("/")))


def top_of(path: Path) -> tuple[Path, str]:
    """
    The top folder that holds `path` (real path) and the relative path from there (`""` at the top).

    A path outside any repository, or one that its repository ignores as a whole, is its own top.
    """
    real = Path(os.path.realpath(path))
    if not real.is_dir():
        raise UsageError(f"{path} is not a directory; name the folder of the project")
    try:
        str(real).encode()
    except UnicodeEncodeError:
        raise UsageError(f"the path {str(real)!r} is not UTF-8; move the project to a path that is") from None
    git = Git(real)
    top = _usual_top(git) or _top_by_git(git)
    if top is None:
        return real, ""
    is_ignored = top != real and git.run("check-ignore", "-q", real, accept=(0, 1, 128)).returncode == 0
    if is_ignored and not git.found("ls-files", "-z", "--", "."):
        return real, ""
    return top, "" if top == real else real.relative_to(top).as_posix()


def _usual_top(git: Git) -> Path | None:
    """The top of a usual checkout, found without starting git; None if only git can tell."""
    real = git.directory
    for place in (real, *real.parents):
        if os.path.lexists(place / ".git"):
            break
        if os.path.lexists(place / "HEAD") or os.path.ismount(place):
            return None
    with suppress(OSError, ValueError):
        values = {each.key: each.value for each in git.settings()}
        is_usual = "core.worktree" not in values and values.get("core.bare", "false") == "false"
        return place if values and is_usual and git_directory(place) else None
    return None


def _top_by_git(git: Git) -> Path | None:
    """The top by git itself; None without a repository. UsageError: it cannot be read, or is bare."""
    real = git.directory
    done = git.run("rev-parse", "--is-inside-work-tree", "--show-toplevel", accept=(0, 128))
    is_inside, _, shown = done.stdout.partition(b"\n")
    if not is_inside:
        said = done.stderr.decode("utf-8", "replace").strip()
        if "not a git repository (or any" in said:
            return None
        cause = said.splitlines()[0].removeprefix("fatal: ") if said else "git says nothing"
        raise UsageError(f"the repository of {real} cannot be read: {cause}")
    if is_inside != b"true":
        told = f"{real} is inside a bare repository; name a checkout, or use its URL (file://{real})"
        raise UsageError(told)
    return Path(os.path.realpath(os.fsdecode(shown.removesuffix(b"\n"))))


def is_repository(top: Path) -> bool:
    """Whether `top`, as returned by `top_of`, is the top of a git checkout."""
    return os.path.lexists(top / ".git")


def normalised_url(url: str, relative_to: Path) -> str:
    """
    The normal form of a repository's address: host in lower case and path.

    Scheme, user, password, a default port and a trailing `.git` are dropped; a local address is a real path.
    """
    text = url.strip()
    if "://" in text:
        parts = urlsplit(text)
        if parts.scheme == "file":
            return _local(parts.path, relative_to)
        host = parts.netloc.rpartition("@")[2].lower()
        default = DEFAULT_PORTS.get(parts.scheme.rpartition("+")[2])
        host = host.removesuffix(f":{default}").removesuffix(":")
        return f"{host}/{_plain_path(parts.path)}"
    scp = SCP_LIKE.fullmatch(text)
    if scp is not None and not os.path.lexists(relative_to / text):
        return f"{scp[1].lower()}/{_plain_path(scp[2])}"
    return _local(text, relative_to)


def public_address(url: str) -> str:
    """A repository's address without credentials; empty if it is local or has unusual characters."""
    text = url.strip()
    if not _PLAIN.fullmatch(text):
        return ""
    if "://" not in text:
        return text if SCP_LIKE.fullmatch(text) else ""
    parts = urlsplit(text)
    user = f"{parts.username}@" if parts.scheme == "ssh" and parts.username else ""
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{user}{host}{parts.path}" if parts.scheme in DEFAULT_PORTS else ""


def _plain_path(path: str) -> str:
    return path.strip("/").removesuffix(".git").rstrip("/")


def _local(path: str, relative_to: Path) -> str:
    return os.path.realpath(relative_to / path).removesuffix("/.git")


def _project(name: str) -> Project:
    return Project(name, hashlib.sha256(os.fsencode(name)).hexdigest()[:8])
