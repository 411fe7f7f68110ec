"""Files that git ignores and the project's code needs: Python modules that it imports, such as `_version.py`, generated
parsers and extensions, message catalogues (`.mo`) compiled from tracked ones, and a pytest plugin's `.egg-info`.

Runs nothing. An import that a tracked file satisfies needs no other file: a module that was also compiled in place is
used as source.
"""

import ast
import os
import re
import tomllib
import warnings
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final

from fixloop.files.atomic import read
from fixloop.repository.git import Git
from fixloop.repository.tree import CACHES, folders_of, records

MODULE: Final = re.compile(rb"([A-Za-z_]\w*)(\.py|(\.[\w-]+)?\.so)")
"""A module's file: source, or an extension with or without its ABI tag."""
NOT_ENTERED: Final = frozenset(name for name in CACHES if "*" not in name) | {".git", ".fixloop"}
VERSION_FILES: Final = (
    ("hatch-vcs", ("tool", "hatch", "build", "hooks", "vcs"), ("version-file",)),
    ("setuptools-scm", ("tool", "setuptools_scm"), ("version_file", "write_to")),
    ("pdm", ("tool", "pdm", "version"), ("write_to",)),
)
"""Where build tools find the version file's name: tool, table of pyproject.toml, keys."""


def needed_and_ignored(git: Git, tracked: Collection[bytes], directory: Path) -> dict[bytes, bytes]:
    """
    The ignored modules that tracked ones import, directly or indirectly, each with one that imports it, compiled
    catalogues with their sources, and what pytest reads.

    Imports start at the top of `git`, where commands run (`directory`), in `src`, and next to the top-level packages.
    """
    modules = {path for path in tracked if path.endswith(b".py")}
    wanted: dict[bytes, list[bytes]] = {}
    found: dict[bytes, bytes] = {}
    for path in _ignored(git):
        folder, _, name = path.rpartition(b"/")
        if name.endswith(b".mo") and (source := path[:-2] + b"po") in tracked:
            found[path] = source
        elif folder.endswith(b".egg-info"):
            # pytest reads here which modules of a plugin it rewrites: without it, it warns in the plugin's tests.
            if b"[pytest11]" in (read(git.directory, f"{os.fsdecode(folder)}/entry_points.txt") or b""):
                found[path] = b"pytest"
        elif named := MODULE.fullmatch(name):
            # Without the suffix of its kind.
            key = _joined(folder, named[1])
            if modules.isdisjoint({key + b".py", key + b"/__init__.py"}):
                wanted.setdefault(key, []).append(path)
    if not wanted:
        return found
    below = os.path.relpath(directory, git.directory)
    here = b"" if below == "." else os.fsencode(below)
    packages = {path.rpartition(b"/")[0] for path in modules if path.endswith(b"/__init__.py")}
    tops = {package.rpartition(b"/")[0] for package in packages} - packages
    roots = {b"", b"src", here, _joined(here, b"src")} | tops
    # The first part of each path that no tracked module shares: an import of the file must contain it.
    known, names = roots.union(*map(folders_of, modules)), set()
    for path in chain.from_iterable(wanted.values()):
        new = next((folder for folder in folders_of(path) if folder not in known), b"")
        names.add(new.rpartition(b"/")[2] or path.rpartition(b"/")[2].partition(b".")[0])
    waiting = sorted(modules)
    while waiting:
        importer = waiting.pop()
        folder = importer.rpartition(b"/")[0]
        file = git.directory / os.fsdecode(importer)
        for level, parts in _imports(file, names if importer in modules else {b""}):
            above = folder
            for _ in range(level - 1):
                above = above.rpartition(b"/")[0]
            # The ignored files that one import uses: the module, and the packages it is in.
            for place in {above} if level else roots | ({folder} - packages):
                for part in parts:
                    place = _joined(place, part.encode())
                    for path in (*wanted.get(place, ()), *wanted.get(place + b"/__init__", ())):
                        if path not in found:
                            found[path] = importer
                            waiting += [path] if path.endswith(b".py") else []
    return found


def absent_version_files(top: Path, pyproject: str) -> Iterator[str]:
    """A sentence for each version file that pyproject.toml has a tool write and that is missing in the folder `top`."""
    try:
        document = tomllib.loads(pyproject)
    except ValueError:
        return
    for tool, table, keys in VERSION_FILES:
        settings: Any = document
        for name in table:
            settings = settings.get(name, {}) if isinstance(settings, dict) else {}
        for key in keys if isinstance(settings, dict) else ():
            file = settings.get(key)
            if isinstance(file, str) and not os.path.lexists(top / file):
                yield f"{file} is not there: {tool} writes it when the project is installed"


def _imports(file: Path, names: Collection[bytes]) -> list[tuple[int, list[str]]]:
    """The modules that a source with one of `names` in it may mean: number of dots, and parts. `from a import b` may
    mean `a.b`. None for a source that cannot be read."""
    try:
        source = file.read_bytes()
        # Parsing costs a hundred times as much as looking.
        if not any(name in source for name in names):
            return []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    imports: list[tuple[int, list[str]]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports += [(0, alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module.split(".") if node.module else []
            imports += [(node.level, [*base, alias.name]) for alias in node.names]
    return imports


def _ignored(git: Git) -> Iterator[bytes]:
    top = os.fsencode(git.directory)
    for path in records(git.output("ls-files", "-o", "-i", "-z", "--exclude-standard", "--directory")):
        if not NOT_ENTERED.isdisjoint(os.fsdecode(path).split("/")):
            continue
        if not path.endswith(b"/"):
            yield path
            continue
        for place, folders, files in os.walk(os.path.join(top, path.rstrip(b"/"))):
            if os.path.lexists(os.path.join(place, b"pyvenv.cfg")):
                folders.clear()
                continue
            folders[:] = [name for name in folders if os.fsdecode(name) not in NOT_ENTERED]
            below = os.path.relpath(place, top)
            yield from (os.path.join(below, name) for name in files)


def _joined(folder: bytes, name: bytes) -> bytes:
    return folder + b"/" + name if folder else name
