"""Lists what will run and what will not, before the first check: one value and one text for every display.

Only describes a configuration; decides and starts nothing.
"""

import os
import shlex
from pathlib import Path
from typing import Any, Final, NamedTuple

from fixloop.configuration.commands import module_of, program_of
from fixloop.configuration.installed import Installed
from fixloop.configuration.layout import has_python
from fixloop.configuration.model import Check, Configuration
from fixloop.protocol.checks import Unverified
from fixloop.protocol.launchers import PYTHON

WRITTEN: Final = "fixloop's configuration"


class Planned(NamedTuple):
    """One check that will run."""

    specialist: str
    name: str
    command: str
    """In shell syntax; `{junit}` and similar placeholders stand for fresh paths."""
    why: str
    needs: str
    """Its need and where that is, as `pytest from .venv`; empty if nothing was asked."""


class Preflight(NamedTuple):
    directory: str
    interpreter: str
    """Its path; empty if the checks run elsewhere or later, or if there is none, or no Python to run."""
    checks: tuple[Planned, ...]
    unverified: tuple[Unverified, ...]
    hints: tuple[str, ...] = ()


def preflight_of(configuration: Configuration, directory: Path, installed: Installed | None) -> Preflight:
    """The plan of `configuration` in `directory` of the checkout; `installed`: None if checks run elsewhere."""
    later = bool(configuration.workspace.setup)
    asked = None if later else installed
    hints = []
    commands = [check.command for entry in configuration.specialists for check in entry.checks]
    uses_python = any(PYTHON.fullmatch(program_of(command)[0]) for command in commands) or any(
        entry.name in {"pytest", "unittest"} for entry in configuration.unverified
    )
    if asked is not None and uses_python and not asked.interpreter.prefix:
        hints.append(
            f"no virtual environment was found, so checks run with {asked.interpreter.path or 'no Python'}; "
            "make a .venv in the project, activate one, or name `[workspace] setup`"
        )
    interpreter = asked.interpreter.path if asked and (uses_python or has_python(directory)) else ""
    checks = []
    for entry in configuration.specialists:
        for check in entry.checks:
            needs = "what [workspace] setup makes" if later else _needs(check, asked)
            command, why = shlex.join(check.command), check.why or WRITTEN
            checks.append(Planned(entry.name, check.name, command, why, needs))
    place = str(directory.absolute())
    return Preflight(place, interpreter, tuple(checks), configuration.unverified, tuple(hints))


def lines(preflight: Preflight) -> list[str]:
    with_ = f" with {preflight.interpreter}" if preflight.interpreter else ""
    text = [f"checks in {preflight.directory}{with_}:"]
    if not preflight.checks:
        found = "that can be run was" if preflight.unverified else "was"
        text = [f"nothing {found} found in {preflight.directory}"]
    for planned in preflight.checks:
        needs = f"; needs {planned.needs}" if planned.needs else ""
        text += [f"  {planned.specialist}: {planned.name}", f"    {planned.command}"]
        text.append(f"    because of {planned.why}{needs}")
    if preflight.unverified:
        text.append("not run here:")
    for entry in preflight.unverified:
        remedy = f": {entry.remedy}" if entry.remedy else ""
        blocks = " [must run]" if entry.blocks else ""
        text.append(f"  {entry.specialist}: {entry.name} ({entry.reason}){blocks}{remedy}")
    return [*text, *(f"hint: {hint}" for hint in preflight.hints)]


def as_document(preflight: Preflight) -> dict[str, Any]:
    """The preflight as JSON for programs."""
    return preflight._asdict() | {
        "checks": [planned._asdict() for planned in preflight.checks],
        "unverified": [entry.model_dump() for entry in preflight.unverified],
    }


def _needs(check: Check, installed: Installed | None) -> str:
    if installed is None:
        return ""
    if module := module_of(check.command):
        return f"{module} from {installed.where}"
    program, _ = program_of(check.command)
    found = program if os.sep in program else installed.program(program)
    return f"{os.path.basename(program)} from {os.path.dirname(found)}" if found else program
