"""Finds a Python project's code and tests by name only.

Opens no file. Names that Python cannot import are left out: a tool could take them for options.
"""

import os
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

# Not a project's own code, in any folder.
PRUNED = frozenset({"node_modules", "site-packages", "venv", "env", "build", "dist", "__pycache__"})
NOT_SOURCES = frozenset(
    {"tests", "test", "testing", "docs", "doc", "examples", "example", "samples", "bench", "benchmarks"}
)
# What says that a folder is a project in a known language.
PROJECT_FILES = (
    *("pyproject.toml", "setup.py", "setup.cfg", "manage.py"),
    *("package.json", "go.mod", "go.work", "Cargo.toml"),
)
NOT_MODULES = ("setup.py", "conftest.py", "noxfile.py", "test_*.py", "*_test.py")
TEST_FILES = ("test_*.py", "*_test.py")
"""The files that pytest collects by default."""
TEST_FOLDERS = frozenset({"test", "tests", "testing"})


def has_python(directory: Path) -> bool:
    """Whether `directory` contains any Python file, or is one itself."""
    files = [directory] if directory.is_file() else files_below(directory)
    return any(path.suffix in {".py", ".pyi"} for path in files)


def unittest_files(directory: Path) -> Iterator[Path]:
    """Files that may hold tests for unittest, which looks for test*.py; outside test folders only by stricter names."""
    for path in files_below(directory):
        is_inside = not TEST_FOLDERS.isdisjoint(path.relative_to(directory).parts[:-1])
        sure = (*TEST_FILES, "test.py", "tests.py", *(("test*.py",) if is_inside else ()))
        if any(fnmatch(path.name, pattern) for pattern in sure):
            yield path


def sources_of(directory: Path) -> tuple[str, ...]:
    """The project's own code: `src`, else its top packages and modules, else its top folders with code."""
    if has_python(directory / "src"):
        return ("src",)
    files = (each for each in sorted(directory.glob("*.py")) if each.is_file() and each.stem.isidentifier())
    modules = [each.name for each in files if not any(fnmatch(each.name, name) for name in NOT_MODULES)]
    return (*_folders(directory, "__init__.py"), *modules) or _folders(directory, "*.py")


def projects_inside(directory: Path, others: Iterable[str] = ()) -> tuple[str, ...]:
    """The folders one or two levels below that are projects. `others`: names of project files in other languages."""
    names = (*PROJECT_FILES, "requirements.txt", *others)
    files = (directory.glob(f"{depth}/{name}") for depth in ("*", "*/*") for name in names)
    inside = {path.parent.relative_to(directory) for paths in files for path in paths}
    foreign = PRUNED | NOT_SOURCES
    own = (path for path in inside if not any(part in foreign or part.startswith(".") for part in path.parts))
    return tuple(str(path) for path in sorted(own))


def _folders(directory: Path, holding: str) -> tuple[str, ...]:
    named = (each for each in sorted(directory.iterdir()) if each.is_dir() and each.name.isidentifier())
    own = (each for each in named if each.name not in NOT_SOURCES | PRUNED)
    return tuple(each.name for each in own if any(each.glob(holding)))


def files_below(directory: Path) -> Iterator[Path]:
    """Every file of the project itself, in a fixed order."""
    for folder, folders, files in os.walk(directory):
        if "pyvenv.cfg" in files:
            folders.clear()
        folders[:] = sorted(name for name in folders if name not in PRUNED and not name.startswith("."))
        yield from (Path(folder, name) for name in sorted(files))
