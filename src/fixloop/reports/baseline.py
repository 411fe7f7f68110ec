"""Separates a check's new failures from old ones: those the base also has, even if its lines have moved.

A failure is old if the base has the same one (file, name, type, message) on the same line, unchanged or moved. A
failure on a line that the feature wrote is new, even if the base has the same one elsewhere.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from posixpath import join, normpath
from typing import Final, NamedTuple, Protocol

from fixloop.protocol.failures import Failure
from fixloop.protocol.limits import one_line
from fixloop.reports.coverage import NAME as COVERAGE
from fixloop.reports.output import ALL, measure_of
from fixloop.repository.moves import LineMap

_VARYING: Final = (
    (re.compile(r"(\blines? )\d+"), r"\1#"),
    (re.compile(r"(\.\w{1,5}):\d+(?::\d+)?"), r"\1:#"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "#"),
    (re.compile(r"(?<![\w.])\d+(?:\.\d+)? ?(?:ms|s|seconds?)\b"), "#"),
)
"""The parts that vary between runs of one fault: line numbers, addresses, durations."""
_FILE: Final = re.compile(r"[\w-]\.[A-Za-z]\w{0,5}\b")
_CUT: Final = re.compile(r" bytes (cut\]|left out …\])")


class SplitFailures(NamedTuple):
    """A check's failures, split; each part in its original order."""

    new: tuple[Failure, ...]
    old: tuple[Failure, ...]


class _Moves(Protocol):
    def name_after(self, path: str) -> str: ...

    def lines(self, path: str) -> LineMap: ...


class _Fault(NamedTuple):
    """The key under which failures of two runs are the same, apart from the line."""

    path: str
    name: str
    error_type: str
    measure: str
    text: str


def comparable(failures: Iterable[Failure], workspace: str) -> tuple[Failure, ...]:
    """The failures without the path of the workspace in their messages."""
    prefix = f"{workspace.rstrip('/')}/"
    return tuple(each.model_copy(update={"message": each.message.replace(prefix, "")}) for each in failures)


def tell_apart(
    base: Iterable[Failure],
    present: Sequence[Failure],
    moves: _Moves,
    *,
    subdirectory: str = "",
    workspace: str = "",
) -> SplitFailures:
    """
    Split the present failures into new and old ones; each base failure, made `comparable`, matches at most one.

    `moves`: by paths from the top. `subdirectory`: the folder, from the top, that the failures' paths are relative to.
    """
    left: dict[_Fault, list[Failure]] = defaultdict(list)
    for failure in base:
        if failure.name != COVERAGE or not failure.measure:
            path = moves.name_after(normpath(join(subdirectory, failure.file)))
            left[_fault(failure, path)].append(failure)
    found = comparable(present, workspace) if workspace else present
    faults = [_fault(failure, normpath(join(subdirectory, failure.file))) for failure in found]
    unexplained = [number for number, fault in enumerate(faults) if fault not in left]
    open_ = [number for number, fault in enumerate(faults) if fault in left]
    # Unmoved lines match first; moved lines get the remaining candidates.
    for is_same in (_stayed, _moved):
        still_open = []
        for number in open_:
            candidates, lines = left[faults[number]], moves.lines(faults[number].path)
            same = (at for at, before in enumerate(candidates) if is_same(before, present[number], lines))
            if (place := next(same, None)) is None:
                still_open.append(number)
            else:
                # Each base failure matches only once.
                del candidates[place]
        open_ = still_open
    new = {*unexplained, *open_}
    return SplitFailures(
        tuple(failure for number, failure in enumerate(present) if number in new),
        tuple(failure for number, failure in enumerate(present) if number not in new),
    )


def _fault(failure: Failure, path: str) -> _Fault:
    # A failure that represents a whole output has only its text, whose lines parallel tools print in any order.
    whole = failure.message.rpartition(ALL)[2].splitlines()
    text = "\n".join(sorted(whole)) if failure.measure else one_line(failure.message)
    for pattern, instead in _VARYING:
        text = pattern.sub(instead, text)
    return _Fault(path, failure.name, failure.error_type, failure.measure, text)


def _stayed(before: Failure, failure: Failure, lines: LineMap) -> bool:
    if failure.line is None or before.line is None:
        # A whole output that names no file may be the same for another fault.
        is_silent = failure.measure == measure_of("") or not _FILE.search(failure.message)
        is_vague = failure.measure and (is_silent or _CUT.search(failure.message))
        return failure.line == before.line and not is_vague
    return lines.after(before.line) == failure.line


def _moved(before: Failure, failure: Failure, lines: LineMap) -> bool:
    if failure.line is None or before.line is None:
        return False
    text = lines.added.get(failure.line, "").strip()
    return bool(text) and lines.removed.get(before.line, "").strip() == text
