"""Reuses Python bytecode of the interpreter's libraries in the new caches of a workspace.

Commands compile the project's modules themselves: an edit of the same size in the same second would otherwise run old
bytecode, and nobody can plant bytecode. Compiling the libraries at each start takes three times as long as a small test
run, so links lead to the environment's own bytecode. Owns `{cache}/imported/`: folders of such links, each used by one
workspace at a time, because creating them takes longer than checking them, and lists of the modules that commands have
imported.
"""

import hashlib
import os
import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from fixloop.files.atomic import write_whole
from fixloop.machine.interpreters import Interpreter

MOST_MODULES: Final = 5_000
MOST_FOLDERS: Final = 16
FEWEST_IMPORTED: Final = 100
"""The fewest imports of a command that shows what is usually imported: Python itself makes half as many."""
MOST_CHARACTERS: Final = 1000
"""Of the name of a folder with bytecode; a command may nest them too deeply for a path, or for Python."""
_SELDOM_IMPORTED: Final = frozenset({"test", "tests", "idlelib", "lib2to3", "tkinter", "turtledemo"})
_LIBRARY: Final = re.compile(r"(?!(?:.*/)?\.\./).+/lib(?:64)?/python3[\d.]*/(?:.+/)?[^/]+\.pyc")


def lend(pycache: Path, cache: Path, interpreter: Interpreter, before: float) -> None:
    """Make a new `PYTHONPYCACHEPREFIX` with links to the bytecode that was compiled before `before`, seconds since the
    epoch, and nothing else. An inode's date cannot be set back, so a fixer's bytecode is never included. The folder is
    reused from an earlier command, if possible, with links to all modules that commands of this interpreter imported;
    until enough of these are known, with links to all library modules that were ever imported."""
    folders = _folders(cache, interpreter)
    lent, made = set[str](), set[str]()
    if _take(folders, pycache):
        for name, entry in _files(pycache):
            compiled = _compiled(name)
            with suppress(OSError):
                is_link = _LIBRARY.fullmatch(name) and os.readlink(entry.path) == compiled
                if is_link and os.stat(compiled).st_ctime < before:
                    lent.add(name)
                    continue
            os.unlink(entry.path)
    known = _known(folders)
    is_enough = lent or len(known) >= FEWEST_IMPORTED
    for name in islice(known if is_enough else _imported(interpreter), MOST_MODULES):
        if name in lent:
            continue
        folder, compiled = os.path.split(name)[0], _compiled(name)
        with suppress(OSError, ValueError):
            if _LIBRARY.fullmatch(name) and os.stat(compiled).st_ctime < before:
                if folder not in made:
                    os.makedirs(pycache / folder, exist_ok=True)
                    made.add(folder)
                os.symlink(compiled, f"{pycache}/{name}")
                if is_enough:
                    os.readlink(f"{pycache}/{name}")


def give_back(pycache: Path, cache: Path, interpreter: Interpreter) -> None:
    """Keep a command's links and the names of the library modules it imported for the next one; delete its bytecode."""
    folders = _folders(cache, interpreter)
    with suppress(OSError):
        links, imported = list[str](), list[str]()
        for name, entry in _files(pycache):
            if entry.is_symlink():
                links.append(name)
                # A link that was read has a later access date, if the system records it.
                at = entry.stat(follow_symlinks=False)
                if at.st_atime_ns > at.st_mtime_ns:
                    imported.append(name)
                continue
            os.unlink(entry.path)
            if _LIBRARY.fullmatch(name) and os.path.isfile(_compiled(name)):
                os.symlink(_compiled(name), entry.path)
                os.readlink(entry.path)
                imported.append(name)
        before = _known(folders)
        known = list(dict.fromkeys([*imported, *before]))[:MOST_MODULES]
        folders.mkdir(parents=True, exist_ok=True)
        if set(known) != set(before):
            write_whole(Path(f"{folders}.modules"), "\n".join(known).encode())
        if len(known) >= min(FEWEST_IMPORTED, MOST_MODULES):
            for name in {*links, *imported}.difference(known):
                os.unlink(pycache / name)
        if len(os.listdir(folders)) < MOST_FOLDERS:
            os.rename(pycache, folders / os.urandom(8).hex())


def _imported(interpreter: Interpreter) -> Iterator[str]:
    """The bytecode of the standard library and the packages next to it that was read since it was written, if the
    system records that; named as below a prefix. Deep paths come last, because fewer commands import them."""
    own, base = (Path(path).parent.parent for path in (interpreter.path, os.path.realpath(interpreter.path)))
    libraries = (each for top in dict.fromkeys((base, own)) for each in sorted(top.glob("lib*/python3*")))
    waiting = deque(str(each) for each in libraries if not each.parent.is_symlink())
    while waiting:
        folder = waiting.popleft()
        is_compiled = folder.endswith("/__pycache__")
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if is_compiled and ".opt-" not in entry.name:
                    if (at := entry.stat()).st_atime_ns > at.st_mtime_ns:
                        yield f"{folder[1:].removesuffix('/__pycache__')}/{entry.name}"
                elif entry.name not in _SELDOM_IMPORTED and entry.is_dir(follow_symlinks=False):
                    is_of_base = own != base and entry.path.startswith(f"{base}/")
                    if not (is_of_base and entry.name.endswith("-packages")):
                        waiting.append(entry.path)


def _take(folders: Path, pycache: Path) -> bool:
    with suppress(OSError):
        for name in os.listdir(folders):
            # Another worker may have done it.
            with suppress(OSError):
                os.rename(folders / name, pycache)
                return True
    return False


def _known(folders: Path) -> list[str]:
    """The modules that commands have imported, named as below a prefix."""
    try:
        return Path(f"{folders}.modules").read_text(errors="replace").split("\n")
    except OSError:
        return []


def _folders(cache: Path, interpreter: Interpreter) -> Path:
    return cache / "imported" / hashlib.sha256(os.fsencode(interpreter.path)).hexdigest()[:24]


def _compiled(name: str) -> str:
    """The environment's bytecode for this place below a `PYTHONPYCACHEPREFIX`."""
    folder, file = os.path.split(name)
    return f"/{folder}/__pycache__/{file}"


def _files(pycache: Path | str, below: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
    """All files below it, by name; empty folders and links to folders are removed. No link is followed, because that
    would look like a read by Python. Raises OSError: a command nested them too deeply."""
    if len(below) > MOST_CHARACTERS:
        raise OSError(f"{below[:100]}… is no place for bytecode")
    found: list[os.DirEntry[str]] = []
    # Another worker may take the folder, or an empty one in it, at the same time.
    with suppress(FileNotFoundError), os.scandir(pycache) as entries:
        found += entries
    if below and not found:
        with suppress(OSError):
            os.rmdir(pycache)
    for entry in found:
        if entry.is_dir(follow_symlinks=False):
            yield from _files(entry.path, f"{below}{entry.name}/")
        elif entry.is_symlink() and not entry.name.endswith(".pyc"):
            with suppress(FileNotFoundError):
                os.unlink(entry.path)
        else:
            yield f"{below}{entry.name}", entry
