"""Whether a Python project has tests, and what runs them.

pytest's own settings decide, and pytest itself where they leave a doubt; the names of files alone do not.
"""

import re
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final, NamedTuple

from fixloop.configuration import layout
from fixloop.configuration.declarations import Declarations, Signs, text_of
from fixloop.configuration.installed import Installed

PYTEST: Final = Signs(
    dependencies=("pytest",),
    tables=("pytest",),
    files=("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"),
    sections=("setup.cfg:tool:pytest", "tox.ini:pytest"),
)
TEST_FOLDERS: Final = frozenset({"test", "tests", "testing"})
_IMPORT: Final = re.compile(r"^\s*(?:import|from)\s+(pytest|unittest)\b", re.MULTILINE)


class PytestSettings(NamedTuple):
    """What the project's own configuration tells pytest."""

    testpaths: tuple[str, ...]
    patterns: tuple[str, ...]
    """`python_files`; empty where pytest's own hold."""
    addopts: str
    place: str
    """Where `testpaths` stands; empty where it does not."""


class Tests(NamedTuple):
    """Tests that the project has."""

    runner: str
    """`pytest` or `unittest`."""
    why: str
    pattern: str = ""
    """Of the files' names, where it is not what `unittest discover` looks for by itself."""


def pytest_settings(declared: Declarations) -> PytestSettings:
    """pytest's settings, wherever they stand."""
    tables: dict[str, Mapping[str, Any]] = {
        "pyproject.toml: [tool.pytest]": declared.table("pytest"),
        "pyproject.toml: [tool.pytest.ini_options]": declared.table("pytest", "ini_options"),
        "setup.cfg: [tool:pytest]": declared.section("setup.cfg", "tool:pytest") or {},
        "tox.ini: [pytest]": declared.section("tox.ini", "pytest") or {},
        "pytest.ini": declared.section("pytest.ini", "pytest") or {},
        ".pytest.ini": declared.section(".pytest.ini", "pytest") or {},
    }
    settings: dict[str, str] = {}
    place = ""
    for name, table in tables.items():
        for key, value in table.items():
            settings[key] = "\n".join(map(str, value)) if isinstance(value, list) else str(value)
        place = name if "testpaths" in table else place
    return PytestSettings(
        tuple(settings.get("testpaths", "").split()),
        tuple(settings.get("python_files", "").split()),
        settings.get("addopts", ""),
        place,
    )


def tests_of(declared: Declarations, settings: PytestSettings, installed: Installed | None) -> Tests | None:
    """The project's tests; None where it has none, as far as anybody can say."""
    directory = declared.directory
    patterns = settings.patterns or layout.TEST_FILES
    files = [
        path
        for path in layout.files_below(directory)
        if any(fnmatch(path.name, pattern) for pattern in patterns)
    ]
    said = _said_by_names(directory, settings, files)
    place = declared.place(PYTEST)
    if installed is None or not installed.has_module("pytest"):
        runner = "pytest"
        if installed is not None and not place:
            imported = {name for path in files for name in _IMPORT.findall(text_of(path))}
            runner = "unittest" if imported == {"unittest"} else "pytest"
        if not said and not (place and layout.has_python(directory)):
            return None
        usual = any(fnmatch(path.name, "test*.py") for path in files)
        return Tests(runner, said or place, "" if usual or not files else "*_test.py")
    if not said and (files or place) and layout.has_python(directory):
        collected = installed.collects()
        said = "pytest --collect-only" if collected or (collected is None and (files or place)) else ""
    return Tests("pytest", said) if said else None


def _said_by_names(directory: Path, settings: PytestSettings, files: list[Path]) -> str:
    """What leaves no doubt that there are tests; empty where only pytest could say."""
    if "--doctest-modules" in settings.addopts and layout.has_python(directory):
        return "addopts: --doctest-modules"
    for name in settings.testpaths:
        for place in _globbed(directory, name):
            if place.is_file() or any(path.is_relative_to(place) for path in files):
                return f"{settings.place}: testpaths"
    for path in files:
        inside = path.relative_to(directory)
        if len(inside.parts) == 1 or not TEST_FOLDERS.isdisjoint(inside.parts):
            return str(inside)
    return ""


def _globbed(directory: Path, pattern: str) -> list[Path]:
    pattern = pattern.rstrip("/")
    if pattern in {"", "."}:
        return [directory]
    try:
        return sorted(directory.glob(pattern))
    except (ValueError, NotImplementedError, IndexError):
        return []
