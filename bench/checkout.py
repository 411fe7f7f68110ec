"""Prepare a public project as its developers would: the release, a git repository, what it needs installed."""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.public import Project, Registry

_IGNORED = (
    ".venv/",
    "node_modules/",
    "__pycache__/",
    "*.egg-info/",
    ".pytest_cache/",
    ".mypy_cache/",
    ".ruff_cache/",
)
_AUTHOR = ("-c", "user.name=dev", "-c", "user.email=dev@example.invalid")


def prepared(project: Project, folder: Path) -> Path:
    """The checkout below `folder`, made once for each entry of `projects.toml`; ValueError for another digest."""
    checkout, stamp = folder / "checkout", folder / "prepared.json"
    entry = project.model_dump_json(exclude={"bugs", "commands", "shape", "change"})
    if not (stamp.exists() and stamp.read_text() == entry):
        shutil.rmtree(folder, ignore_errors=True)
        checkout.mkdir(parents=True)
        _unpack(_release(project, folder / "release"), project, checkout)
        _tidy(project, checkout)
        _commit(checkout, f"{project.name} {project.version}", tag=project.version)
        _install(project, checkout)
        stamp.write_text(entry)
    restore(checkout)
    return checkout


def restore(checkout: Path) -> None:
    """Take back every change of tracked files, and what fixloop keeps there; ignored files stay."""
    _call(["git", "checkout", "-q", "--", "."], checkout)
    _call(["git", "clean", "-fdq"], checkout)
    shutil.rmtree(checkout / ".fixloop", ignore_errors=True)


def developer_environment(checkout: Path | None = None) -> dict[str, str]:
    """A shell's variables: fixloop's own environment is not on PATH, the project's is where `checkout` is given."""
    ours = str(Path(sys.executable).parent)
    kept = {
        name: value
        for name, value in os.environ.items()
        if name != "VIRTUAL_ENV" and not name.startswith(("PYTHON", "FIXLOOP_"))
    }
    path = [part for part in kept["PATH"].split(os.pathsep) if part != ours]
    if checkout is not None:
        path.insert(0, str(checkout / ".venv" / "bin"))
    return kept | {"PATH": os.pathsep.join(path)}


def _release(project: Project, folder: Path) -> Path:
    """The one downloaded file with the pinned digest."""
    folder.mkdir()
    _call(_download(project), folder)
    digests = {hashlib.sha256(file.read_bytes()).hexdigest(): file for file in sorted(folder.iterdir())}
    if project.sha256 not in digests:
        found = ", ".join(f"{file.name} has {digest}" for digest, file in digests.items())
        raise ValueError(
            f"{project.name}: nothing downloaded has the digest {project.sha256}: {found or 'no file'}"
        )
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


def _commit(checkout: Path, subject: str, *, tag: str) -> None:
    _call(["git", "init", "-q", "-b", "main"], checkout)
    _call(["git", "add", "-A"], checkout)
    _call(["git", *_AUTHOR, "commit", "-qm", subject], checkout)
    _call(["git", "tag", tag], checkout)


def _install(project: Project, checkout: Path) -> None:
    """Its environment; a lock file that npm writes is committed, as its developers would."""
    environment = developer_environment(checkout)
    if project.packages:
        _call(["python3", "-m", "venv", ".venv"], checkout, environment)
        _call(["python", "-m", "pip", "install", "--quiet", *project.packages], checkout, environment)
    elif (checkout / "package.json").exists():
        _call(["npm", "install", "--no-audit", "--no-fund"], checkout, environment)
        _call(["git", "add", "-A"], checkout)
        _call(["git", *_AUTHOR, "commit", "-qm", "Lock the dependencies"], checkout)


def _call(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> None:
    subprocess.run(
        command, cwd=folder, env=environment, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
