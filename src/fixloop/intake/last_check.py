"""The last results of `fixloop check` in a folder: each check's result, and its circumstances.

Owns `{cache}/checks/`, one file per folder. A result under the same circumstances need not be computed again.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pydantic import Field

from fixloop.configuration.model import Check, Configuration, SpecialistChecks
from fixloop.files.folders import keep_in, kept_in
from fixloop.machine.interpreters import Interpreter, stamps
from fixloop.protocol.checks import CheckResult, RunOutcome
from fixloop.protocol.event import Value
from fixloop.repository.snapshot import Snapshot

FORMAT: Final = 1
"""Raised when results are read or judged differently."""


class Kept(Value):
    """The last result of one check."""

    specialist: str
    circumstances: str
    """Digest of everything that the result depends on, as far as it is known."""
    result: CheckResult

    @property
    def key(self) -> tuple[str, str]:
        return self.specialist, self.result.check

    @property
    def rank(self) -> tuple[bool, float]:
        """Sorts failed checks first, then fast ones."""
        return self.result.outcome is not RunOutcome.FAILED, self.result.evidence.duration_seconds


class LastCheck(Value):
    """All results, those of the last run first."""

    kept: tuple[Kept, ...] = ()
    cut_off: dict[str, float] = Field(default_factory=dict)
    """Checks that were ended for lack of time, by specialist and check: after how many seconds."""

    def of(self, specialist: str, check: str) -> Kept | None:
        return next((each for each in self.kept if each.key == (specialist, check)), None)

    def seconds(self, specialist: str, check: str) -> float:
        """A check's expected duration; for one that was cut off, half as much again as it ran."""
        known = self.of(specialist, check)
        ran = known.result.evidence.duration_seconds if known else 0.0
        return max(ran, 1.5 * self.cut_off.get(f"{specialist}/{check}", 0.0))

    def updated(self, found: Sequence[Kept], cut_off: Mapping[str, float]) -> "LastCheck":
        """With newer results, which come first, and without older results for some of a check's tests."""
        newer = {each.key for each in found}
        kept = (*found, *(each for each in self.kept if each.circumstances and each.key not in newer))
        ran = {f"{specialist}/{check}" for specialist, check in newer}
        still = {name: seconds for name, seconds in self.cut_off.items() if name not in ran}
        return LastCheck(kept=kept, cut_off={**still, **cut_off})


def circumstances(
    entry: SpecialistChecks,
    check: Check,
    snapshot: Snapshot,
    configuration: Configuration,
    interpreter: Interpreter,
) -> str:
    """The digest for one check: tree, command, gates, base, variables, tools and the interpreter's packages."""
    path = os.pathsep.join([os.path.dirname(interpreter.path), os.environ.get("PATH", os.defpath)])
    told = [
        FORMAT,
        snapshot.tree,
        snapshot.copied,
        snapshot.base,
        configuration.policy(entry.name, check),
        configuration.workspace.model_dump_json(),
        entry.model_dump_json(exclude={"checks"}),
        check.model_dump_json(),
        [os.environ.get(name, "") for name in check.env],
        stamps(interpreter, check.command, path),
    ]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def last_check(cache: Path, folder: Path) -> LastCheck:
    """The stored results of a folder; empty if they cannot be read."""
    return kept_in(_file(cache, folder), LastCheck) or LastCheck()


def keep_check(cache: Path, folder: Path, last: LastCheck) -> None:
    """Raises OSError: the cache cannot be written."""
    keep_in(cache, _file(cache, folder), last.model_dump_json(exclude_defaults=True))


def _file(cache: Path, folder: Path) -> Path:
    return cache / "checks" / f"{hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:24]}.json"
