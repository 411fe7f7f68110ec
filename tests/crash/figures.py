"""Shared by the scripts here: start times, percentiles, and lines that say whether a limit is met."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple


class Begun(NamedTuple):
    """One start of a step, as the scripted crew wrote it."""

    ticket: str
    fence: int
    step: str
    pid: int
    at: float
    """Of the clock that all processes of this machine share."""


def begun(path: Path) -> Iterator[Begun]:
    """Every time so far, in order."""
    lines = path.read_text().splitlines() if path.exists() else []
    for ticket, fence, step, _tree, pid, at, *_ in map(str.split, lines):
        yield Begun(ticket, int(fence), step, int(pid), float(at))


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest of `values` that this percentage does not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


class Report:
    """Figures with their limits; `code` is 1 if one was not met."""

    def __init__(self) -> None:
        self.code = 0

    def at_most(self, what: str, value: float, limit: float, unit: str = " s") -> None:
        """A figure that may not be larger."""
        self._say(what, f"{value:.2f}{unit} (limit {limit:g}{unit})", value <= limit)

    def exactly(self, what: str, value: object, wanted: object) -> None:
        """A figure that has to equal this one."""
        self._say(what, f"{value} (has to be {wanted})", value == wanted)

    def _say(self, what: str, figure: str, is_met: bool) -> None:
        self.code = self.code if is_met else 1
        print(f"{'ok  ' if is_met else 'MISS'} {what}: {figure}", flush=True)
