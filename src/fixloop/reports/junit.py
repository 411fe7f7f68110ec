"""JUnit XML: how many tests ran, which failed, and whether the file is complete.

Reads the file as a stream of elements through defusedxml, with one test in memory at a time. Refuses DTDs, entities, a
file that declares more tests than it lists, and a file without a test.
"""

import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException  # type: ignore[import-untyped, unused-ignore]
from defusedxml.ElementTree import iterparse  # type: ignore[import-untyped, unused-ignore]

from fixloop.protocol.checks import RunOutcome
from fixloop.protocol.limits import one_line, short_name
from fixloop.reports.report import Report, SourceTree, Tests, Unusable
from fixloop.reports.testcase import read_case, suite_failure

_SUITES: Final = frozenset({"testsuite", "testsuites"})
_FAULTS: Final = frozenset({"failure", "error"})

# Real reports nest less than ten deep; the limits only stop a file made to fill memory.
MAX_DEPTH: Final = 100
MAX_ELEMENTS_OF_A_TEST: Final = 10_000

_PIECE_BYTES: Final = 256 * 1024

# What XML forbids, also as references: mocha and others copy the escapes (group 1) of coloured messages.
_FORBIDDEN: Final = re.compile(
    rb"(?i)(\x1b|&#(?:27|x1b);)"
    rb"|[\x01-\x08\v\f\x0e-\x1f]|&#(?:0*(?:[0-8]|1[124-9]|2\d|3[01])|x0*(?:[0-8bcef]|1[0-9a-f]));"
)

# pytest's suites, which may have another name: `tests` counts subtests, of which only the failing are listed, and each
# stage that was skipped or failed.
_OF_PYTEST: Final = tuple(["name", "errors", "failures", "skipped", "tests", "time", "timestamp", "hostname"])


def read_junit(content: bytes, tree: SourceTree) -> Report:
    """The report of the JUnit XML in `content`. Raises Unusable: not JUnit, incomplete, or unsafe."""
    walk = _Walk(tree)
    for event, element in _events(content):
        if event == "start":
            walk.enter(element)
        else:
            walk.leave(element)
    # A file that cannot be collected is a failure named after the file; its name here resolves that (K7).
    walk.tests.not_counted += sorted(walk.collected)
    return walk.tests.report()


def _events(content: bytes) -> Iterator[tuple[str, Element]]:
    # Replaced as pytest does, and not removed, which could make markup of a text. A zero byte is part of UTF-16.
    if b"\0" not in content:
        content = _FORBIDDEN.sub(lambda found: b"#x1B" if found[1] else b"?", content)
    try:
        yield from iterparse(_Pieces(content), events=("start", "end"), forbid_dtd=True)
    except DefusedXmlException:
        raise Unusable("has a document type or entities, which a JUnit report does not need") from None
    except ParseError as error:
        raise Unusable(f"is not whole XML: {error}") from None
    except (ValueError, LookupError) as error:
        raise Unusable(f"is not readable XML: {error}") from None


class _Pieces(io.BytesIO):
    """Content in larger pieces than asked for: expat reads an unfinished token again with every piece."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(_PIECE_BYTES)


@dataclass
class _Suite:
    """What an open suite declares about itself, and what it has listed so far; an absent number counts as 0."""

    name: str
    tests: int
    faults: int
    """Failures and errors together."""
    listed: Counter[str] = field(default_factory=Counter)
    counts_subtests: bool = False

    def require_whole(self) -> None:
        """Raises Unusable if it lists less than it declares. The sum decides: tools define errors differently."""
        for declared, what, listed in (
            (self.faults, "failures and errors", self.listed["faults"]),
            (0 if self.counts_subtests else self.tests, "tests", self.listed["tests"]),
        ):
            if declared > listed:
                name = f"suite `{short_name(self.name)}`"
                raise Unusable(f"is not whole: {name} declares {declared} {what} and lists {listed}")


class _Walk:
    def __init__(self, tree: SourceTree) -> None:
        self._tree = tree
        self._path: list[Element] = []
        self._open: list[_Suite] = []
        self._elements_of_test = 0
        self.tests = Tests()
        self.collected: set[str] = set()

    def enter(self, element: Element) -> None:
        element.tag = str(element.tag).rsplit("}", 1)[-1]
        if not self._path and element.tag not in _SUITES:
            raise Unusable(
                f"is XML, but its root is <{one_line(element.tag)}>, not <testsuites> or <testsuite>"
            )
        self._path.append(element)
        if len(self._path) > MAX_DEPTH:
            raise Unusable(f"nests elements more than {MAX_DEPTH} deep")
        if self._elements_of_test and (element.tag == "testcase" or element.tag in _SUITES):
            raise Unusable(f"has a <{element.tag}> inside a test")
        if self._elements_of_test or element.tag == "testcase":
            self._elements_of_test += 1
        if self._elements_of_test > MAX_ELEMENTS_OF_A_TEST:
            raise Unusable(f"has a test of more than {MAX_ELEMENTS_OF_A_TEST} elements")
        if element.tag in _SUITES:
            name, failures = element.get("name", ""), _count(element, "failures")
            errors = _count(element, "errors")
            # Old releases of mocha count each failing test as both.
            faults = failures if name == "Mocha Tests" and failures == errors else failures + errors
            is_pytest = name == "pytest" or tuple(element.keys()) == _OF_PYTEST
            self._open.append(_Suite(name, _count(element, "tests"), faults, counts_subtests=is_pytest))

    def leave(self, element: Element) -> None:
        self._path.pop()
        parent = self._path[-1] if self._path else None
        if element.tag in _SUITES:
            closed = self._open.pop()
            closed.require_whole()
            if self._open:
                self._open[-1].listed += closed.listed
                self._open[-1].counts_subtests |= closed.counts_subtests
        elif element.tag == "testcase":
            case = read_case(element, self._open[-1].name, self._tree)
            self._elements_of_test = 0
            self._open[-1].listed += Counter(tests=1, faults=case.faults)
            self.tests.flaky += case.flaky
            self.tests.errors += case.outcome is RunOutcome.ERROR
            if case.file and case.name != case.file:
                self.collected.add(case.file)
            if case.failure:
                self.tests.add(case.failure)
            elif case.outcome is RunOutcome.PASSED:
                self.tests.passed.append(case.name)
            else:
                self.tests.skipped += 1
        elif element.tag in _FAULTS and parent is not None and parent.tag in _SUITES:
            self.tests.errors += element.tag == "error"
            self._open[-1].listed += Counter(faults=1)
            self.tests.add(suite_failure(element, self._open[-1].name, self._tree))
        if parent is not None and not self._elements_of_test:
            # All at once: the parser's events keep alive what it has read ahead.
            del parent[:]


def _count(element: Element, attribute: str) -> int:
    text = element.get(attribute, "").strip() or "0"
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Unusable(f"is not JUnit: a suite declares {attribute}={text[:40]!r}, which is not a count")
    return int(text)
