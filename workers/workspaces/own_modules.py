"""Keeps bytecode of a project's own modules, by the content of their source, from run to run.

Commands in a new workspace compile the modules they import, and pytest rewrites test modules; for a large suite that
takes longer than collecting it. So the modules that earlier commands imported are compiled before a command starts, and
kept. Only fixloop compiles kept bytecode, because the project can put anything into a command's. Owns
`{cache}/modules/`: bytecode for each interpreter, and for each project the names of its modules.
"""

import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.errors import FixloopError
from fixloop.files.atomic import write_whole
from fixloop.files.folders import is_in_place
from fixloop.machine.guard import UNCONFINED, Confined, run_guarded
from fixloop.machine.interpreters import Interpreter
from fixloop.machine.variables import allowed_variables
from workers.workspaces.compile_modules import HASHED

PROGRAM: Final = Path(__file__).with_name("compile_modules.py")
LEAST_BYTES: Final = 100_000
"""Of source: compiling less takes less time than starting another process."""
MOST_MODULES: Final = 5_000
MOST_KEPT: Final = 20_000
COMPILE_SECONDS: Final = 60.0
MOST_BYTES: Final = 10_000_000
_NAME: Final = re.compile(
    r"(?!(?:.*/)?\.\./)(?P<module>[^/\0][^\0]*)\.(?P<tag>[a-z]\w*-\w+(?:-pytest-[\w.+]+)?)\.pyc", re.DOTALL
)
_PASS_HOOK: Final = b"_call_assertion_pass"
"""Found in modules that pytest rewrote differently, because of the project's settings."""
_compiled: Final[dict[Path, bytes]] = {}
"""Bytecode that this process had compiled and kept, with its digest: a file that still has it was not replaced."""


class _Module(NamedTuple):
    source: Path
    target: Path
    """Where a command looks for its bytecode."""
    tag: str
    """The compiler: an interpreter, or pytest with it."""
    kept: Path
    """Its bytecode, once fixloop has compiled it."""
    is_lent: bool
    """Whether that exists and is old enough."""
    size: int

    @property
    def is_link(self) -> bool:
        """Bytecode of an older pytest depends on its source's date, not its content."""
        if not self.is_lent:
            return False
        with self.kept.open("rb") as file:
            return file.read(8)[4:] == HASHED


class OwnModules(NamedTuple):
    """The modules of one project, for one interpreter."""

    cache: Path
    interpreter: Interpreter
    project: str
    """Its folder or address."""

    def lend(self, pycache: Path, top: Path, before: float, confined: Confined = UNCONFINED) -> None:
        """Put the modules that earlier commands imported into a `PYTHONPYCACHEPREFIX` for a workspace at `top`.
        Bytecode kept after `before`, seconds since the epoch, is compiled again, because an inode's date cannot be set
        back, except what this process itself had compiled. An interpreter's start runs what is installed for it, which
        `[workspace] setup` may have chosen, so it is confined as a check."""
        modules = list(self._modules(pycache, top, before))
        if sum(each.size for each in modules) < LEAST_BYTES:
            return
        for folder in {each.target.parent for each in modules}:
            folder.mkdir(parents=True, exist_ok=True)
        compiled = []
        for each in modules:
            if each.is_link:
                each.target.symlink_to(each.kept)
            else:
                compiled.append(each)
        if sum(each.size for each in compiled) < LEAST_BYTES:
            return
        told = [[str(m.source), str(m.kept) if m.is_lent else "", str(m.target), m.tag] for m in compiled]
        with suppress(OSError, FixloopError):
            run_guarded(
                [self.interpreter.path, "-I", "-B", "-c", PROGRAM.read_text()],
                cwd=top,
                env=allowed_variables(os.environ),
                stdin=json.dumps(told).encode(),
                timeout_seconds=COMPILE_SECONDS,
                confined=confined,
            )
            if self._folder.is_dir() and len(os.listdir(self._folder)) > MOST_KEPT:
                shutil.rmtree(self._folder)
            self._folder.mkdir(parents=True, exist_ok=True)
            for each in compiled:
                if each.target.exists() and not each.is_lent:
                    write_whole(each.kept, data := each.target.read_bytes())
                    _compiled[each.kept] = hashlib.sha256(data).digest()

    def note(self, pycache: Path, top: Path) -> None:
        """Record the modules that commands imported from a workspace at `top`, and remove its bytecode."""
        below, names = Path(f"{pycache}{top}"), self._names()
        if not is_in_place(below, pycache):
            return
        before = list(names)
        for path in sorted(below.rglob("*.pyc")):
            if _PASS_HOOK not in (_read(path) or _PASS_HOOK):
                names.setdefault(str(path.relative_to(below)))
        known = [name for name in names if (match := _NAME.fullmatch(name)) and _source(top, match).is_file()]
        if known != before:
            self._list.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._list, "\0".join(known[-MOST_MODULES:]).encode(errors="surrogateescape"))
        shutil.rmtree(below, ignore_errors=True)

    def _modules(self, pycache: Path, top: Path, before: float) -> Iterator[_Module]:
        for name in self._names():
            if not (match := _NAME.fullmatch(name)):
                continue
            source = _source(top, match)
            if content := _read(source):
                kept = self._folder / f"{hashlib.sha256(content).hexdigest()}.{match['tag']}"
                is_lent = kept.exists() and kept.lstat().st_ctime < before
                if not is_lent and kept in _compiled:
                    is_lent = hashlib.sha256(_read(kept) or b"").digest() == _compiled[kept]
                target = Path(f"{pycache}{top}/{name}")
                yield _Module(source, target, match["tag"], kept, is_lent, len(content))

    def _names(self) -> dict[str, None]:
        with suppress(OSError):
            return dict.fromkeys(self._list.read_bytes().decode(errors="surrogateescape").split("\0"))
        return {}

    @property
    def _folder(self) -> Path:
        return self.cache / "modules" / _digest(self.interpreter.path)

    @property
    def _list(self) -> Path:
        return Path(f"{self._folder}.{_digest(self.project)}")


def _source(top: Path, match: re.Match[str]) -> Path:
    return top / f"{match['module']}.py"


def _read(path: Path) -> bytes | None:
    """None if it is no file, or too large for a module: a project may put anything in its place."""
    with suppress(OSError):
        status = path.lstat()
        if stat.S_ISREG(status.st_mode) and status.st_size <= MOST_BYTES:
            return path.read_bytes()
    return None


def _digest(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:24]
