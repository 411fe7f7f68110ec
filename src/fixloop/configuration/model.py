"""The configuration of one workflow, frozen when it starts (DESIGN: gates are frozen).

Read once from the snapshot, kept with its digest; a fix cannot change its own gates.
"""

import hashlib
from enum import StrEnum
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fixloop.configuration.roles import HANDOFFS, CycleSettings, HandoffSettings
from fixloop.protocol.checks import Unverified

PLACEHOLDERS: Final = ("junit", "sarif", "coverage", "jest", "eslint")
"""What a check's command may ask a path for; each has a reader of its name."""
OUTPUTS: Final = ("go-test", "cargo-test", "clippy")
"""Readers for tools that print their report: what the command prints is kept in a file and read from there."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _without(data: Any, field: str) -> Any:
    """What an older version stored, without a field that is no more."""
    return {key: value for key, value in data.items() if key != field} if isinstance(data, dict) else data


class FailOn(StrEnum):
    """From which SARIF level a result fails."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Policy(StrEnum):
    """Which failures a gate applies to."""

    NEW = "new"
    """Those that the feature's base does not have."""
    ALL = "all"


NEW_BY_DEFAULT: Final = frozenset({"code-quality", "security"})
"""Specialists whose checks look at code as it lies there; a test that fails is to be mended whoever broke it."""


class Check(_Frozen):
    """One command of a specialist."""

    name: str
    command: tuple[str, ...]
    """argv; `{junit}` and the other placeholders stand for fresh report paths and name their readers."""
    output: str = ""
    """One of `OUTPUTS`: how what it prints is read; empty: by its exit code and its reports."""
    optional: bool = False
    """May be skipped when it cannot run here (K38)."""
    fail_on: FailOn = FailOn.ERROR
    coverage_percent: float | None = None
    """The gate, for a check with `{coverage}`."""
    env: tuple[str, ...] = ()
    """Names of further environment variables the command may see."""
    baseline: Policy | None = None
    """None: as is usual for the specialist, see `Configuration.policy`."""
    why: str = ""
    """The file that speaks for it, and the place in it; empty when fixloop's own configuration names it."""
    paths: tuple[str, ...] = ()
    """The files and folders that a detected check is pointed at."""

    @model_validator(mode="before")
    @classmethod
    def _of_older_versions(cls, data: Any) -> Any:
        return _without(data, "preset")

    def report_kinds(self) -> tuple[str, ...]:
        """The reports it owes: the placeholders in its command, and its output where that is one."""
        text = "\0".join(self.command)
        written = tuple(kind for kind in PLACEHOLDERS if "{" + kind + "}" in text)
        return (*written, self.output) if self.output else written


class SpecialistChecks(_Frozen):
    """What one specialist runs; in a configuration only applicable ones are listed."""

    name: str
    checks: tuple[Check, ...]
    timeout_minutes: float | None = None
    """For each of its runs; None: as `limits` says; 0: no limit."""


class Fixer(_Frozen):
    """The main agent as a command."""

    command: tuple[str, ...]
    timeout_minutes: float | None = None
    """None: as `limits` says; 0: no limit."""
    env: tuple[str, ...] = ()

    @property
    def is_handoffs(self) -> bool:
        return self.command == (HANDOFFS,)


class OutsideAgent(_Frozen):
    """The main agent as a program or a person elsewhere that reads a mailbox of this name."""

    name: str
    acks: bool = False
    """Whether it has to confirm each failure report, within `receipt_minutes` (G1)."""
    timeout_minutes: float | None = None
    """None: as `limits` says; 0: no limit."""


class WorkspaceSettings(_Frozen):
    """How a workspace is made ready."""

    setup: tuple[str, ...] = ()
    copy_globs: tuple[str, ...] = Field(default=(), alias="copy")

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class LimitSettings(_Frozen):
    """`[limits]`: how long things may take and how often they are tried; 0 switches a time or a window off."""

    validation_minutes: float = 30.0
    revalidation_minutes: float = 30.0
    fix_minutes: float = 30.0
    iteration_minutes: float | None = None
    """From a failure report to the next result; None: 30, or the longest of the others where that is more."""
    reminder_minutes: float = 0.0
    """When the reminder goes out; 0: at the limit itself."""
    reminder_window_minutes: float = 5.0
    deadlock_window: int = 3
    specialist_attempts: int = 2
    fix_attempts: int = 3
    delivery_attempts: int = 3
    receipt_minutes: float = 1.0
    """How soon an agent with `acks = true` has to confirm a report."""
    answer_attempts: int = 2
    confirm_rounds: int = 3
    extend_iterations: int = 3
    extend_minutes: float = 30.0


class Configuration(_Frozen):
    """Everything a workflow's gates and agents depend on."""

    project: str = ""
    max_iterations: int = Field(default=5, ge=1)
    notify: tuple[str, ...] = ()
    bundle_fix_request: bool = True
    """The fix request travels with the failure report (K9)."""
    limits: LimitSettings = LimitSettings()
    workspace: WorkspaceSettings = WorkspaceSettings()
    base: str = ""
    """The revision that features are compared with, or `none`; empty: the merge base with the default branch."""
    gates_all: bool = False
    """Every failure counts: a flag's, and so it holds for a configuration that is read again, too."""
    only: str = ""
    """The one specialist that a flag asked for; it holds for a configuration that is read again, too."""
    fixer: Fixer | None = None
    """None: the engine waits for a person or an outside agent."""
    agent: OutsideAgent | None = None
    """The declared one, instead of a command."""
    cycle: CycleSettings | None = None
    handoff: HandoffSettings | None = None
    specialists: tuple[SpecialistChecks, ...] = ()
    """In the fixed order of the phases (U1, U2)."""
    unverified: tuple[Unverified, ...] = ()
    """What was found and does not run; the verdict says so."""

    @model_validator(mode="before")
    @classmethod
    def _of_older_versions(cls, data: Any) -> Any:
        return _without(data, "detected_not_configured")

    def specialist(self, name: str) -> SpecialistChecks:
        """The checks of `name`. Raises KeyError when it does not apply."""
        for entry in self.specialists:
            if entry.name == name:
                return entry
        raise KeyError(name)

    def policy(self, specialist: str, check: Check) -> Policy:
        """Which failures of `check` count."""
        if self.gates_all:
            return Policy.ALL
        return check.baseline or (Policy.NEW if specialist in NEW_BY_DEFAULT else Policy.ALL)

    @property
    def compares(self) -> bool:
        """Whether some check counts only what the base does not have."""
        return any(
            self.policy(entry.name, check) is Policy.NEW
            for entry in self.specialists
            for check in entry.checks
        )

    def to_json(self) -> str:
        return self.model_dump_json(by_alias=True, exclude_defaults=True)

    def digest(self) -> str:
        """sha256 of the canonical JSON, hex."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()
