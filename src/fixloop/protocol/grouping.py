"""Failures with one cause, as far as they show it: the same error at the same place of the project's own code.

Owns what counts as the same error. Works on what history keeps of failures, so that any run can be grouped again.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from fixloop.protocol.state import FailureRef

_VALUE: Final = re.compile(
    r"'[^'\n]{0,500}'|\"[^\"\n]{0,500}\"|`[^`\n]{0,500}`|\b0x[0-9a-fA-F]+|\b[0-9a-f]{8,}\b|\d+(?:\.\d+)?"
)


def groups(failures: Iterable[FailureRef]) -> list[list[int]]:
    """The failures that show the same error at the same place, by their positions in the run, from 0: the largest group
    first, those of one size as they came. A group's first is its example."""
    found: dict[tuple[str, str], list[int]] = {}
    for position, failure in enumerate(failures):
        found.setdefault(_key(failure), []).append(position)
    return sorted(found.values(), key=lambda positions: (-len(positions), positions[0]))


def _key(failure: FailureRef) -> tuple[str, str]:
    # A test's is its error without values and its deepest frame; a rule's findings are one group, wherever they lie.
    # Of failures in one line no more is kept for certain than the beginning.
    error = _VALUE.sub("#", failure.error[:80])
    if failure.frame:
        return error, failure.frame
    if "::" not in failure.name and failure.line is not None:
        return "", failure.name
    return error, failure.name


def common_prefix(names: Sequence[str]) -> str:
    """What all of `names` begin with, up to the last `::` or `/`; empty for a single one."""
    if len(names) < 2:
        return ""
    first, last = min(names), max(names)
    length = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    test, folder = first.rfind("::", 0, length), first.rfind("/", 0, length)
    return first[: max(test + 2 if test >= 0 else 0, folder + 1)]
