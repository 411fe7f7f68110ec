"""What a project declares about its tools: dependencies, tables, sections and files.

Reads declarations only and runs nothing. What cannot be read declares nothing; pyproject.toml itself was
checked before.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from configparser import Error as IniError
from configparser import RawConfigParser
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Declarations", "Signs", "declarations_of"]

INI_FILES = (
    "setup.cfg",
    "tox.ini",
    "pytest.ini",
    ".pytest.ini",
    "mypy.ini",
    ".mypy.ini",
    ".coveragerc",
    ".bandit",
)
_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_HEADER = re.compile(r"^\[([^\]\n]+)\]", re.MULTILINE)


class Signs(NamedTuple):
    """What tells that a project uses a tool; one is enough."""

    dependencies: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    """Of `[tool.X]` in pyproject.toml."""
    files: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    """`file:section` of an INI file."""
    commands: tuple[str, ...] = ()
    """What runs it, where that is not its own name."""


class Declarations(NamedTuple):
    """A project's declarations; names of dependencies are normalised."""

    directory: Path
    dependencies: frozenset[str]
    tools: Mapping[str, Any]
    """`[tool]` of pyproject.toml."""
    ini: Mapping[str, Mapping[str, Mapping[str, str]]]
    """File, section, key."""

    def show(self, signs: Signs) -> bool:
        """True when the project depends on or configures the tool."""
        return (
            not self.dependencies.isdisjoint(signs.dependencies)
            or any(table in self.tools for table in signs.tables)
            or any((self.directory / name).is_file() for name in signs.files)
            or any(self.section(*place.split(":", 1)) is not None for place in signs.sections)
        )

    def section(self, file: str, name: str) -> Mapping[str, str] | None:
        return self.ini.get(file, {}).get(name)

    def table(self, *path: str) -> dict[str, Any]:
        """A table below `[tool]`; empty when it is not there or no table."""
        return _table(self.tools, *path)


def declarations_of(directory: Path, pyproject: Mapping[str, Any]) -> Declarations:
    """Collect what the project at `directory` declares."""
    ini = {name: _ini(directory / name) for name in INI_FILES if (directory / name).is_file()}
    setup = ini.get("setup.cfg", {})
    requirements = (
        *_from_pyproject(pyproject),
        *_from_requirement_files(directory),
        *setup.get("options", {}).get("install_requires", "").splitlines(),
        *(line for text in setup.get("options.extras_require", {}).values() for line in text.splitlines()),
        *_from_pipfile(directory / "Pipfile"),
    )
    return Declarations(directory, frozenset(_names(requirements)), _table(pyproject, "tool"), ini)


def _names(requirements: Iterable[Any]) -> Iterator[str]:
    for requirement in requirements:
        found = _NAME.match(requirement) if isinstance(requirement, str) else None
        if found:
            yield re.sub(r"[-_.]+", "-", found[1]).lower()


def _from_pyproject(pyproject: Mapping[str, Any]) -> Iterator[Any]:
    project, tool = _table(pyproject, "project"), _table(pyproject, "tool")
    yield from _entries(project.get("dependencies"))
    groups = [
        *_table(project, "optional-dependencies").values(),
        *_table(pyproject, "dependency-groups").values(),
        *_table(tool, "pdm", "dev-dependencies").values(),
        _table(tool, "uv").get("dev-dependencies"),
    ]
    environments = [env for env in _table(tool, "hatch", "envs").values() if isinstance(env, dict)]
    groups += [env.get(key) for env in environments for key in ("dependencies", "extra-dependencies")]
    for group in groups:
        yield from _entries(group)
    yield from _table(tool, "poetry", "dependencies")
    yield from _table(tool, "poetry", "dev-dependencies")
    for name in _table(tool, "poetry", "group"):
        yield from _table(tool, "poetry", "group", name, "dependencies")


def _from_requirement_files(directory: Path) -> Iterator[str]:
    for pattern in ("*requirements*.txt", "*requirements*.in", "requirements/*.txt", "requirements/*.in"):
        for path in sorted(directory.glob(pattern)):
            yield from _text(path).splitlines()


def _from_pipfile(path: Path) -> Iterator[str]:
    try:
        content = tomllib.loads(_text(path))
    except (ValueError, RecursionError):
        return
    for section in ("packages", "dev-packages"):
        yield from _table(content, section)


def _ini(path: Path) -> dict[str, dict[str, str]]:
    text = _text(path)
    parser = RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except IniError:
        # Half-readable files are common; the headers alone still tell which tools are configured.
        return {header: {} for header in _HEADER.findall(text)}
    return {name: {key: value or "" for key, value in parser[name].items()} for name in parser.sections()}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    except OSError:
        return ""


def _entries(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _table(mapping: Mapping[str, Any], *path: str) -> dict[str, Any]:
    found: Any = mapping
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, dict) else {}
