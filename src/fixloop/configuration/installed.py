"""Finds what can start here by asking the project's interpreter and the PATH, never by guessing from a declaration.

Starts the interpreter once for all modules that presets ask for, and pytest only to list its tests.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fixloop.configuration.model import Need
from fixloop.configuration.pre_commit import hooks_of
from fixloop.errors import InfrastructureError
from fixloop.machine.interpreter_answers import importable_modules
from fixloop.machine.interpreters import Interpreter
from fixloop.protocol.launchers import PYTHON

USUAL: Final = frozenset({"pytest", "pytest_cov", "mypy", "compileall", "unittest"})
"""The modules that presets ask for, all answered by one start of the interpreter."""
COLLECT_SECONDS: Final = 20.0
_NOTHING_COLLECTED: Final = 5


@dataclass(frozen=True)
class Installed:
    """The project's interpreter, and the places to look for its tools."""

    interpreter: Interpreter
    directory: Path
    """The folder of the checks' code."""
    home: Path
    """The same folder in the user's checkout, with its ignored files; `directory` itself if there is no other."""
    variables: Mapping[str, str] = field(default_factory=lambda: os.environ)
    ask: Callable[[Interpreter, Path, Iterable[str]], frozenset[str]] = importable_modules
    known: dict[str, bool] = field(default_factory=dict)
    """Modules already asked for."""

    @property
    def where(self) -> str:
        """The interpreter's environment for a message, relative to the project."""
        prefix = self.interpreter.prefix
        if prefix:
            path, home = Path(prefix), self.home.resolve()
            return str(path.relative_to(home)) if path.is_relative_to(home) else str(path)
        return self.interpreter.path or "this machine, which has no Python"

    def has(self, need: Need) -> bool:
        if need.kind == "module":
            return self.has_module(need.name)
        if need.kind == "file":
            return (self.home / need.name).exists() or (self.directory / need.name).exists()
        return bool(self.program(need.name))

    def has_module(self, name: str) -> bool:
        """Whether the interpreter, started where checks run, can import the module."""
        if name not in self.known:
            asked = USUAL - self.known.keys() | {name}
            found = self.ask(self.interpreter, self.directory, sorted(asked))
            self.known.update({each: each in found for each in asked})
        return self.known[name]

    def program(self, name: str) -> str:
        """The path of a program next to the interpreter or on the PATH; empty if there is none."""
        if self.interpreter.path and PYTHON.fullmatch(name):
            return self.interpreter.path
        own = str(Path(self.interpreter.path).parent) if self.interpreter.path else ""
        path = os.pathsep.join(filter(None, (own, self.variables.get("PATH", os.defpath))))
        return shutil.which(name, path=path) or ""

    def from_environments(self, name: str, *, hooks: bool) -> str:
        """A program in an environment made by tox, nox or pre-commit, the last without the project's dependencies."""
        environments: list[Path | None] = []
        for folder in (".tox", ".nox"):
            environments += sorted((self.home / folder).glob("*/"))
        for hook in hooks_of(self.directory) if hooks else ():
            environments.append(hook.environment(self.variables))
        for environment in filter(None, environments):
            program = environment / "bin" / name
            if program.is_file() and os.access(program, os.X_OK):
                return str(program)
        return ""

    def collects(self) -> bool | None:
        """Whether pytest finds a test here; None if pytest is missing or gives no answer in time."""
        if not self.has_module("pytest"):
            return None
        # Seldom needed, and slow to load.
        from fixloop.machine.sandbox import run_reading

        command = [self.interpreter.path, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
        variables = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1"}
        try:
            # Listing tests runs the project's code.
            done = run_reading(
                command,
                cwd=self.directory,
                source=self.home,
                variables=variables,
                timeout_seconds=COLLECT_SECONDS,
            )
        except InfrastructureError:
            return None
        return None if done.not_found or done.timed_out else done.exit_code != _NOTHING_COLLECTED
