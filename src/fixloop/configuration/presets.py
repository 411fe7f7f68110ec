"""The presets: checks for tools that a project has, as data in config/presets/.

Chooses and fills in. What the project has is found by `detection`; `loading` applies what the user wrote.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path, PurePath
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from fixloop.app_folder import app_folder
from fixloop.configuration.declarations import Signs
from fixloop.configuration.detection import Found
from fixloop.configuration.layout import has_python
from fixloop.configuration.model import Check
from fixloop.errors import ProtocolError
from fixloop.protocol.specialists import NAMES

__all__ = [
    "TARGET_COVERAGE_PERCENT",
    "all_tools",
    "given_paths",
    "not_configured",
    "paths_without_files",
    "preset_checks",
]

TARGET_COVERAGE_PERCENT: Final = 80.0
"""The gate where nothing else is written (A29, B68)."""

# What names files in a preset's command; always its last argument.
PATHS: Final = frozenset({".", "{sources}", "{unit-tests}", "{integration-tests}"})


class PresetCheck(BaseModel):
    """A check that applies where all its needs are met."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    needs: frozenset[str]
    command: tuple[str, ...]
    """`{name}` as a whole argument becomes what detection found for it; report placeholders stay."""
    coverage_percent: float | None = None


class Preset(BaseModel):
    """One specialist's file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    check: tuple[PresetCheck, ...] = ()
    """Of checks with one name, the first that applies is taken."""
    tool: Mapping[str, Signs] = {}


def preset_checks(specialist: str, found: Found) -> tuple[Check, ...]:
    """The checks of `specialist` for what the project has; empty when it does not apply (K28, U3)."""
    chosen: dict[str, PresetCheck] = {}
    for check in _preset(specialist).check:
        if check.needs <= found.facts:
            chosen.setdefault(check.name, check)
    return tuple(_filled_in(check, specialist, found) for check in chosen.values())


def all_tools() -> dict[str, Signs]:
    """Every tool that a preset can tell a project has."""
    return {tool: signs for name in NAMES for tool, signs in _preset(name).tool.items()}


def given_paths(check: Check) -> tuple[str, ...]:
    """The files and folders that a preset's command is pointed at; empty for a check of the user's own."""
    if not check.preset:
        return ()
    templates = [entry.command for entry in _preset(check.preset).check if entry.name == check.name]
    for template in templates:
        before, last = template[-2:]
        if last in PATHS and before in check.command:
            return check.command[check.command.index(before) + 1 :]
    return ()


def paths_without_files(check: Check, directory: Path) -> tuple[str, ...]:
    """
    Of the paths that a preset's command is pointed at, those that hold no Python file in `directory`.

    Not empty means that the check proves nothing there: bandit and compileall exit 0 and say nothing when
    the code has moved to another folder.
    """
    return tuple(path for path in given_paths(check) if not has_python(directory / path))


def not_configured(found: Found, checks: tuple[Check, ...]) -> tuple[str, ...]:
    """What the project has that none of `checks` runs, one entry each for the last lines of a run."""
    words = {PurePath(word).name for check in checks for word in check.command}
    idle = [
        f"{tool} ({name})"
        for name in NAMES
        for tool, signs in _preset(name).tool.items()
        if _is_there(tool, found) and words.isdisjoint(signs.commands or (tool,))
    ]
    return tuple(idle + _missing_gate(found, checks))


def _is_there(tool: str, found: Found) -> bool:
    return tool in found.facts or (tool == "pytest" and "tests" in found.facts)


def _missing_gate(found: Found, checks: tuple[Check, ...]) -> list[str]:
    if any("coverage" in check.report_kinds() for check in checks):
        return []
    if "pytest-cov" in found.facts and "tests" in found.facts:
        return ["coverage gate (test-runner)"]
    if any(check.preset == "test-runner" for check in checks):
        return ["coverage gate (test-runner: needs pytest-cov among the project's dependencies)"]
    return []


def _filled_in(check: PresetCheck, specialist: str, found: Found) -> Check:
    command: list[str] = []
    for word in check.command:
        # Only a whole `{name}` is ours: bandit's own template and the report placeholders stay.
        command.extend(found.stands_for.get(word[1:-1], (word,)) if word.startswith("{") else (word,))
    gate = check.coverage_percent
    return Check(
        name=check.name,
        command=tuple(command),
        coverage_percent=None if gate is None else max(gate, found.fail_under),
        preset=specialist,
    )


@cache
def _preset(specialist: str) -> Preset:
    path = app_folder() / "config" / "presets" / f"{specialist}.toml"
    try:
        return Preset.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, tomllib.TOMLDecodeError, ValidationError) as error:
        reason = " ".join(str(error).split())
        raise ProtocolError(f"the preset {path} cannot be read ({reason}); install fixloop again") from error
