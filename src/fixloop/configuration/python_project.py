"""Reads a Python project's files once, for everything that is proposed for it.

pytest's settings, and pytest itself in doubt, decide if it has tests, not file names alone.
"""

import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from fixloop.configuration import layout
from fixloop.configuration.declarations import (
    SIGNS,
    Declarations,
    declarations_of,
    table_in,
    text_of,
    toml_of,
)
from fixloop.configuration.installed import Installed
from fixloop.configuration.model import Need
from fixloop.configuration.pre_commit import Hook, hooks_of
from fixloop.configuration.project_commands import ProjectCommand, arguments_of, project_commands

_TOMLS: Final = (".pytest.toml", "pytest.toml")
_IMPORTED: Final = re.compile(r"^(?:from|import)\s+(\w+)", re.MULTILINE)
_PACKAGE: Final = re.compile(r"^\[(?:project|tool\.poetry|metadata)\]|\bsetup\(", re.MULTILINE)
_IMPORT: Final = re.compile(
    r"^\s*(?:import|from)\s+(?:[\w. ]+,|twisted\.trial(?:\.| import ))*? *(pytest|unittest)\b", re.MULTILINE
)
_FUNCTION: Final = re.compile(rf"(?m)^\s*(?:async )?def test|{_IMPORT.pattern}")
_TEST: Final = re.compile(
    rf"{_FUNCTION.pattern}|^class |^\s*(?:from .*)?import .*\b[Tt]est|^\s*[Tt]est\w*\s*(?:[,:=)]|$)"
    r"|\bimport \*|\b(?:exec|globals|locals|setattr|vars)\("
)


class PytestSettings(NamedTuple):
    """The project's own settings for pytest."""

    testpaths: tuple[str, ...]
    patterns: tuple[str, ...]
    """`python_files`; empty for pytest's defaults."""
    addopts: str
    pythonpath: str
    place: str
    """The place of `testpaths`; empty if it is not set."""
    is_set: bool


class Tests(NamedTuple):
    runner: str
    """`pytest` or `unittest`."""
    why: str
    """Empty if there are test files, and nothing says how to run them."""
    files: tuple[str, ...] = ()
    """Those with names that pytest would not look for."""


def pytest_settings(declared: Declarations) -> PytestSettings:
    """pytest's settings, from all files that may hold them."""
    tables: dict[str, Mapping[str, Any]] = {
        "pyproject.toml: [tool.pytest]": declared.table("pytest"),
        "pyproject.toml: [tool.pytest.ini_options]": declared.table("pytest", "ini_options"),
        "setup.cfg: [tool:pytest]": declared.section("setup.cfg", "tool:pytest") or {},
        "tox.ini: [pytest]": declared.section("tox.ini", "pytest") or {},
        "pytest.ini": declared.section("pytest.ini", "pytest") or {},
        ".pytest.ini": declared.section(".pytest.ini", "pytest") or {},
        **{name: table_in(toml_of(declared.directory / name), "pytest") for name in _TOMLS},
    }
    settings: dict[str, str] = {}
    for table in tables.values():
        for key, value in table.items():
            settings[key] = "\n".join(map(str, value)) if isinstance(value, list) else str(value)
    place = "".join([name for name, table in tables.items() if "testpaths" in table][-1:])
    paths, files = (tuple(settings.get(key, "").split()) for key in ("testpaths", "python_files"))
    addopts, pythonpath = (settings.get(key, "") for key in ("addopts", "pythonpath"))
    return PytestSettings(paths, files, addopts, pythonpath, place, bool(settings))


def _said_by_names(directory: Path, settings: PytestSettings, files: list[Path]) -> str:
    """The evidence that there are tests for certain; empty if only pytest could say."""
    if "--doctest-modules" in settings.addopts and layout.has_python(directory):
        return "addopts: --doctest-modules"
    for name in (name.rstrip("/") for name in settings.testpaths):
        places = [directory] if name in {"", "."} else []
        with suppress(ValueError, NotImplementedError, IndexError):
            places = places or sorted(directory.glob(name))
        for place in places:
            if place.is_file() or any(path.is_relative_to(place) for path in files):
                return f"{settings.place}: testpaths"
    for path in files:
        inside = path.relative_to(directory)
        if len(inside.parts) == 1 or not layout.TEST_FOLDERS.isdisjoint(inside.parts):
            return str(inside)
    return ""


# A lock file or a table of pyproject.toml, the command that adds and locks a tool, and the command that installs
# everything locked.
LOCKS = (
    ("uv.lock", "uv", "uv add --dev {}", "uv sync --all-groups --all-extras"),
    ("poetry.lock", "poetry", "poetry add --group dev {}", "poetry install --all-groups"),
    ("pdm.lock", "pdm", "pdm add -dG dev {}", "pdm install -G:all"),
    ("Pipfile", "", "pipenv install --dev {}", "pipenv install --dev"),
)


class PythonProject(NamedTuple):
    declared: Declarations
    pytest: PytestSettings
    commands: tuple[ProjectCommand, ...]
    hooks: tuple[Hook, ...]
    installed: Installed | None
    """The installed tools; None if the checks run elsewhere, or later."""

    @property
    def directory(self) -> Path:
        return self.declared.directory

    def module(self, name: str, package: str = "") -> Need:
        """A module that the project's interpreter must have."""
        return Need("module", name, installing(package or name, self.declared, self.installed))

    def program(self, name: str) -> Need:
        """A program next to the project's interpreter, or on the PATH."""
        return Need("program", name, installing(name, self.declared, self.installed))


def python_project(
    directory: Path, pyproject: Mapping[str, Any], installed: Installed | None
) -> PythonProject:
    """Read the project at `directory` without running any of it."""
    declared = declarations_of(directory, pyproject)
    settings, commands = pytest_settings(declared), project_commands(declared, pyproject)
    return PythonProject(declared, settings, commands, hooks_of(directory), installed)


def tests_of(project: PythonProject) -> Tests | None:
    """The project's tests; None if none are known."""
    directory, settings, installed = project.directory, project.pytest, project.installed
    patterns = settings.patterns or layout.TEST_FILES
    below = layout.files_below(directory)
    scripts = [] if settings.is_set else [directory / each for each in scripts_of(directory)]
    files = [path for path in below if path not in scripts and any(map(path.match, patterns))]
    said = _said_by_names(directory, settings, files)
    place = project.declared.place(SIGNS["pytest"])
    has_pytest = installed is not None and installed.has_module("pytest")
    if installed is not None and not place and not (has_pytest and (said or files)):
        found = list(layout.unittest_files(directory))
        if {name for path in found for name in _IMPORT.findall(text_of(path))} == {"unittest"}:
            return Tests("unittest", said or _said_by_names(directory, settings, found))
    place = place or next((it.why for it in project.commands if arguments_of("pytest", it) is not None), "")
    if installed is None or not has_pytest:
        return Tests("pytest", said or place) if said or (place and layout.has_python(directory)) else None
    if not said and (files or place) and layout.has_python(directory):
        if installed.collects() is False:
            found = [path for path in layout.unittest_files(directory) if _FUNCTION.search(text_of(path))]
            others = tuple(str(path.relative_to(directory)) for path in found if path not in files)
            return Tests("pytest", others[0], others) if others else None
        said = "pytest --collect-only"
    return Tests("pytest", said) if said else None


def scripts_of(directory: Path) -> list[str]:
    """The files that are called like tests and hold none: pytest would run them while it collects tests."""
    files = (path for path in layout.files_below(directory) if any(map(path.match, layout.TEST_FILES)))
    found = (path for path in files if (text := text_of(path)).strip() and not _TEST.search(text))
    return [str(path.relative_to(directory)) for path in found]


def started_below(directory: Path) -> dict[str, str]:
    """The folders in which pytest has to start, each with a test that imports a module which is only found there; none
    if the directory is a package itself."""
    found = dict[str, str]()
    texts = (text_of(directory / name) for name in ("pyproject.toml", "setup.cfg", "setup.py"))
    files = () if any(map(_PACKAGE.search, texts)) else layout.files_below(directory)
    for file in (each for each in files if any(map(each.match, layout.TEST_FILES))):
        inside = file.relative_to(directory)
        names = {name for name in _IMPORTED.findall(text_of(file)) if not _has_module(directory, name)}
        for folder in [*inside.parents][-2:0:-1]:
            own = (name for name in names if _has_module(directory / folder, name))
            if layout.NOT_SOURCES.isdisjoint(folder.parts) and (name := next(own, "")):
                found.setdefault(str(folder), f"{inside}: import {name}")
                break
    return found


def _has_module(folder: Path, name: str) -> bool:
    return (folder / f"{name}.py").is_file() or any((folder / name).glob("*.py"))


def installing(package: str, declared: Declarations, installed: Installed | None) -> str:
    """The command that installs `package` in the project's environment."""
    for lock, tool, adding, syncing in LOCKS:
        if (declared.directory / lock).is_file() or (tool and tool != "uv" and tool in declared.tools):
            return syncing if package in declared.dependencies else adding.format(package)
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
