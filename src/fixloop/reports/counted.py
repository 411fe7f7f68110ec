"""Counts the tests that a runner says it ran, from its output, for checks that write no report.

Adds up every summary that a known runner printed, without skipped tests. Nothing is guessed: without a summary that
counts tests, there is no number.
"""

import re
from typing import Final

# A longer number is no count, and would be read again from each of its digits.
_PYTEST: Final = re.compile(
    r"^(?:=+ )?((?:\d{1,9} (?:failed|passed|skipped|deselected|xfailed|xpassed|warnings?|errors?|rerun)(?:, )?)+)"
    r" in [\d.]+s",
    re.MULTILINE,
)
_OF_PYTEST: Final = re.compile(r"(\d{1,9}) (?:failed|passed|xfailed|xpassed|errors?)\b")
_JAVASCRIPT: Final = re.compile(r"^ *Tests:? +((?:\d{1,9} \w+(?:, | \| )?)+)", re.MULTILINE)
_OF_JAVASCRIPT: Final = re.compile(r"(\d{1,9}) (?:failed|passed)\b")
_UNITTEST: Final = re.compile(
    r"^Ran (\d{1,9}) tests? in .*(?:\n+(?:OK|FAILED) \((?:.*, )?skipped=(\d{1,9}))?", re.MULTILINE
)
_NUMBERS: Final = (
    re.compile(r"^test result: \w+\. (\d{1,9}) passed; (\d{1,9}) failed;", re.MULTILINE),
    re.compile(r"^(?:#|ℹ) pass +(\d{1,9})(?:\n(?:#|ℹ) fail +(\d{1,9}))?$", re.MULTILINE),
    re.compile(r"^ +(\d{1,9}) passing\b.*(?:\n +\d+ pending)?(?:\n +(\d{1,9}) failing)?", re.MULTILINE),
    re.compile(r"^ +Total: +(\d{1,9})\n +Passed: +()", re.MULTILINE),
    re.compile(r"^ +Ran (\d{1,9}) tests with ()\d+ failures", re.MULTILINE),
    re.compile(r"^(\d{1,9}) scenarios? passed, (\d{1,9}) failed", re.MULTILINE),
)
"""Summaries of cargo test, node --test and tape, mocha, uvu, zope.testrunner and behave."""
_GO: Final = re.compile(r"^=== RUN\s", re.MULTILINE)
"""Printed once per test, only with -v; a package's `ok` gives no number of tests."""


def counted(output: str) -> int | None:
    """The number of tests that ran; None if `output` does not give it."""
    found: list[int] = []
    for whole, part in ((_PYTEST, _OF_PYTEST), (_JAVASCRIPT, _OF_JAVASCRIPT)):
        found += [sum(map(int, part.findall(summary))) for summary in whole.findall(output)]
    found += [int(ran) - int(skipped or 0) for ran, skipped in _UNITTEST.findall(output)]
    for pattern in _NUMBERS:
        found += [int(one) + int(two or 0) for one, two in pattern.findall(output)]
    if started := len(_GO.findall(output)):
        found.append(started)
    return sum(found) if found else None
