"""Failures that checks found, the comparison of two runs' failures (K7, B41-B43), and groups with a common cause.

A failure's key is (file, name, error type): line and message change while the fault stays. For a failure that stands
for a whole measurement, the key includes the measure. Failures with the same error at the same place of the project's
own code have a common cause; groups use only what the history keeps, so that any run can be regrouped.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from pydantic import Field

from fixloop.protocol.event import Value


class Severity(StrEnum):
    """How bad a failure is (B20)."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class FailureKey(NamedTuple):
    """The identity of a failure (K7)."""

    file: str
    name: str
    error_type: str
    measure: str

    @classmethod
    def of(cls, failure: "Failure | FailureRef") -> "FailureKey":
        return cls(failure.file, failure.name, failure.error_type, failure.measure)


class Failure(Value):
    """One thing that has to be fixed (A25, B21)."""

    name: str
    """The test's id, the rule's id or the check's name."""
    file: str = ""
    """Path relative to the workspace, with forward slashes; empty if unknown."""
    line: int | None = None
    error_type: str = ""
    message: str = ""
    """The tool's full text (B21), cut at the limits of K41."""
    check: str = ""
    """The specialist's check that found it."""
    severity: Severity | None = None
    context: str = ""
    suggestion: str = ""
    frame: str = ""
    """`file:line` of the deepest frame in the project's own code, or of its test if there is none."""
    source: str = ""
    """The lines around `frame` or the location, with line numbers."""
    rerun: str = ""
    """The command line that runs only this, if the tool is known."""
    id: str = ""
    """In a failure report: its number in the run, such as `F1`, for `fixloop ack --show`."""
    alike: int = Field(default=1, ge=0)
    """In a failure report: the number of failures with the same error at the same place, including this one."""
    others: tuple[str, ...] = ()
    """In a failure report: `F2 name` for each of the others, as far as they fit."""
    measure: str = ""
    """Only for a failure that stands for a whole measurement: a percentage, an output's digest."""

    @property
    def key(self) -> FailureKey:
        return FailureKey.of(self)

    @property
    def priority(self) -> Severity:
        """Its urgency (B8): its severity, or High if the tool gave none (K13)."""
        return self.severity or Severity.HIGH

    @property
    def location(self) -> str:
        """`file:line`, `file` or empty."""
        return f"{self.file}:{self.line}" if self.file and self.line is not None else self.file


class FailureRef(Value):
    """A failure as the history keeps it: enough to compare and name it."""

    name: str
    file: str = ""
    line: int | None = None
    error_type: str = ""
    measure: str = ""
    headline: str = ""
    """The message's first line, at most 160 characters."""
    frame: str = ""
    """The failure's deepest frame in the project's own code."""

    @property
    def key(self) -> FailureKey:
        return FailureKey.of(self)

    @property
    def error(self) -> str:
        """`AssertionError: assert 1 == 2`, from the parts that exist, without repeating the type."""
        if self.error_type and self.headline.startswith(self.error_type):
            return self.headline
        return ": ".join(part for part in (self.error_type, self.headline) if part)

    @property
    def described(self) -> str:
        """`name (file:line) - error type`, from the parts that exist."""
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file
        where = f" ({place})" if place else ""
        return f"{self.name}{where}{f' - {self.error_type}' if self.error_type else ''}"

    @classmethod
    def of(cls, failure: Failure) -> "FailureRef":
        first = next((line for line in failure.message.splitlines() if line.strip()), "")
        return cls(
            name=failure.name,
            file=failure.file,
            line=failure.line,
            error_type=failure.error_type,
            measure=failure.measure,
            headline=first.strip()[:160],
            frame=failure.frame,
        )


class Comparison(Value):
    """The changes between two consecutive runs (A93, B42); lists are names with multiplicity."""

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
    """Whether all runs failed with the same non-empty multiset of keys (K7)."""
    counted = [Counter(run) for run in runs]
    return bool(counted) and bool(counted[0]) and all(run == counted[0] for run in counted)


def _names(found: Counter[FailureKey]) -> tuple[str, ...]:
    return tuple(key.name for key in sorted(found.elements()))


_VALUE: Final = re.compile(
    r"'[^'\n]{0,500}'|\"[^\"\n]{0,500}\"|`[^`\n]{0,500}`|\b0x[0-9a-fA-F]+|\b[0-9a-f]{8,}\b|\d+(?:\.\d+)?"
)


def groups(failures: Iterable[FailureRef]) -> list[list[int]]:
    """Groups of failures with the same error at the same place, as positions in the run from 0: the largest group
    first, equal sizes in their order. A group's first failure is its example."""
    found: dict[tuple[str, str], list[int]] = {}
    for position, failure in enumerate(failures):
        found.setdefault(_key(failure), []).append(position)
    return sorted(found.values(), key=lambda positions: (-len(positions), positions[0]))


def _key(failure: FailureRef) -> tuple[str, str]:
    # A test's key is its error without values and its deepest frame; a rule's findings are one group, wherever they
    # are. Only the beginning of an error is certain to be kept on one line.
    error = _VALUE.sub("#", failure.error[:80])
    if failure.frame:
        return error, failure.frame
    return "" if "::" not in failure.name and failure.line is not None else error, failure.name


def common_prefix(names: Sequence[str]) -> str:
    """The common prefix of `names`, up to the last `::` or `/`; empty for a single name."""
    if len(names) < 2:
        return ""
    first, last = min(names), max(names)
    length = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    test, folder = first.rfind("::", 0, length), first.rfind("/", 0, length)
    return first[: max(test + 2 if test >= 0 else 0, folder + 1)]
