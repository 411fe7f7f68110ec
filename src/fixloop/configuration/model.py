"""The configuration of one workflow, frozen when it starts, and the checks that detection proposes for it.

A fix cannot change its own gates. The digest is over the order of the fields, so that stays.
"""

import hashlib
from typing import Any, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, model_validator

from fixloop.configuration import settings
from fixloop.configuration.commands import PLACEHOLDERS
from fixloop.configuration.values import Policy
from fixloop.protocol.checks import Unverified

NEW_BY_DEFAULT: Final = frozenset({"code-quality", "security"})
"""Specialists whose checks look at code as it lies there; a failing test has to be fixed in any case."""
TARGET_COVERAGE_PERCENT: Final = 80.0
"""The gate where coverage is asked for and no other is written (A29, B68)."""


def _without(field: str) -> Any:
    """A validator that drops what older versions stored as `field`."""

    def dropped(cls: type[BaseModel], data: Any) -> Any:
        return {key: data[key] for key in data if key != field} if isinstance(data, dict) else data

    return model_validator(mode="before")(dropped)


class Check(settings.CheckSettings):
    """One command of a specialist: what the file says of it, or what was detected."""

    name: str
    command: tuple[str, ...]
    """argv; `{junit}` and the other placeholders stand for fresh report paths and name their readers."""
    why: str = ""
    """The file and the place in it that speak for it, as `tox.ini: [testenv:lint]`; empty for the configuration."""
    paths: tuple[str, ...] = ()
    """The files and folders that a detected check is pointed at."""

    _of_older_versions = _without("preset")

    def report_kinds(self) -> tuple[str, ...]:
        """The reports it owes: the placeholders in its command, and its output where that is one."""
        text = "\0".join(self.command)
        written = tuple(kind for kind in PLACEHOLDERS if "{" + kind + "}" in text)
        return (*written, self.output) if self.output else written


class SpecialistChecks(BaseModel):
    """What one specialist runs; in a configuration only applicable ones are listed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    checks: tuple[Check, ...]
    timeout_minutes: float | None = None
    """For each of its runs; None: as `limits` says; 0: no limit."""
    network: bool = True


class Fixer(settings.FixerSettings):
    """The main agent as a command."""

    command: tuple[str, ...]

    @property
    def is_handoffs(self) -> bool:
        return self.command == (settings.HANDOFFS,)


class OutsideAgent(settings.AgentSettings, settings.Named):
    """The main agent as a program or a person elsewhere that reads a mailbox of this name."""

    timeout_minutes: float | None = None
    """None: as `limits` says; 0: no limit."""


class Configuration(settings.SharedSettings):
    """Everything a workflow's gates and agents depend on."""

    gates_all: bool = False
    """Every failure counts: a flag's, and so it holds for a configuration that is read again, too."""
    only: str = ""
    """The one specialist that a flag asked for; it holds for a configuration that is read again, too."""
    fixer: Fixer | None = None
    """None: the engine waits for a person or an outside agent."""
    agent: OutsideAgent | None = None
    """The declared one, instead of a command."""
    cycle: settings.CycleSettings | None = None
    handoff: settings.HandoffSettings | None = None
    specialists: tuple[SpecialistChecks, ...] = ()
    """In the fixed order of the phases (U1, U2)."""
    unverified: tuple[Unverified, ...] = ()
    """What was found and does not run; the verdict says so."""

    _of_older_versions = _without("detected_not_configured")

    def specialist(self, name: str) -> SpecialistChecks:
        """The checks of `name`. Raises KeyError when it does not apply."""
        return {entry.name: entry for entry in self.specialists}[name]

    def policy(self, specialist: str, check: Check) -> Policy:
        """Which failures of `check` count."""
        if self.gates_all:
            return Policy.ALL
        return check.baseline or (Policy.NEW if specialist in NEW_BY_DEFAULT else Policy.ALL)

    @property
    def compares(self) -> bool:
        """Whether some check counts only what the base does not have."""
        checks = ((entry.name, check) for entry in self.specialists for check in entry.checks)
        return any(self.policy(*each) is Policy.NEW for each in checks)

    def to_json(self) -> str:
        return self.model_dump_json(by_alias=True, exclude_defaults=True)

    def digest(self) -> str:
        """sha256 of the canonical JSON, hex."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()


class Need(NamedTuple):
    """Something that has to be there before a check can start."""

    kind: Literal["module", "program", "file"]
    """`module`: importable by the project's interpreter; `program`: next to that interpreter or on the PATH;
    `file`: a path below the checkout."""
    name: str
    remedy: str
    """The one command that brings it, as `npm ci` or `.venv/bin/pip install ruff`."""


class Proposal(NamedTuple):
    """A check that the project's own files speak for."""

    specialist: str
    check: Check
    tool: str
    """The tool's name as its users say it: `vitest`, never `npx`."""
    needs: tuple[Need, ...] = ()
    runs_tests: bool = False
    """A test runner that is found and not run leaves the whole unverified (exit code 3)."""
    reason: str = ""
    """Why it has no command."""

    @property
    def why(self) -> str:
        return self.check.why


def proposal(
    specialist: str,
    name: str,
    command: tuple[str, ...],
    why: str,
    *needs: Need,
    tool: str = "",
    runs_tests: bool = False,
    **keys: Any,
) -> Proposal:
    """A check called `name`, of the tool of that name unless `tool` is given; `keys` are further ones of the check."""
    check = Check(name=name, command=command, why=why, **keys)
    return Proposal(specialist, check, tool or name, needs, runs_tests)
