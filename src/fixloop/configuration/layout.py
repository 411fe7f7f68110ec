"""Where a Python project keeps its code and its tests, by looking at names only.

Opens no file. Names that Python could not import are left out: they could be taken for options of a tool.
"""

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

__all__ = ["first_with_tests", "has_python", "has_tests", "modules_of", "sources_of"]

# Not a project's own code, wherever they lie.
PRUNED = frozenset({"node_modules", "site-packages", "venv", "env", "build", "dist", "__pycache__"})
NOT_SOURCES = frozenset(
    {"tests", "test", "testing", "docs", "doc", "examples", "example", "samples", "bench", "benchmarks"}
)
NOT_MODULES = ("setup.py", "conftest.py", "noxfile.py", "test_*.py", "*_test.py")
TEST_FILES = ("test_*.py", "*_test.py")


def has_python(directory: Path) -> bool:
    """True when there is any Python file below `directory`, or it is one itself."""
    names = [directory.name] if directory.is_file() else _file_names(directory)
    return any(name.endswith((".py", ".pyi")) for name in names)


def has_tests(directory: Path, patterns: Sequence[str] = ()) -> bool:
    """True when a file below `directory` is one that pytest collects; `patterns` replace its own."""
    return any(
        fnmatch(name, pattern) for name in _file_names(directory) for pattern in patterns or TEST_FILES
    )


def first_with_tests(directory: Path, kind: str, patterns: Sequence[str] = ()) -> str:
    """`tests/{kind}` or `test/{kind}`, whichever holds tests first; empty when none does."""
    for parent in ("tests", "test"):
        if has_tests(directory / parent / kind, patterns):
            return f"{parent}/{kind}"
    return ""


def sources_of(directory: Path) -> tuple[str, ...]:
    """The project's own code: `src`, else its top packages and modules, else its top folders with code."""
    if has_python(directory / "src"):
        return ("src",)
    return (*_folders(directory, "__init__.py"), *_modules(directory)) or _folders(directory, "*.py")


def modules_of(sources: Sequence[str]) -> tuple[str, ...]:
    """`sources` as coverage takes them: a folder by its path, a module by its name."""
    return tuple(source.removesuffix(".py") for source in sources)


def _folders(directory: Path, holding: str) -> tuple[str, ...]:
    return tuple(
        entry.name
        for entry in sorted(directory.iterdir())
        if entry.is_dir()
        and entry.name.isidentifier()
        and entry.name not in NOT_SOURCES | PRUNED
        and next(entry.glob(holding), None) is not None
    )


def _modules(directory: Path) -> tuple[str, ...]:
    return tuple(
        entry.name
        for entry in sorted(directory.glob("*.py"))
        if entry.is_file()
        and entry.stem.isidentifier()
        and not any(fnmatch(entry.name, pattern) for pattern in NOT_MODULES)
    )


def _file_names(directory: Path) -> Iterator[str]:
    for _, folders, files in os.walk(directory):
        folders[:] = [name for name in folders if name not in PRUNED and not name.startswith(".")]
        yield from files
