"""Reads a project's declarations about its tools: dependencies, tables, sections and files, each with its place.

Runs nothing. An unreadable file declares nothing; pyproject.toml itself was checked before.
"""

import re
import tomllib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from configparser import Error as IniError, RawConfigParser
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

T = TypeVar("T")
INI_FILES = (
    *("setup.cfg", "tox.ini", "pytest.ini", ".pytest.ini"),
    *("mypy.ini", ".mypy.ini", ".coveragerc", ".bandit"),
)
LIMIT_BYTES = 1_000_000
_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_HEADER = re.compile(r"^\[([^\]\n]+)\]", re.MULTILINE)


class Signs(NamedTuple):
    """The signs that a project uses a tool; one is enough."""

    dependencies: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    """Of `[tool.X]` in pyproject.toml."""
    files: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    """`file:section` of an INI file."""


_ROWS: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
SIGNS: Final = {
    tool: Signs(*(tuple(row.get(field, ())) for field in Signs._fields)) for tool, row in _ROWS.items()
}
OTHERS: Final = {tool: row["specialist"] for tool, row in _ROWS.items() if "specialist" in row}
"""The specialists of tools that only the project knows how to run; reported if found and not run."""


class Declarations(NamedTuple):
    """A project's declarations; names of dependencies are normalised."""

    directory: Path
    dependencies: Mapping[str, str]
    """Name to the first place that names it."""
    tools: Mapping[str, Any]
    """`[tool]` of pyproject.toml."""
    ini: Mapping[str, Mapping[str, Mapping[str, str]]]
    """File, section, key."""

    def place(self, signs: Signs) -> str:
        """Where the project configures the tool or depends on it, as `pyproject.toml: [tool.ruff]`; else empty."""
        sections = (place.split(":", 1) for place in signs.sections)
        named = (name for name in signs.dependencies if name in self.dependencies)
        found = chain(
            (f"pyproject.toml: [tool.{table}]" for table in signs.tables if table in self.tools),
            (name for name in signs.files if (self.directory / name).is_file()),
            (f"{file}: [{name}]" for file, name in sections if self.section(file, name) is not None),
            (f"{self.dependencies[name]}: {name}" for name in named),
        )
        return next(found, "")

    def section(self, file: str, name: str) -> Mapping[str, str] | None:
        return self.ini.get(file, {}).get(name)

    def table(self, *path: str) -> dict[str, Any]:
        """A table below `[tool]`; empty if it is missing or not a table."""
        return table_in(self.tools, *path)


def declarations_of(directory: Path, pyproject: Mapping[str, Any]) -> Declarations:
    ini: dict[str, dict[str, dict[str, str]]] = {}
    for name in INI_FILES:
        if (directory / name).is_file():
            text, parser = text_of(directory / name), RawConfigParser(strict=False, allow_no_value=True)
            try:
                parser.read_string(text)
                ini[name] = {one: {k: v or "" for k, v in parser[one].items()} for one in parser.sections()}
            except IniError:
                # Partly readable files are common; their headers still show which tools are configured.
                ini[name] = {header: {} for header in _HEADER.findall(text)}
    setup = ini.get("setup.cfg", {})
    files = ("*requirements*.txt", "*requirements*.in", "requirements/*.txt", "requirements/*.in")
    paths = [path for pattern in files for path in sorted(directory.glob(pattern))]
    pipfile = toml_of(directory / "Pipfile")
    sources: tuple[tuple[str, Iterable[str]], ...] = (
        ("pyproject.toml", _from_pyproject(pyproject)),
        *((path.relative_to(directory).as_posix(), text_of(path).splitlines()) for path in paths),
        ("setup.cfg", setup.get("options", {}).get("install_requires", "").splitlines()),
        *(("setup.cfg", text.splitlines()) for text in setup.get("options.extras_require", {}).values()),
        ("Pipfile", (*table_in(pipfile, "packages"), *table_in(pipfile, "dev-packages"))),
    )
    dependencies: dict[str, str] = {}
    for place, requirements in sources:
        for requirement in requirements:
            if found := _NAME.match(requirement):
                dependencies.setdefault(re.sub(r"[-_.]+", "-", found[1]).lower(), place)
    return Declarations(directory, dependencies, table_in(pyproject, "tool"), ini)


def text_of(path: Path) -> str:
    """The text of a small regular file; empty if there is none or it cannot be read."""
    try:
        if not path.is_file() or path.stat().st_size > LIMIT_BYTES:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def toml_of(path: Path) -> dict[str, Any]:
    """The content of a TOML file; empty if it is missing or cannot be read."""
    try:
        return tomllib.loads(text_of(path))
    except (ValueError, RecursionError):
        return {}


def yaml_of(path: Path) -> Any:
    """The content of a YAML file; None if it is missing or cannot be read."""
    if not (text := text_of(path)):
        return None
    # Importing takes a tenth of a second, and many projects have no such file.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError, RecursionError, TypeError, AttributeError):
        return None


def table_in(mapping: Any, *path: str) -> dict[str, Any]:
    """The table at `path`; empty if it is missing or not a table."""
    found: Any = mapping
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, dict) else {}


def items_in(value: Any, kind: type[T]) -> list[T]:
    """The entries of a list that are of `kind`; none for any other value."""
    return [entry for entry in value if isinstance(entry, kind)] if isinstance(value, list) else []


def _from_pyproject(pyproject: Mapping[str, Any]) -> Iterator[str]:
    project, tool = table_in(pyproject, "project"), table_in(pyproject, "tool")
    yield from items_in(project.get("dependencies"), str)
    groups = [
        *table_in(project, "optional-dependencies").values(),
        *table_in(pyproject, "dependency-groups").values(),
        *table_in(tool, "pdm", "dev-dependencies").values(),
        table_in(tool, "uv").get("dev-dependencies"),
    ]
    environments = [env for env in table_in(tool, "hatch", "envs").values() if isinstance(env, dict)]
    groups += [env.get(key) for env in environments for key in ("dependencies", "extra-dependencies")]
    for group in groups:
        yield from items_in(group, str)
    yield from table_in(tool, "poetry", "dependencies")
    yield from table_in(tool, "poetry", "dev-dependencies")
    for name in table_in(tool, "poetry", "group"):
        yield from table_in(tool, "poetry", "group", name, "dependencies")
