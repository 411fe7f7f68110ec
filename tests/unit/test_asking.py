"""How failures are grouped and how much a request may hold, whatever failed."""

import pytest

from fixloop.protocol.failures import Failure
from fixloop.protocol.grouping import common_prefix, groups
from fixloop.protocol.messages import FailureReport, FixRequest
from fixloop.protocol.rendering import DELIVERY_CHARACTERS, render_delivery
from fixloop.protocol.request import request_json
from fixloop.protocol.state import FailureRef
from fixloop.reports.limits import short_name
from tests.scenarios.script import Fix, fails
from tests.scenarios.stage import Stage

LONG = "x" * 8000


def test_one_error_at_one_place_is_one_group_whatever_its_values_are() -> None:
    refs = [
        FailureRef(name=f"t{n}", error_type="E", headline=f"value {n} of 'a{n}'", frame="src/a.py:3")
        for n in range(4)
    ]
    other = FailureRef(name="t9", error_type="E", headline="value 1 of 'a'", frame="src/a.py:4")

    assert [group.positions for group in groups([other, *refs])] == [(1, 2, 3, 4), (0,)]


def test_the_findings_of_one_rule_are_one_group_wherever_they_lie() -> None:
    refs = [FailureRef(name="F401", file=f"{name}.py", line=1, headline=f"`{name}` unused") for name in "abc"]

    assert [group.size for group in groups(refs)] == [3]


@pytest.mark.parametrize(
    ("names", "prefix"),
    [
        (["tests/a.py::test_a", "tests/a.py::test_b"], "tests/a.py::"),
        (["tests/a.py::T::x", "tests/b.py::T::x"], "tests/"),
        (["a", "b"], ""),
        (["tests/a.py::x"], ""),
    ],
)
def test_what_names_have_in_common_ends_with_a_part(names: list[str], prefix: str) -> None:
    assert common_prefix(names) == prefix


@pytest.mark.proves("K41")
@pytest.mark.parametrize("others", ["x", "`" * 50, "# a\n---\n"])
def test_a_request_has_at_most_ten_thousand_tokens_whatever_failed(others: str) -> None:
    found = [
        Failure(
            name=short_name(f"tests/t.py::test_{n}[{others}]"),
            message=f"E{n}\n{others * 20}\n{LONG}",
            frame=f"a.py:{n % 500}",
            context=LONG,
        )
        for n in range(1, 1000)
    ]
    stage = Stage([fails(*found), fails(*found)], answers=[Fix()]).run()

    for run in (1, 2):
        report = stage.message(f"VFR-101-test-runner-{run}")
        text = render_delivery(report)

        assert len(text) <= DELIVERY_CHARACTERS
        assert len(str(request_json(report))) <= 3 * DELIVERY_CHARACTERS
        assert isinstance(report.body, FailureReport)
        assert report.body.total == 999


def test_a_later_request_tells_what_was_tried_and_what_came_of_it() -> None:
    stage = Stage([fails("a", "b"), fails("b", "c")], answers=[Fix()]).run()
    request = stage.message("FIXREQ-101-2").body

    assert isinstance(request, FixRequest)
    (tried,) = request.tried
    assert (tried.iteration, tried.resolved, tried.left, tried.new, tried.new_count) == (1, 1, 1, ("c",), 1)


def test_a_request_says_first_what_to_reach() -> None:
    stage = Stage({"code-quality": [fails("a", "b")]}, answers=None).run()

    text = render_delivery(stage.message("VFR-101-code-quality-1"))

    assert text.startswith("Resolve 2 findings of Code Quality")
