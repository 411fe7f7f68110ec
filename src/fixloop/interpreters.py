"""Which `python` belongs to a project, and what it can import.

Owns the order of choice; runs nothing of the project.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

__all__ = ["Interpreter", "choose_interpreter", "importable_with", "venv_in"]

VENV_NAMES: Final = (".venv", "venv")
LOOK_SECONDS: Final = 20.0
LOOK: Final = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"


@dataclass(frozen=True)
class Interpreter:
    """A Python to run checks with; `path` is empty where the machine has none."""

    path: str
    prefix: str
    """The virtual environment's folder, empty for one without."""
    origin: Literal["setup", "checkout", "VIRTUAL_ENV", "PATH", "none"]


def choose_interpreter(
    *, made: Path | None, source: Path | None, subdirectory: str, variables: Mapping[str, str]
) -> Interpreter:
    """
    The interpreter, in order: what setup made, the checkout's `.venv` or `venv`, `$VIRTUAL_ENV`, PATH.

    Args:
        made: the folder in which `[workspace] setup` ran (`prepare`), None where there is no setup.
        source: the top of the user's checkout, None where the source is a URL.
        subdirectory: where commands run, seen from the top.
        variables: the worker's environment.
    """
    for top, origin in ((made, "setup"), (source, "checkout")):
        venv = venv_in(top, subdirectory) if top is not None else None
        if venv is not None:
            return Interpreter(str(_python_of(venv)), str(venv), "setup" if origin == "setup" else "checkout")
    active = variables.get("VIRTUAL_ENV", "")
    if active and _is_venv(Path(active)):
        return Interpreter(str(_python_of(Path(active))), active, "VIRTUAL_ENV")
    path = variables.get("PATH", os.defpath)
    program = shutil.which("python", path=path) or shutil.which("python3", path=path)
    return Interpreter(program, "", "PATH") if program else Interpreter("", "", "none")


def venv_in(top: Path, subdirectory: str) -> Path | None:
    """The virtual environment in a checkout: where commands run, else at the top."""
    for folder in dict.fromkeys((top / subdirectory, top)):
        for name in VENV_NAMES:
            if _is_venv(folder / name):
                return folder / name
    return None


def importable_with(interpreter: Interpreter) -> Callable[[str], bool]:
    """A function that says whether `interpreter` can import a module; no interpreter can import none."""

    def importable(module: str) -> bool:
        if not interpreter.path:
            return False
        command = [interpreter.path, "-c", LOOK, module]
        try:
            done = subprocess.run(command, capture_output=True, timeout=LOOK_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0

    return importable


def _is_venv(folder: Path) -> bool:
    return (folder / "pyvenv.cfg").is_file() and os.access(_python_of(folder), os.X_OK)


def _python_of(venv: Path) -> Path:
    return venv / "bin" / "python"
