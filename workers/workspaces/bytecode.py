"""What Python has compiled of the interpreter's own libraries, lent to the fresh caches of a workspace.

Commands compile the project's modules themselves, because a same-size edit in the same second would otherwise run old
bytecode, and so that nobody can plant it. Compiling the libraries again at each start takes three times as long as a
small test run, so links lead to what the environment itself keeps of these. Owns `{cache}/imported/`: folders of such
links, each used by one workspace at a time, because making them takes longer than looking through them.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from fixloop.machine.interpreters import Interpreter

MOST_MODULES: Final = 5_000
MOST_FOLDERS: Final = 16
_LIBRARY: Final = re.compile(r".+/lib(?:64)?/python3[\d.]*/(?:.+/)?[^/]+\.pyc")


def lend(pycache: Path, cache: Path, interpreter: Interpreter, before: float) -> None:
    """Make a new `PYTHONPYCACHEPREFIX` of a folder that an earlier command had, with links to what was compiled before
    `before`, seconds since the epoch, and nothing else. The date of an inode cannot be set back, so a fixer's bytecode
    is never among it."""
    if _taken(_folders(cache, interpreter), pycache):
        for name in _files(pycache):
            compiled = _compiled(name)
            with suppress(OSError):
                is_lent = _LIBRARY.fullmatch(name) and os.readlink(pycache / name) == compiled
                if is_lent and os.stat(compiled).st_ctime < before:
                    continue
            os.unlink(pycache / name)


def give_back(pycache: Path, cache: Path, interpreter: Interpreter) -> None:
    """Keep of a command's bytecode which modules of libraries it imported, for the next one; what it wrote goes."""
    folders = _folders(cache, interpreter)
    with suppress(OSError):
        for count, name in enumerate(_files(pycache)):
            if (pycache / name).is_symlink() and count < MOST_MODULES:
                continue
            os.unlink(pycache / name)
            if _LIBRARY.fullmatch(name) and os.path.isfile(_compiled(name)) and count < MOST_MODULES:
                os.symlink(_compiled(name), pycache / name)
        folders.mkdir(parents=True, exist_ok=True)
        if len(os.listdir(folders)) < MOST_FOLDERS:
            os.rename(pycache, folders / os.urandom(8).hex())


def _taken(folders: Path, pycache: Path) -> bool:
    with suppress(OSError):
        for name in os.listdir(folders):
            # Another worker may be faster.
            with suppress(FileNotFoundError):
                os.rename(folders / name, pycache)
                return True
    return False


def _folders(cache: Path, interpreter: Interpreter) -> Path:
    return cache / "imported" / hashlib.sha256(os.fsencode(interpreter.path)).hexdigest()[:24]


def _compiled(name: str) -> str:
    """Where the environment keeps what is at this place below a `PYTHONPYCACHEPREFIX`."""
    folder, file = os.path.split(name)
    return f"/{folder}/__pycache__/{file}"


def _files(pycache: Path) -> Iterator[str]:
    """All below it that is no folder, without folders that have nothing; a link to a folder is removed."""
    for folder, inner, files in os.walk(pycache, topdown=False):
        for name in inner:
            if os.path.islink(place := os.path.join(folder, name)):
                os.unlink(place)
        yield from [os.path.relpath(os.path.join(folder, file), pycache) for file in files]
        with suppress(OSError):
            os.rmdir(folder)
