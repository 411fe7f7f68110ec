"""docs/protocol.md matches the code and the tests, and every promise has a test."""

import re

import pytest

from tests.proofs import MOST, collect, every, read, statements
from tests.unit.protocol_page import PAGE, PROMISED, REGENERATE, page

pytestmark = pytest.mark.heavy

STATED = {number: sentence for told in statements().values() for number, sentence in told.items()}
PROTOCOL = {f"{letter}{number}" for letter, last in PROMISED.items() for number in range(1, last + 1)}


@pytest.fixture(scope="module")
def cited() -> set[str]:
    """Every number that a test cites; a fixture, because reading all tests is no work for a collection."""
    return {number for proof in collect() for number in proof.requirements}


def test_the_protocol_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), f"run `{REGENERATE}`"


def test_every_requirement_of_the_protocol_is_stated() -> None:
    assert {number for number in STATED if number[0] in PROMISED} == PROTOCOL


def test_every_requirement_of_the_protocol_has_a_test(cited: set[str]) -> None:
    missing = sorted(PROTOCOL - cited, key=lambda word: (word[0], int(word[1:])))

    assert missing == [], "no test proves these"


def test_every_scenario_has_a_test(cited: set[str]) -> None:
    scenarios = {number for number in STATED if number[0] == "S"}

    assert len(scenarios) == 34
    assert scenarios - cited == set()


def test_every_requirement_that_a_test_cites_is_stated(cited: set[str]) -> None:
    assert cited - set(STATED) == set(), "state these in docs/requirements.toml"


def test_one_test_proves_at_most_four_requirements() -> None:
    broad = [
        f"{proof.node} ({len(proof.requirements)})" for proof in collect() if len(proof.requirements) > MOST
    ]

    assert broad == [], f"split these; one test proves at most {MOST}"


def test_no_test_cites_a_requirement_twice() -> None:
    twice = [proof.node for proof in collect() if len(set(proof.requirements)) < len(proof.requirements)]

    assert twice == []


def test_a_statement_is_one_sentence_without_the_table_s_own_sign() -> None:
    odd = [number for number, text in STATED.items() if not re.fullmatch(r"[^|\n]{10,120}\.", text)]

    assert odd == []


MARKED = """
import pytest
pytestmark = pytest.mark.slow

@pytest.mark.proves("A1", "B2")
@pytest.mark.parametrize("n", [1])
def test_it_holds(n: int) -> None: ...
"""


def test_markers_are_read_from_the_text() -> None:
    (proof,) = read(MARKED, "tests/test_it.py")

    assert proof.node == "tests/test_it.py::test_it_holds"
    assert proof.requirements == ("A1", "B2")
    assert proof.is_slow


@pytest.mark.parametrize(
    "hidden",
    [
        'pytestmark = pytest.mark.proves("A1")',
        '@pytest.mark.proves("A1")\nclass TestIt: ...',
        '@pytest.mark.proves("A1")\ndef prepare() -> None: ...',
    ],
)
def test_a_marker_that_would_not_be_seen_is_refused(hidden: str) -> None:
    with pytest.raises(ValueError, match="on a test function"):
        list(read(hidden, "tests/test_it.py"))


def test_no_unit_test_is_slow_and_no_integration_test_is_quick() -> None:
    misplaced = [
        test.node
        for test in every()
        if (test.is_slow and test.path.startswith("tests/unit/"))
        or (not test.is_slow and test.path.startswith("tests/integration/"))
    ]

    assert misplaced == []
