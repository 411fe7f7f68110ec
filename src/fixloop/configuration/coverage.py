"""Whether a Python project asks for coverage, how it is measured, and the gate it sets itself.

No gate that nobody asked for: a project that merely can measure its coverage has not asked.
"""

import math
import re
from typing import Any, Final, NamedTuple

from fixloop.configuration import layout
from fixloop.configuration.declarations import Declarations
from fixloop.configuration.project_commands import arguments_of
from fixloop.configuration.python_project import PythonProject

TARGET_COVERAGE_PERCENT: Final = 80.0
"""The gate where coverage is asked for and no other is written (A29, B68)."""

_MEASURED: Final = re.compile(r"(?<!\S)--cov(?![\w-])")
_GATE: Final = re.compile(r"--cov-fail-under[= ](\S+)")


class Coverage(NamedTuple):
    """What a project says of its coverage."""

    is_measured: bool
    """Its own pytest options measure in any case."""
    fail_under: float
    """The gate in percent; 0 where it sets none that one run of its tests could reach."""
    why: str = ""


def coverage_of(project: PythonProject) -> Coverage:
    """
    What the project asks for.

    A gate that stands over several combined runs is none for one of them.
    """
    declared, addopts = project.declared, project.pytest.addopts
    is_measured = bool(_MEASURED.search(addopts))
    if written := _GATE.search(addopts):
        return Coverage(is_measured, _percent(written[1]), "addopts: --cov-fail-under")
    percent = _percent(_settings(declared, "report").get("fail_under", 0))
    given = [arguments_of("coverage", command) for command in project.commands]
    if percent and (is_measured or not any(each and each[0] == "combine" for each in given)):
        return Coverage(is_measured, percent, "coverage: fail_under")
    return Coverage(is_measured, 0.0)


def measuring(project: PythonProject) -> tuple[str, ...]:
    """The options that make pytest measure; a project that says so itself what to measure is taken at its word."""
    report = ("--cov-report=json:{coverage}", "--cov-fail-under=0")
    if _MEASURED.search(project.pytest.addopts):
        return report  # one `--cov` without a value, here or there, would undo all the others
    settings = _settings(project.declared, "run")
    if any(settings.get(key) for key in ("source", "source_pkgs", "source_dirs")):
        return ("--cov", *report)
    modules = layout.modules_of(layout.sources_of(project.directory))
    return (*(tuple(f"--cov={name}" for name in modules) or ("--cov",)), *report)


def _settings(declared: Declarations, part: str) -> dict[str, Any]:
    settings: dict[str, Any] = dict(declared.table("coverage", part))
    for file, section in (
        ("setup.cfg", f"coverage:{part}"),
        ("tox.ini", f"coverage:{part}"),
        (".coveragerc", part),
    ):
        settings |= declared.section(file, section) or {}
    return settings


def _percent(value: object) -> float:
    try:
        percent = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(percent, 100.0) if math.isfinite(percent) and percent > 0 else 0.0
