"""Coverage that a test runner refuses by itself: every test passes, and its exit code says no.

Owns the words of c8, nyc, Vitest and Jest for that.
"""

import re
from typing import Final

from fixloop.protocol.failures import Failure, Severity
from fixloop.reports.limits import MAX_FAILURES, short_name

_MISSED: Final = re.compile(
    r"^(?:ERROR: )?Coverage for (?P<what>\w+) \((?P<is>[\d.]+)%\) does not meet .{1,300}"
    r"|^Jest: .{1,200} coverage threshold for (?P<jest>\w+) \(.{1,20}\) not met: (?P<was>[\d.]+)%",
    re.MULTILINE,
)


def missed_thresholds(output: str) -> tuple[Failure, ...]:
    """One failure for each figure that is too low; its measure is the figure, so that a rise is progress."""
    return tuple(
        Failure(
            name=short_name(f"coverage of {found['what'] or found['jest']}"),
            error_type="coverage",
            message=found[0].strip(),
            severity=Severity.MEDIUM,
            suggestion="add tests that run the missing lines",
            measure=found["is"] or found["was"],
        )
        for found in _MISSED.finditer(output)
    )[:MAX_FAILURES]
