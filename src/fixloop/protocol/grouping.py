"""Groups failures with a common cause: the same error at the same place of the project's own code.

Defines which errors count as the same. Uses only what the history keeps, so that any run can be regrouped.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from fixloop.protocol.failures import FailureRef

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
