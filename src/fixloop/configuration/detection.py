"""What a project has for the presets to use: facts, and what their placeholders stand for.

Looks only. Which checks follow from it is the presets' data.
"""

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from fixloop.configuration import layout
from fixloop.configuration.declarations import Declarations, Signs, declarations_of

__all__ = ["Found", "detect"]

COVERAGE: Final = Signs(
    dependencies=("coverage",),
    tables=("coverage",),
    files=(".coveragerc",),
    sections=("setup.cfg:coverage:run", "setup.cfg:coverage:report", "tox.ini:coverage:run"),
)
FORMATTERS: Final = frozenset({"black", "yapf"})


class Found(NamedTuple):
    """What a project has."""

    facts: frozenset[str]
    """What a preset's `needs` may ask for: names of tools, and `tests`, `sources` and the like."""
    stands_for: Mapping[str, tuple[str, ...]]
    """What a placeholder of a preset becomes: no, one or several arguments."""
    fail_under: float = 0.0
    """The coverage that the project's own configuration asks for, in percent."""


def detect(
    directory: Path,
    pyproject: Mapping[str, Any],
    tools: Mapping[str, Signs],
    importable: Callable[[str], bool] | None = None,
) -> Found:
    """
    Look into the checkout at `directory`.

    Args:
        directory: The folder the checks will run in.
        pyproject: Its pyproject.toml, parsed; empty when there is none.
        tools: The tools to look for, by name.
        importable: Whether the project's interpreter can import a module; None when nobody can say.
    """
    declared = declarations_of(directory, pyproject)
    facts = {name for name, signs in tools.items() if declared.show(signs)}
    facts |= _facts(directory, declared, facts)
    if _has_pytest_cov(declared, importable):
        facts.add("pytest-cov")
    stands_for = _stands_for(directory, declared)
    facts |= {name for name in ("sources", "unit-tests", "integration-tests") if stands_for[name]}
    return Found(frozenset(facts), stands_for, _fail_under(declared))


def _facts(directory: Path, declared: Declarations, tools: set[str]) -> set[str]:
    has_python = layout.has_python(directory)
    answers = {
        "python": has_python,
        "tests": layout.has_tests(directory, _test_patterns(declared)),
        "ruff-formats": tools.isdisjoint(FORMATTERS),
        "mypy-files": _names_mypy_files(declared),
        "bandit-default-tests": not _selects_bandit_tests(declared),
    }
    return {fact for fact, holds in answers.items() if holds}


def _stands_for(directory: Path, declared: Declarations) -> dict[str, tuple[str, ...]]:
    sources = layout.sources_of(directory)
    patterns = _test_patterns(declared)
    unit = layout.first_with_tests(directory, "unit", patterns)
    integration = layout.first_with_tests(directory, "integration", patterns)
    return {
        "sources": sources,
        "unit-tests": (unit,) if unit else (),
        "integration-tests": (integration,) if integration else (),
        "measured": _measured(declared, sources),
        "bandit-configuration": _bandit_configuration(declared),
    }


def _has_pytest_cov(declared: Declarations, importable: Callable[[str], bool] | None) -> bool:
    """`coverage` without its pytest plugin cannot measure a pytest run, so a known interpreter decides."""
    if "pytest-cov" in declared.dependencies or "--cov" in _pytest_settings(declared).get("addopts", ""):
        return True
    return importable("pytest_cov") if importable is not None else declared.show(COVERAGE)


def _pytest_settings(declared: Declarations) -> dict[str, str]:
    """pytest's settings as text, wherever they stand; lists become lines."""
    tables = (declared.table("pytest"), declared.table("pytest", "ini_options"))
    settings = {
        key: "\n".join(map(str, value)) if isinstance(value, list) else str(value)
        for table in tables
        for key, value in table.items()
    }
    places = (("setup.cfg", "tool:pytest"), ("tox.ini", "pytest"), ("pytest.ini", "pytest"))
    for place in (*places, (".pytest.ini", "pytest")):
        settings |= declared.section(*place) or {}
    return settings


def _test_patterns(declared: Declarations) -> tuple[str, ...]:
    return tuple(_pytest_settings(declared).get("python_files", "").split())


def _coverage_settings(declared: Declarations, part: str) -> dict[str, Any]:
    settings: dict[str, Any] = dict(declared.table("coverage", part))
    for file, section in (
        ("setup.cfg", f"coverage:{part}"),
        ("tox.ini", f"coverage:{part}"),
        (".coveragerc", part),
    ):
        settings |= declared.section(file, section) or {}
    return settings


def _measured(declared: Declarations, sources: tuple[str, ...]) -> tuple[str, ...]:
    """The options that say what to measure; a project that says so itself is taken at its word."""
    if re.search(r"(?<!\S)--cov(?![\w-])", _pytest_settings(declared).get("addopts", "")):
        return ()  # one `--cov` without a value, here or there, would undo all the others
    settings = _coverage_settings(declared, "run")
    is_named = any(settings.get(key) for key in ("source", "source_pkgs", "source_dirs"))
    return (
        ("--cov",)
        if is_named
        else tuple(f"--cov={name}" for name in layout.modules_of(sources)) or ("--cov",)
    )


def _fail_under(declared: Declarations) -> float:
    written = re.search(r"--cov-fail-under[= ](\S+)", _pytest_settings(declared).get("addopts", ""))
    value = written[1] if written else _coverage_settings(declared, "report").get("fail_under", 0)
    try:
        percent = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(percent, 100.0) if math.isfinite(percent) and percent > 0 else 0.0


def _names_mypy_files(declared: Declarations) -> bool:
    tables: list[Mapping[str, Any]] = [declared.table("mypy")]
    tables += [declared.section(file, "mypy") or {} for file in ("mypy.ini", ".mypy.ini", "setup.cfg")]
    return any(table.get(key) for table in tables for key in ("files", "packages", "modules"))


def _bandit_configuration(declared: Declarations) -> tuple[str, ...]:
    """The options that make bandit read the project's settings; by itself it finds none of them."""
    if "bandit" in declared.tools:
        return ("-c", "pyproject.toml")
    if declared.section(".bandit", "bandit") is not None:
        return ("--ini", ".bandit")
    for name in (".bandit", "bandit.yaml", "bandit.yml"):
        if (declared.directory / name).is_file():
            return ("-c", name)
    return ()


def _selects_bandit_tests(declared: Declarations) -> bool:
    keys = {*declared.table("bandit"), *(declared.section(".bandit", "bandit") or {})}
    # A YAML file may hold such keys. Assuming they are there costs one check; assuming not, an error.
    options = _bandit_configuration(declared)
    is_yaml = options[:1] == ("-c",) and options[1] != "pyproject.toml"
    return is_yaml or not keys.isdisjoint({"tests", "skips"})
