"""The configuration of one workflow, frozen when it starts, and the checks that detection proposes for it.

A fix cannot change its own gates. The digest depends on the order of the fields, so keep it.
"""

import hashlib
from typing import Any, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, model_validator

from fixloop.configuration import settings
from fixloop.configuration.commands import PLACEHOLDERS
from fixloop.configuration.values import Policy
from fixloop.protocol.checks import Unverified

NEW_BY_DEFAULT: Final = frozenset({"code-quality", "security"})
"""Specialists whose checks look at the code itself; a failing test must be fixed in any case."""
TARGET_COVERAGE_PERCENT: Final = 80.0
"""The default gate if coverage is asked for (A29, B68)."""


def _without(field: str) -> Any:
    """A validator that drops `field`, which older versions stored."""

    def dropped(cls: type[BaseModel], data: Any) -> Any:
        return {key: data[key] for key in data if key != field} if isinstance(data, dict) else data

    return model_validator(mode="before")(dropped)


class Check(settings.CheckSettings):
    """One command of a specialist, from the file or detected."""

    name: str
    command: tuple[str, ...]
    """argv; `{junit}` and the other placeholders become fresh report paths and name their readers."""
    why: str = ""
    """The file and place it was detected from, as `tox.ini: [testenv:lint]`; empty if configured."""
    paths: tuple[str, ...] = ()
    """The files and folders given to a detected check."""

    _of_older_versions = _without("preset")

    def report_kinds(self) -> tuple[str, ...]:
        """The reports it must write: the placeholders in its command, and its output if that is one."""
        text = "\0".join(self.command)
        written = tuple(kind for kind in PLACEHOLDERS if "{" + kind + "}" in text)
        return (*written, self.output) if self.output else written


class SpecialistChecks(BaseModel):
    """The checks of one specialist; a configuration lists only applicable ones."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    checks: tuple[Check, ...]
    timeout_minutes: float | None = None
    """For each of its runs; None: as in `limits`; 0: no limit."""
    network: bool = True


class Fixer(settings.FixerSettings):
    """The main agent as a command."""

    command: tuple[str, ...]

    @property
    def is_handoffs(self) -> bool:
        return self.command == (settings.HANDOFFS,)


class OutsideAgent(settings.AgentSettings, settings.Named):
    """The main agent as an outside program or person that reads a mailbox of this name."""

    timeout_minutes: float | None = None
    """None: as in `limits`; 0: no limit."""


class Configuration(settings.SharedSettings):
    """Everything a workflow's gates and agents depend on."""

    gates_all: bool = False
    """Every failure counts. Set by a flag, and kept if the configuration is read again."""
    only: str = ""
    """The one specialist that a flag asked for; kept if the configuration is read again."""
    fixer: Fixer | None = None
    """None: the engine waits for a person or an outside agent."""
    agent: OutsideAgent | None = None
    """The declared agent, instead of a command."""
    cycle: settings.CycleSettings | None = None
    handoff: settings.HandoffSettings | None = None
    specialists: tuple[SpecialistChecks, ...] = ()
    """In the fixed order of the phases (U1, U2)."""
    unverified: tuple[Unverified, ...] = ()
    """Checks found that do not run; the verdict says so."""

    _of_older_versions = _without("detected_not_configured")

    def specialist(self, name: str) -> SpecialistChecks:
        """The checks of `name`. Raises KeyError if it does not apply."""
        return {entry.name: entry for entry in self.specialists}[name]

    def policy(self, specialist: str, check: Check) -> Policy:
        """Which failures of `check` count."""
        if self.gates_all:
            return Policy.ALL
        return check.baseline or (Policy.NEW if specialist in NEW_BY_DEFAULT else Policy.ALL)

    @property
    def compares(self) -> bool:
        """Whether some check counts only failures that the base does not have."""
        checks = ((entry.name, check) for entry in self.specialists for check in entry.checks)
        return any(self.policy(*each) is Policy.NEW for each in checks)

    def to_json(self) -> str:
        return self.model_dump_json(by_alias=True, exclude_defaults=True)

    def digest(self) -> str:
        """sha256 of the canonical JSON, hex."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()


class Need(NamedTuple):
    """Something a check needs before it can start."""

    kind: Literal["module", "program", "file"]
    """`module`: importable by the project's interpreter; `program`: next to that interpreter or on the PATH;
    `file`: a path below the checkout."""
    name: str
    remedy: str
    """The command that installs it, as `npm ci` or `.venv/bin/pip install ruff`."""


class Proposal(NamedTuple):
    """A check that the project's own files suggest."""

    specialist: str
    check: Check
    tool: str
    """The tool's usual name: `vitest`, never `npx`."""
    needs: tuple[Need, ...] = ()
    runs_tests: bool = False
    """A test runner that is found but cannot run leaves the workflow unverified (exit code 3)."""
    reason: str = ""
    """The reason that it has no command."""

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
    """A check called `name`, of the tool `tool` or else of that name; `keys` are further fields of the check."""
    check = Check(name=name, command=command, why=why, **keys)
    return Proposal(specialist, check, tool or name, needs, runs_tests)
