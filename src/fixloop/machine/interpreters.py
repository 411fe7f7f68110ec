"""Finds the `python` of a project.

Owns the order of choice; runs no code of the project.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

VENV_NAMES: Final = (".venv", "venv")
LOOK_SECONDS: Final = 20.0
SHIM_SECONDS: Final = 60
"""How long a version manager's choice is cached."""


@dataclass(frozen=True)
class Interpreter:
    """A Python for running checks; `path` is empty if the machine has none."""

    path: str
    prefix: str
    """The virtual environment's folder; empty if there is none."""
    origin: Literal["setup", "checkout", "VIRTUAL_ENV", "PATH", "none"]


def choose_interpreter(
    *, made: Path | None, source: Path | None, subdirectory: str, variables: Mapping[str, str]
) -> Interpreter:
    """
    The interpreter, in order: what setup made, the checkout's `.venv` or `venv`, `$VIRTUAL_ENV`, the only environment
    in a folder of the checkout, PATH.

    `made` is the folder in which `[workspace] setup` ran, `source` the top of the checkout, if any. On the PATH
    fixloop's own environment is skipped, because its packages are not the project's. An activated environment is used
    even if it has fixloop, except one that pre-commit activates for a hook. A version manager is asked for the
    interpreter itself: its shim starts slowly and has no packages next to it.
    """
    tops: dict[Literal["setup", "checkout"], Path | None] = {"setup": made, "checkout": source}
    for origin, top in tops.items():
        # Where commands run, else at the top.
        near = () if top is None else (top / subdirectory, top)
        places = (folder / name for folder in near for name in VENV_NAMES)
        if (venv := next(filter(_is_venv, places), None)) is not None:
            return Interpreter(str(_python_of(venv)), str(venv), origin)
    active = variables.get("VIRTUAL_ENV", "")
    own = os.path.realpath(os.path.join(sys.prefix, "bin")) if sys.prefix != sys.base_prefix else ""
    is_hooks = "PRE_COMMIT" in variables and os.path.realpath(os.path.join(active, "bin")) == own
    if active and _is_venv(Path(active)) and not is_hooks:
        return Interpreter(str(_python_of(Path(active))), active, "VIRTUAL_ENV")
    below = [] if source is None else [place for name in VENV_NAMES for place in source.glob(f"*/{name}")]
    if len(venvs := [*filter(_is_venv, below)]) == 1:
        return Interpreter(str(_python_of(venvs[0])), str(venvs[0]), "checkout")
    folders = variables.get("PATH", os.defpath).split(os.pathsep)
    path = os.pathsep.join(folder for folder in folders if os.path.realpath(folder) != own)
    program = shutil.which("python", path=path) or shutil.which("python3", path=path)
    if program and Path(program).parent.name == "shims":
        folder = os.path.join(source, subdirectory) if source is not None else os.getcwd()
        program = _behind_shim(program, folder, int(time.monotonic() // SHIM_SECONDS))
    return Interpreter(program, "", "PATH") if program else Interpreter("", "", "none")


def stamps(interpreter: Interpreter, words: Iterable[str], path: str) -> list[str]:
    """Stamps that change when a tool is installed again: of the interpreter, its packages' folder, and each program in
    `words` on the PATH `path`, with size and date."""
    programs = [shutil.which(word, path=path) for word in words if not word.startswith("-")]
    packages = map(str, Path(interpreter.path).parent.parent.glob("lib/python*/site-packages"))
    found = []
    for place in (interpreter.path, *packages, *filter(None, programs)):
        try:
            status = os.stat(place)
        except OSError:
            found.append(place)
        else:
            found.append(f"{os.path.realpath(place)} {status.st_size} {status.st_mtime_ns}")
    return found


def printed(argv: Sequence[str], folder: str | Path, variables: Mapping[str, str] | None = None) -> bytes:
    """What a command prints. Raises OSError or SubprocessError, also if it fails or takes more than LOOK_SECONDS."""
    how: dict[str, Any] = {"capture_output": True, "timeout": LOOK_SECONDS, "check": True}
    return bytes(subprocess.run(argv, cwd=folder, env=variables, **how).stdout)


@lru_cache(maxsize=64)
def _behind_shim(program: str, folder: str, _until: int) -> str:
    """The interpreter that a shim of pyenv, asdf or mise starts in a folder; the shim itself if it starts none."""
    try:
        if found := _by_pyenv(Path(program), folder):
            return found
        said = printed([program, "-I", "-S", "-c", "import sys; print(sys.executable)"], folder)
    except (OSError, subprocess.SubprocessError):
        return program
    found = os.fsdecode(said).strip()
    return found if os.access(found, os.X_OK) else program


def _by_pyenv(shim: Path, folder: str) -> str:
    """The interpreter of a pyenv shim if one version is named in full, found a tenth of a second faster; else empty."""
    top, above = shim.parent.parent, [Path(folder), *Path(folder).parents]
    files = filter(Path.is_file, [*(each / ".python-version" for each in above), top / "version"])
    said = os.environ.get("PYENV_VERSION") or next((file.read_text(errors="replace") for file in files), "")
    versions = said.replace(":", " ").split()
    found = top.joinpath("versions", *versions, "bin", shim.name)
    is_plain = len(versions) == 1 and "/" not in said and versions[0].isprintable()
    return str(found) if is_plain and os.access(found, os.X_OK) else ""


def _is_venv(folder: Path) -> bool:
    return (folder / "pyvenv.cfg").is_file() and os.access(_python_of(folder), os.X_OK)


def _python_of(venv: Path) -> Path:
    return venv / "bin" / "python"
