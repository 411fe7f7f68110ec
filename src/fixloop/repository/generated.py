"""Python modules that git ignores and the project's own code imports: `_version.py`, generated parsers, extensions.

Determines which ignored files of a checkout its code needs; runs nothing. An import that a tracked file satisfies needs
no other file: a module that was also compiled in place is used as source.
"""

import ast
import os
import re
import tomllib
import warnings
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

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


def imported_and_ignored(git: Git, tracked: Collection[bytes], directory: Path) -> dict[bytes, bytes]:
    """
    The ignored modules that tracked ones import, directly or indirectly, each with one that imports it.

    Imports start at the top of `git`, where commands run (`directory`), in `src`, and next to the top-level packages.
    """
    ignored = {}
    for path in _ignored(git):
        folder, _, name = path.rpartition(b"/")
        if named := MODULE.fullmatch(name):
            # Without the suffix of its kind.
            ignored[path] = _joined(folder, named[1])
    if not ignored:
        return {}
    modules = {path for path in tracked if path.endswith(b".py")}
    search = _Search(git.directory, ignored, modules, os.path.relpath(directory, git.directory))
    return search.run()


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


class _Search:
    def __init__(self, top: Path, ignored: dict[bytes, bytes], modules: set[bytes], directory: str) -> None:
        self.top = top
        self.modules = modules
        self.folders = {parent for path in modules for parent in folders_of(path)}
        self.wanted: dict[bytes, list[bytes]] = {}
        for path, key in ignored.items():
            if not {key + b".py", key + b"/__init__.py"} & modules:
                self.wanted.setdefault(key, []).append(path)
        here = b"" if directory == "." else os.fsencode(directory)
        packages = {path.rpartition(b"/")[0] for path in modules if path.endswith(b"/__init__.py")}
        tops = {package.rpartition(b"/")[0] for package in packages} - packages
        self.roots = {b"", b"src", here, _joined(here, b"src")} | tops
        self.packages = packages

    def run(self) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        # The first part of each path that no tracked module shares: an import of the file must contain it.
        known = self.folders | self.roots
        names = set()
        for path in (path for paths in self.wanted.values() for path in paths):
            new = next((folder for folder in folders_of(path) if folder not in known), b"")
            names.add(new.rpartition(b"/")[2] or path.rpartition(b"/")[2].partition(b".")[0])
        waiting = sorted(self.modules)
        while waiting:
            importer = waiting.pop()
            for path in self._imported_by(importer, names):
                if path not in found:
                    found[path] = importer
                    waiting += [path] if path.endswith(b".py") else []
        return found

    def _imported_by(self, importer: bytes, names: set[bytes]) -> Iterator[bytes]:
        try:
            source = (self.top / os.fsdecode(importer)).read_bytes()
        except OSError:
            return
        if importer in self.modules and not any(name in source for name in names):
            return  # parsing costs a hundred times as much as looking
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        # The modules that may be meant: number of dots, and parts. `from a import b` may mean `a.b`.
        imports: list[tuple[int, list[str]]] = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imports += [(0, alias.name.split(".")) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = node.module.split(".") if node.module else []
                imports += [(node.level, [*base, alias.name]) for alias in node.names]
        folder = importer.rpartition(b"/")[0]
        for level, parts in imports:
            starts = self.roots | ({folder} - self.packages)
            if level:
                above = folder
                for _ in range(level - 1):
                    above = above.rpartition(b"/")[0]
                starts = {above}
            # The ignored files that one import uses: the module, and the packages it is in.
            for place in starts:
                for part in parts:
                    place = _joined(place, part.encode())
                    yield from self.wanted.get(place, ())
                    yield from self.wanted.get(place + b"/__init__", ())


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
