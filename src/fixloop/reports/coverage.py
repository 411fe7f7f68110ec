"""Coverage: coverage.py's JSON report, one figure and one gate, and the thresholds of test runners.

Owns the comparison, which is exact: 79.95 is below 80, however it is displayed. Refuses a figure that is not a
percentage, and a run that measured nothing.
"""

import math
import re
from itertools import groupby
from typing import Final

from fixloop.protocol.checks import Counts, RunOutcome
from fixloop.protocol.failures import Failure, Severity
from fixloop.protocol.limits import MAX_FAILURES
from fixloop.reports.document import json_object
from fixloop.reports.report import Report, SourceTree, Unusable, failure_of

NAME: Final = "coverage"
"""The name of the failure that represents the whole measurement (G24)."""

_BELOW_GATE: Final = "CoverageBelowTarget"
_BELOW_THRESHOLD: Final = "coverage"
_WORST_FILES: Final = 5
_RANGES: Final = 12
# Messages of c8, nyc, Vitest and Jest if every test passes but the exit code is not 0.
_MISSED: Final = re.compile(
    r"^(?:ERROR: )?Coverage for (?P<what>\w+) \((?P<is>[\d.]+)%\) does not meet .{1,300}"
    r"|^Jest: .{1,200} coverage threshold for (?P<jest>\w+) \(.{1,20}\) not met: (?P<was>[\d.]+)%",
    re.MULTILINE,
)


def read_coverage(content: bytes, tree: SourceTree, gate: float | None) -> Report:
    """The percentage in `content`, and a failure if it is below `gate` (B68). Raises Unusable."""
    document = json_object(content)
    totals = document.get("totals")
    if not isinstance(totals, dict):
        raise Unusable("has no totals, so it is not coverage.py's JSON report")
    percent = totals.get("percent_covered")
    if isinstance(percent, bool) or not isinstance(percent, int | float) or not math.isfinite(percent):
        raise Unusable("has no number in totals.percent_covered")
    if not 0 <= percent <= 100:
        raise Unusable(f"says {percent:g}% are covered, which is no percentage")
    if totals.get("num_statements") == 0:
        raise Unusable("measured no statement: no file of the project was imported or selected")
    if gate is None:
        reason = f"coverage is {_floored(percent, 2)}%"
        return Report(outcome=RunOutcome.PASSED, reason=reason, coverage_percent=percent)
    failed = percent < gate
    return Report(
        outcome=RunOutcome.FAILED if failed else RunOutcome.PASSED,
        reason=f"coverage {_floored(percent, 2)}% {'is below' if failed else 'meets'} the gate of {gate:g}%",
        counts=Counts(total=1, passed=int(not failed), failed=int(failed)),
        failures=(_failure(percent, gate, document.get("files"), tree),) if failed else (),
        coverage_percent=percent,
        findings=int(failed),
    )


def is_too_low(failure: Failure) -> bool:
    """Whether the failure is a coverage figure, not a test."""
    return failure.error_type in (_BELOW_GATE, _BELOW_THRESHOLD)


def _floored(percent: float, digits: int) -> str:
    """Never rounded up: a figure below its gate must not appear to meet it."""
    scale = 10**digits
    return f"{math.floor(percent * scale + 1e-9) / scale:.{digits}f}"


def _failure(percent: float, gate: float, files: object, tree: SourceTree) -> Failure:
    missing: list[tuple[str, list[int]]] = []
    for path, entry in files.items() if isinstance(files, dict) else ():
        listed = entry.get("missing_lines") if isinstance(entry, dict) else None
        numbers = sorted(line for line in listed if isinstance(line, int)) if isinstance(listed, list) else []
        missing += [(tree.relative(str(path)), numbers)] if numbers else []
    worst = sorted(missing, key=lambda pair: (-len(pair[1]), pair[0]))[:_WORST_FILES]
    lines = []
    for file, numbers in worst:
        # `3-5, 9` for 3, 4, 5, 9: neighbours have the same distance from their places in the list.
        runs = groupby(enumerate(numbers), lambda each: each[1] - each[0])
        spans = [[line for _, line in run] for _, run in runs]
        shown = [f"{span[0]}-{span[-1]}" if len(span) > 1 else str(span[0]) for span in spans[:_RANGES]]
        ranges = ", ".join(shown) + (", …" if len(spans) > _RANGES else "")
        lines.append(f"{file}: {len(numbers)} lines missing: {ranges}")
    message = "\n".join([f"coverage is {_floored(percent, 2)}%, the gate is {gate:g}%", *lines])
    measure = _floored(percent, 1)
    return failure_of(NAME, _BELOW_GATE, message, severity=Severity.MEDIUM, measure=measure)


def missed_thresholds(output: str) -> tuple[Failure, ...]:
    """One failure for each figure that is too low, with the figure as its measure: a rise is progress."""
    return tuple(
        failure_of(
            f"coverage of {found['what'] or found['jest']}",
            _BELOW_THRESHOLD,
            found[0].strip(),
            severity=Severity.MEDIUM,
            suggestion="add tests that run the missing lines",
            measure=found["is"] or found["was"],
        )
        for found in _MISSED.finditer(output)
    )[:MAX_FAILURES]
