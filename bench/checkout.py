"""Prepares the public projects of `projects.toml` as their developers would, to try fixloop on them."""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT

from pydantic import BaseModel, Field

PROJECTS_FILE = Path(__file__).with_name("projects.toml")
_IGNORED = (
    *(".venv/", "node_modules/", "__pycache__/", "*.egg-info/"),
    *(".pytest_cache/", ".mypy_cache/", ".ruff_cache/"),
)
_INIT = (["git", "init", "-q", "-b", "main"], ["git", "add", "-A"])
_AUTHOR = ("-c", "user.name=dev", "-c", "user.email=dev@example.invalid")


class Registry(StrEnum):
    """The source of a release, used through its usual client."""

    PYPI = "PyPI"
    NPM = "npm"
    DEBIAN = "Debian"
    DEBIAN_SOURCE = "Debian source"
    GITHUB = "GitHub"
    """For projects whose releases have no tests: the commit of a tag; `package` is owner/name."""


class Edit(BaseModel, frozen=True, extra="forbid"):
    """One replacement in one file; `old` occurs exactly once."""

    file: str
    old: str
    new: str

    def apply(self, checkout: Path) -> None:
        """Replace it below `checkout`; raises ValueError unless `old` occurs exactly once in the file."""
        path = checkout / self.file
        text = path.read_text()
        if text.count(self.old) != 1:
            raise ValueError(f"{path}: {self.old!r} stands there {text.count(self.old)} times, not once")
        path.write_text(text.replace(self.old, self.new))


class Project(BaseModel, frozen=True, extra="forbid"):
    """One release, its preparation, its own commands, and three bugs that they find."""

    name: str
    language: str
    shape: str
    registry: Registry
    package: str
    version: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """The digest of the release; for GitHub, of `git archive --format=tar --prefix=release/`."""
    inside: str = ""
    """The folder of the sources inside a Debian package."""
    remove: tuple[str, ...] = ()
    """Files in the release that are not in the project's repository."""
    ignore: tuple[str, ...] = ()
    """Patterns to git-ignore in addition to its `.gitignore`."""
    edits: tuple[Edit, ...] = ()
    """Changes that make the release work like a checkout."""
    change: str = ""
    """A description of `edits` and their reason, for the page."""
    packages: tuple[str, ...] = ()
    """Packages that pip installs into `.venv`."""
    commands: tuple[str, ...] = Field(min_length=1)
    """The commands of its developers, from their documentation or CI."""
    bugs: tuple[Edit, ...] = Field(min_length=3, max_length=3)


class _File(BaseModel, frozen=True, extra="forbid"):
    project: tuple[Project, ...]


def public_projects() -> tuple[Project, ...]:
    return _File.model_validate(tomllib.loads(PROJECTS_FILE.read_text())).project


def prepared(project: Project, folder: Path) -> Path:
    """The checkout below `folder`, made once for each entry of `projects.toml`. Raises ValueError for a bad digest."""
    checkout, stamp = folder / "checkout", folder / "prepared.json"
    entry = project.model_dump_json(exclude={"bugs", "commands", "shape", "change"})
    if not (stamp.exists() and stamp.read_text() == entry):
        shutil.rmtree(folder, ignore_errors=True)
        checkout.mkdir(parents=True)
        _unpack(_release(project, folder / "release"), project, checkout)
        _tidy(project, checkout)
        commit = ["git", *_AUTHOR, "commit", "-qm", f"{project.name} {project.version}"]
        for command in (*_INIT, commit, ["git", "tag", project.version]):
            _call(command, checkout)
        _install(project, checkout)
        stamp.write_text(entry)
    restore(checkout)
    return checkout


def restore(checkout: Path) -> None:
    """Undo every change of tracked files, and remove fixloop's own files; ignored files stay."""
    _call(["git", "checkout", "-q", "--", "."], checkout)
    _call(["git", "clean", "-fdq"], checkout)
    shutil.rmtree(checkout / ".fixloop", ignore_errors=True)


def developer_environment(checkout: Path | None = None) -> dict[str, str]:
    """A shell's variables: fixloop's own environment is not on PATH; the project's is, if `checkout` is given."""
    ours = str(Path(sys.executable).parent)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "FIXLOOP_"))}
    kept.pop("VIRTUAL_ENV", None)
    path = [part for part in kept["PATH"].split(os.pathsep) if part != ours]
    if checkout is not None:
        path.insert(0, str(checkout / ".venv" / "bin"))
    return kept | {"PATH": os.pathsep.join(path)}


def timed(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], limit: float
) -> tuple[float, subprocess.CompletedProcess[bytes]]:
    """Run a command for at most `limit` seconds; the seconds it took, and its end, with all output as stdout."""
    started = time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, env=environment, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, timeout=limit
    )
    return time.perf_counter() - started, done


def install(checkout: Path, *packages: str) -> None:
    """Install only these packages in its `.venv`."""
    environment = developer_environment(checkout)
    _call(["python3", "-m", "venv", ".venv"], checkout, environment)
    if packages:
        _call(["python", "-m", "pip", "install", "--quiet", *packages], checkout, environment)


def _release(project: Project, folder: Path) -> Path:
    """The downloaded file with the pinned digest; raises ValueError if there is none."""
    folder.mkdir()
    _call(_download(project), folder)
    digests = {hashlib.sha256(file.read_bytes()).hexdigest(): file for file in sorted(folder.iterdir())}
    if project.sha256 not in digests:
        found = ", ".join(f"{file.name} has {digest}" for digest, file in digests.items())
        message = f"{project.name}: nothing downloaded has the digest {project.sha256}: {found or 'no file'}"
        raise ValueError(message)
    return digests[project.sha256]


def _download(project: Project) -> list[str]:
    package, version = project.package, project.version
    match project.registry:
        case Registry.PYPI:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", package]
            return [*pip, f"{package}=={version}"]
        case Registry.NPM:
            return ["npm", "pack", "--silent", f"{package}@{version}"]
        case Registry.DEBIAN:
            return ["apt-get", "download", f"{package}={version}"]
        case Registry.DEBIAN_SOURCE:
            return ["apt-get", "source", "--download-only", f"{package}={version}"]
        case Registry.GITHUB:
            clone = f"git clone --quiet --depth 1 --branch {version} https://github.com/{package} clone"
            archive = "git -C clone archive --format=tar --prefix=release/ --output ../release.tar HEAD"
            return ["sh", "-c", f"{clone} 2>/dev/null && {archive} && rm -rf clone"]


def _unpack(release: Path, project: Project, checkout: Path) -> None:
    unpacked = release.parent / "unpacked"
    if release.suffix == ".deb":
        _call(["dpkg-deb", "-x", str(release), str(unpacked)], release.parent)
        sources = unpacked / project.inside
    else:
        with tarfile.open(release) as archive:
            archive.extractall(unpacked, filter="data")
        (sources,) = unpacked.iterdir()
    shutil.copytree(sources, checkout, dirs_exist_ok=True)
    shutil.rmtree(unpacked)


def _tidy(project: Project, checkout: Path) -> None:
    for name in project.remove:
        path = checkout / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    for edit in project.edits:
        edit.apply(checkout)
    ignored = checkout / ".gitignore"
    own = ignored.read_text().splitlines() if ignored.exists() else []
    added = [line for line in (*_IGNORED, *project.ignore) if line not in own]
    ignored.write_text("".join(f"{line}\n" for line in (*own, *added)))


def _install(project: Project, checkout: Path) -> None:
    """Install its environment, and commit the lock file that npm writes, as its developers would."""
    if project.packages:
        install(checkout, *project.packages)
    elif (checkout / "package.json").exists():
        _call(["npm", "install", "--no-audit", "--no-fund"], checkout, developer_environment(checkout))
        _call(["git", "add", "-A"], checkout)
        _call(["git", *_AUTHOR, "commit", "-qm", "Lock the dependencies"], checkout)


def _call(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> None:
    subprocess.run(command, cwd=folder, env=environment, check=True, stdin=DEVNULL, stdout=DEVNULL)
