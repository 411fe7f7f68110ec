"""A Python project as its own files tell it, read once for all that is proposed for it."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fixloop.configuration.declarations import Declarations, declarations_of
from fixloop.configuration.installed import Installed
from fixloop.configuration.pre_commit import Hook, hooks_of
from fixloop.configuration.project_commands import ProjectCommand, project_commands
from fixloop.configuration.proposal import Need
from fixloop.configuration.python_tests import PytestSettings, pytest_settings

# A lock file, or a table of pyproject.toml, and the command that adds a tool to what it locks.
LOCKS = (
    ("uv.lock", "uv", "uv add --dev {}"),
    ("poetry.lock", "poetry", "poetry add --group dev {}"),
    ("pdm.lock", "pdm", "pdm add -dG dev {}"),
    ("Pipfile", "", "pipenv install --dev {}"),
)
# The same where the project names the tool already, and nobody installed it.
SYNCS = {
    "uv.lock": "uv sync --all-groups --all-extras",
    "poetry.lock": "poetry install --all-groups",
    "pdm.lock": "pdm install -G:all",
    "Pipfile": "pipenv install --dev",
}


class PythonProject(NamedTuple):
    """All of it."""

    declared: Declarations
    pytest: PytestSettings
    commands: tuple[ProjectCommand, ...]
    hooks: tuple[Hook, ...]
    installed: Installed | None
    """What is there; None where the checks run elsewhere, or later."""

    @property
    def directory(self) -> Path:
        return self.declared.directory

    def module(self, name: str, package: str = "") -> Need:
        """A module that the project's interpreter has to have."""
        return Need("module", name, installing(package or name, self.declared, self.installed))

    def program(self, name: str) -> Need:
        """A program beside the project's interpreter, or on the PATH."""
        return Need("program", name, installing(name, self.declared, self.installed))


def python_project(
    directory: Path, pyproject: Mapping[str, Any], installed: Installed | None
) -> PythonProject:
    """Read the project at `directory`; nothing of it is run."""
    declared = declarations_of(directory, pyproject)
    return PythonProject(
        declared,
        pytest_settings(declared),
        project_commands(declared, pyproject),
        hooks_of(directory),
        installed,
    )


def installing(package: str, declared: Declarations, installed: Installed | None) -> str:
    """The one command that brings `package` to the project's environment."""
    for lock, tool, command in LOCKS:
        if (declared.directory / lock).is_file() or (tool and tool != "uv" and tool in declared.tools):
            return SYNCS[lock] if package in declared.dependencies else command.format(package)
    if installed is None:
        return f"python -m pip install {package}"
    if not installed.interpreter.prefix:
        files = ("pyproject.toml", "setup.py", "setup.cfg")
        own = "-e . " if any((declared.directory / name).is_file() for name in files) else ""
        return f"python3 -m venv .venv && .venv/bin/pip install {own}{package}"
    where = f"'{installed.where}'" if " " in installed.where else installed.where
    if (Path(installed.interpreter.prefix) / "bin" / "pip").exists():
        return f"{where}/bin/pip install {package}"
    if shutil.which("uv", path=installed.variables.get("PATH")):
        return f"uv pip install --python {where} {package}"
    return f"{where}/bin/python -m pip install {package}"
