"""Lists the environment of checks for comparison: interpreter, packages, programs, and settings outside the workspace.

Owns the listing: places and their contents. Starts and imports nothing. Bytecode is left out because checks have their
own, and so are files that this user cannot write.
In the folders above a workspace, tools look for settings that a project does not have.
"""

import base64
import csv
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from fixloop.configuration.model import Check
from fixloop.machine.interpreters import Interpreter
from workers.workspaces.ground import Ground
from workers.workspaces.workspace import Workspace

HASHED_BYTES: Final = 262_144
"""Of larger files only size and date are compared."""
LOADED: Final = (".py", ".pyi", ".pyc", ".pth", ".so")
"""Suffixes of files that are read or run; other files of a package are ignored."""
_METADATA: Final = (".dist-info", ".egg-info")
_NO_MODULES: Final = frozenset({"__pycache__", "site-packages", "dist-packages", "test"})


def listing(
    interpreter: Interpreter, programs: Iterable[str], donors: Iterable[Path], settings: Iterable[Path]
) -> dict[str, str]:
    """Each place and its content, the most significant first. `programs` and `settings` are files, `donors` folders of
    packages for node."""
    started = [place for place in (interpreter.path, *programs) if place]
    found = {place: f"{os.path.realpath(place)} {_file(place)}" for place in started}
    found |= {str(place): _file(place) for place in settings}
    of_python = [place for place in started if place == interpreter.path or _is_script_of_python(place)]
    made = [Path(os.path.realpath(os.path.dirname(place))).parent for place in of_python]
    for prefix in dict.fromkeys(made):
        if (prefix / "pyvenv.cfg").is_file():
            found[f"{prefix}/pyvenv.cfg"] = _file(prefix / "pyvenv.cfg")
            found |= {str(path): _file(path) for path in sorted((prefix / "bin").iterdir())}
    for folder in dict.fromkeys(os.path.realpath(each) for prefix in made for each in _folders(prefix)):
        if os.access(folder, os.W_OK):
            found |= _modules(folder)
    for donor in donors:
        hidden = (path for path in donor.glob(".*") if path.is_file())
        for path in sorted((*hidden, *(donor / ".bin").glob("*"))):
            found[str(path)] = os.readlink(path) if path.is_symlink() else _file(path)
    return found


def environment_of(ground: Ground, checks: Iterable[Check]) -> dict[str, str]:
    """The listing for `checks` on a ground."""
    cargo = Path(os.environ.get("CARGO_HOME") or os.path.expanduser("~/.cargo"))
    settings = (*settings_above(ground.workspace), cargo / "config.toml", cargo / "config")
    own = os.path.dirname(ground.interpreter.path)
    path = os.pathsep.join(filter(None, (own, os.environ.get("PATH", os.defpath))))
    words = dict.fromkeys(word for check in checks for word in check.command)
    named = (word for word in words if os.path.isabs(word) or ("/" not in word and not word.startswith("-")))
    programs = filter(None, (shutil.which(word, path=path) for word in named))
    return listing(ground.interpreter, programs, ground.donors, settings)


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """The differences of two listings, a clause for each, removed things last. A package that was reinstalled unchanged
    is no difference, because its list of files is the same."""
    recorded: dict[str, str] | None = None
    for place in {**now, **before}:
        if before.get(place) == now.get(place):
            continue
        if place not in now or place not in before:
            yield f"{place} was {'added' if place in now else 'removed'}"
            continue
        if recorded is None:
            same = (path for path in before if before[path] == now.get(path))
            recorded = dict(line for path in same if path.endswith("/RECORD") for line in _recorded(path))
        yield from _unrecorded(place, recorded)


def _folders(prefix: Path) -> Iterator[Path]:
    """The folders from which an interpreter in `{prefix}/bin` imports, except the project."""
    program = Path(os.path.realpath(prefix / "bin/python3"))
    base, settings = program.parent.parent, ""
    with suppress(OSError):
        settings = (prefix / "pyvenv.cfg").read_text()
        yield from sorted(prefix.glob("lib*/python3*/site-packages"))
    libraries = [path.parent for path in sorted(base.glob("lib/python3*/os.py"))]
    yield from [path for path in libraries if path.name == program.name] or libraries
    said = settings.partition("include-system-site-packages")[2].partition("\n")[0]
    if not settings or "true" in said.lower():
        for top in (base, Path("/usr/local")) if base == Path("/usr") else (base,):
            yield from sorted(top.glob("lib/python3*/*-packages"))


def _is_script_of_python(place: str) -> bool:
    with suppress(OSError), open(place, "rb") as file:
        return b"python" in file.readline(200)
    return False


def _modules(folder: str) -> Iterator[tuple[str, str]]:
    has_packages = folder.endswith("-packages")
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            if entry.name.endswith(_METADATA):
                yield entry.path, ""
                for path in (f"{entry.path}/RECORD", f"{entry.path}/entry_points.txt"):
                    if os.path.isfile(path):
                        yield path, _file(path)
            elif entry.is_dir():
                if entry.name not in _NO_MODULES:
                    files = sorted(f"{each.path} {_stamp(each)}" for each in _loaded(entry.path))
                    text = "\n".join(files).encode(errors="surrogateescape")
                    yield entry.path, sha256(text).hexdigest()[:32]
            else:
                # The standard library has no list of files that shows whether a rewritten file is unchanged.
                yield entry.path, _file(entry.path) if has_packages else _stamp(entry)


def _loaded(place: str) -> Iterator[os.DirEntry[str]]:
    places = [place]
    while places:
        with suppress(OSError), os.scandir(places.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(LOADED):
                    yield entry
                elif entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
                    places.append(entry.path)


def _file(place: str | Path) -> str:
    """A file's identity: its content, if it is not large."""
    try:
        found = os.stat(place)
        if stat.S_ISREG(found.st_mode) and found.st_size <= HASHED_BYTES:
            return sha256(Path(place).read_bytes()).hexdigest()[:32]
    except OSError:
        return "unreadable"
    return _dated(found) if stat.S_ISREG(found.st_mode) else "folder"


def _stamp(entry: os.DirEntry[str]) -> str:
    try:
        return _dated(entry.stat())
    except OSError:
        return "unreadable"


def _dated(found: os.stat_result) -> str:
    # The inode's date cannot be set back, but other projects' links to the same file change it, too.
    return f"{found.st_size} {found.st_mtime_ns if found.st_nlink > 1 else found.st_ctime_ns}"


def _recorded(record: str) -> Iterator[tuple[str, str]]:
    """The files of an installed package with their digests."""
    packages = os.path.dirname(os.path.dirname(record))
    with suppress(OSError, ValueError, csv.Error), open(record, newline="", encoding="utf-8") as file:
        for path, digest, *_ in csv.reader(file):
            yield os.path.normpath(os.path.join(packages, path)), digest


def _unrecorded(place: str, recorded: Mapping[str, str]) -> Iterator[str]:
    """The parts of a file or a package that differ from the record."""
    inside = (path for path in recorded if path.startswith(f"{place}/") and path.endswith(LOADED))
    wanted = {place} & recorded.keys() or {path for path in inside if "/__pycache__/" not in path}
    if not wanted:
        yield f"{place} was changed"
        return
    there = {entry.path for entry in _loaded(place)} if os.path.isdir(place) else {place}
    for path in sorted(there | wanted):
        if path not in there or path not in wanted:
            yield f"{path} was {'added' if path in there else 'removed'}"
        elif recorded[path] != _digest(path):
            yield f"{path} was changed"


def _digest(place: str) -> str:
    """In the format of a RECORD."""
    with suppress(OSError):
        digest = sha256(Path(place).read_bytes()).digest()
        return f"sha256={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"
    return ""


SETTINGS: Final = re.compile(
    # Python's tools, git and tools that use its ignore files, JavaScript's, Go's and Rust's, and tool versions.
    r"pyproject\.toml|setup\.(?:cfg|py)|tox\.ini|conftest\.py|\.?(?:ruff|pytest)\.toml|\.?(?:mypy|pytest)\.ini"
    r"|\.?pylintrc(?:\.toml)?|\.(?:flake8|coveragerc|bandit|isort\.cfg|pre-commit-config\.yaml|editorconfig)"
    r"|\.git|\.gitattributes|\.\w*ignore"
    r"|package\.json|node_modules|tsconfig.*\.json|\.npmrc|\.(?:eslint|prettier|babel|stylelint|mocha|nyc)rc.*"
    r"|(?:eslint|prettier|babel|stylelint|jest|vitest|vite|biome)\.(?:config\..*|jsonc?)"
    r"|go\.(?:mod|work)|\.golangci\..*|Cargo\.toml|\.cargo|\.?(?:rustfmt|clippy)\.toml|rust-toolchain(?:\.toml)?"
    r"|\.tool-versions|\.python-version|\.nvmrc"
)
"""Names of files that tools look for in a folder and in all folders above it."""


def settings_above(workspace: Workspace) -> Iterator[Path]:
    """The settings in the folders above a checkout, nearest first."""
    for folder in workspace.path.parents:
        with suppress(OSError), os.scandir(folder) as entries:
            yield from sorted(Path(entry.path) for entry in entries if SETTINGS.fullmatch(entry.name))


def planted(workspace: Workspace) -> str:
    """What is wrong with fixloop's own folders above the checkout, as the end of a sentence about a check; usually
    empty, because fixloop puts no settings there."""
    cache = workspace.folder.parent.parent
    found = ", ".join(str(path) for path in settings_above(workspace) if path.is_relative_to(cache))
    return f"found settings that are not the project's ({found}): remove them" if found else ""
