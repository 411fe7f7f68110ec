"""The one failure of a group that is told in full: its error, the code around it, and how to run it alone.

Owns what is added to a report's own words. Reads the workspace, which is gone when the report is read.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from shlex import join
from typing import Final, NamedTuple

from fixloop.protocol.failures import Failure
from fixloop.protocol.grouping import groups
from fixloop.protocol.state import FailureRef
from fixloop.reports.digest import digest
from fixloop.reports.frames import Frame, deepest_of_test, source_around
from fixloop.reports.limits import FULL_FAILURES, bound, in_full
from fixloop.reports.reproducing import narrower
from fixloop.reports.tree import SourceTree

# pytest 9 and pytest-subtests name subtests in the last lines of their output, and nowhere in the report.
_SUBTEST: Final = re.compile(
    r"^(?:SUBFAIL(?:ED)?(?P<after>[^\n]{0,300}?)|(?P<before>[\[(][^\n]{0,300}) SUBFAIL)"
    r" (?P<test>[^\s\[\]()]{1,300}\.py::\S{1,300})",
    re.MULTILINE,
)
_MOST_SUBTESTS: Final = 20
_CODE_CHARACTERS: Final = 800
"""Around all examples, beyond the lines next to each."""


def explained(
    failure: Failure, argv: Sequence[str], workspace: Path, hide: Callable[[str], str], *, room: int = 0
) -> Failure:
    """
    `failure` with its text shortened to what the code does not say, and with the code.

    Args:
        argv: The command of its check, as somebody would run it again.
        hide: Cuts secrets out of what is read here.
        room: Characters of code beyond the lines next to the failing one.
    """
    file, _, line = (failure.frame or failure.location).rpartition(":")
    tree, source = SourceTree(workspace), ""
    if line.isdigit():
        # The lines around the frame, and where there is room those of the test that came there.
        source = source_around(workspace, Frame(file, int(line)), room)
        test = deepest_of_test(failure.message, tree)
        if test is not None and test.file != file and len(source) < room:
            further = source_around(workspace, test, room - len(source))
            source = f"{source}\n\n{test.file}\n{further}"
    rerun = join(narrower(argv, failure))
    message = digest(failure.message, tree) or failure.message
    return failure.model_copy(update={"message": message, "source": hide(source), "rerun": rerun})


class Told(NamedTuple):
    """Failures as a result has them."""

    failures: tuple[Failure, ...]
    """One of each group in full, others in a line (K41)."""
    whole: tuple[Failure, ...] = ()
    """All of them in full, to look one up."""


def with_examples(
    failures: Sequence[Failure], argv: Sequence[str], workspace: Path, hide: Callable[[str], str]
) -> Told:
    """The failures of a check with one of each group explained; arguments as `explained` has them."""
    told = list(failures)
    examples = {group.positions[0] for group in groups(map(FailureRef.of, told))[:FULL_FAILURES]}
    room = _CODE_CHARACTERS // max(1, len(examples))
    for place in examples:
        told[place] = explained(told[place], argv, workspace, hide, room=room)
    return Told(bound(told, examples), tuple(map(in_full, told)))


def with_subtests(failures: Iterable[Failure], output: str) -> list[Failure]:
    """The failures of a test runner, those of tests with failing subtests with their names."""
    found: dict[str, list[str]] = {}
    for match in _SUBTEST.finditer(output):
        found.setdefault(match["test"], []).append((match["after"] or match["before"]).strip())
    told = []
    for failure in failures:
        names = [name for name in found.get(failure.name, ()) if name]
        if names:
            more = f" and {len(names) - _MOST_SUBTESTS} more" if len(names) > _MOST_SUBTESTS else ""
            listed = f"{failure.message}\nfailing subtests: {', '.join(names[:_MOST_SUBTESTS])}{more}"
            failure = failure.model_copy(update={"message": listed})
        told.append(failure)
    return told
