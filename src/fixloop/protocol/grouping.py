"""Failures with one cause, as far as they show it: the same error at the same place of the project's own code.

Owns what counts as the same error. Works on what history keeps of failures, so that any run can be grouped again.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from fixloop.protocol.state import FailureRef

_VALUE: Final = re.compile(
    r"'[^'\n]{0,500}'|\"[^\"\n]{0,500}\"|`[^`\n]{0,500}`|\b0x[0-9a-fA-F]+|\b[0-9a-f]{8,}\b|\d+(?:\.\d+)?"
)


class GroupKey(NamedTuple):
    """What the failures of one group have in common."""

    error: str
    place: str


class Group(NamedTuple):
    """The failures that show the same error at the same place, by their positions in the run."""

    positions: tuple[int, ...]
    """From 0; the first is the group's example."""

    @property
    def size(self) -> int:
        return len(self.positions)


def key_of(failure: FailureRef) -> GroupKey:
    """Which group a failure belongs to: a test's is its error without values and its deepest frame; a rule's findings
    are one group, wherever they lie."""
    if failure.frame:
        return GroupKey(_error(failure), failure.frame)
    if "::" not in failure.name and failure.line is not None:
        return GroupKey("", failure.name)
    return GroupKey(_error(failure), failure.name)


def _error(failure: FailureRef) -> str:
    # Of failures in one line no more is kept for certain.
    return _VALUE.sub("#", failure.error[:80])


def groups(failures: Iterable[FailureRef]) -> tuple[Group, ...]:
    """All groups, the largest first; those of one size as they came."""
    found: dict[GroupKey, list[int]] = {}
    for position, failure in enumerate(failures):
        found.setdefault(key_of(failure), []).append(position)
    ordered = sorted(found.values(), key=lambda positions: (-len(positions), positions[0]))
    return tuple(Group(tuple(positions)) for positions in ordered)


def common_prefix(names: Sequence[str]) -> str:
    """What all of `names` begin with, up to the last `::` or `/`; empty for a single one."""
    if len(names) < 2:
        return ""
    first, last = min(names), max(names)
    length = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    test, folder = first.rfind("::", 0, length), first.rfind("/", 0, length)
    return first[: max(test + 2 if test >= 0 else 0, folder + 1)]
