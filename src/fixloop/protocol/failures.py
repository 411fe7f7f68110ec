"""What a check found wrong, and how two runs' findings compare (K7, B41-B43).

A failure's key is (file, name, error type): line and message shift while the fault stays.
A failure that stands for a whole measurement carries the measure in its key.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from pydantic import Field

from fixloop.protocol.event import Value


class Severity(StrEnum):
    """How bad a failure is (B20)."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class FailureKey(NamedTuple):
    """What makes two failures the same one (K7)."""

    file: str
    name: str
    error_type: str
    measure: str


class Failure(Value):
    """One thing that has to be fixed (A25, B21)."""

    name: str
    """The test's id, the rule's id or the check's name."""
    file: str = ""
    """Path relative to the workspace, with forward slashes; empty when unknown."""
    line: int | None = None
    error_type: str = ""
    message: str = ""
    """The tool's own full text (B21), cut at the limits of K41."""
    check: str = ""
    """The check of the specialist that found it."""
    severity: Severity | None = None
    context: str = ""
    suggestion: str = ""
    frame: str = ""
    """`file:line` of the deepest frame in the project's own code, or of its test where there is none."""
    source: str = ""
    """The lines around `frame` or the location, with their numbers."""
    rerun: str = ""
    """The command line that runs this alone, where the tool is known."""
    id: str = ""
    """In a failure report: its number in the run, such as `F1`, which `fixloop ack --show` knows."""
    alike: int = Field(default=1, ge=0)
    """In a failure report: how many failures show the same error at the same place, this one included."""
    others: tuple[str, ...] = ()
    """In a failure report: `F2 name` for each of the others, as many as there is room for."""
    measure: str = ""
    """Only for a failure that stands for a whole measurement: a percentage, an output's digest."""

    @property
    def key(self) -> FailureKey:
        return FailureKey(self.file, self.name, self.error_type, self.measure)

    @property
    def priority(self) -> Severity:
        """How urgent it is (B8): its severity, and High where the tool gave none (K13)."""
        return self.severity or Severity.HIGH

    @property
    def location(self) -> str:
        """`file:line`, `file` or empty."""
        return f"{self.file}:{self.line}" if self.file and self.line is not None else self.file


class Comparison(Value):
    """What changed between two consecutive runs (A93, B42); lists are names with multiplicity."""

    resolved: tuple[str, ...] = ()
    persisting: tuple[str, ...] = ()
    new: tuple[str, ...] = ()

    @property
    def previous_count(self) -> int:
        return len(self.resolved) + len(self.persisting)


def count_of(count: int) -> str:
    """`1 failure`, `3 failures`."""
    return f"{count} failure" if count == 1 else f"{count} failures"


def compare(previous: Iterable[FailureKey], current: Iterable[FailureKey]) -> Comparison:
    """Split two runs' keys into resolved, persisting and new, with multiplicity (B42)."""
    before, after = Counter(previous), Counter(current)
    return Comparison(
        resolved=_names(before - after), persisting=_names(before & after), new=_names(after - before)
    )


def same_failures(runs: Sequence[Iterable[FailureKey]]) -> bool:
    """True when all runs failed with one equal, non-empty multiset of keys (K7)."""
    counted = [Counter(run) for run in runs]
    return bool(counted) and bool(counted[0]) and all(run == counted[0] for run in counted)


def _names(found: Counter[FailureKey]) -> tuple[str, ...]:
    return tuple(key.name for key in sorted(found.elements()))
