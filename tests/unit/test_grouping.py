"""How failures are grouped and how much a request may hold."""

import re

import pytest

from fixloop.protocol.failures import Failure, FailureRef, common_prefix, groups
from fixloop.protocol.limits import short_name
from fixloop.protocol.messages import FixRequest
from fixloop.protocol.rendering import DELIVERY_CHARACTERS, render_delivery
from tests.fixtures.script import Fix, fails
from tests.fixtures.validation_stage import Stage

LONG = "x" * 8000


def test_one_error_at_one_place_is_one_group_with_any_values() -> None:
    refs = [
        FailureRef(name=f"t{n}", error_type="E", headline=f"value {n} of 'a{n}'", frame="src/a.py:3")
        for n in range(4)
    ]
    other = FailureRef(name="t9", error_type="E", headline="value 1 of 'a'", frame="src/a.py:4")

    assert groups([other, *refs]) == [[1, 2, 3, 4], [0]]


def test_the_findings_of_one_rule_are_one_group_in_any_file() -> None:
    refs = [
        FailureRef(name="F401", file=f"{name}.py", line=1, headline=f"{name} is unused") for name in "abc"
    ]

    assert [len(group) for group in groups(refs)] == [3]


@pytest.mark.parametrize(
    ("names", "prefix"),
    [
        (["tests/a.py::test_a", "tests/a.py::test_b"], "tests/a.py::"),
        (["tests/a.py::T::x", "tests/b.py::T::x"], "tests/"),
        (["a", "b"], ""),
        (["tests/a.py::x"], ""),
    ],
)
def test_the_common_prefix_of_names_ends_at_a_component(names: list[str], prefix: str) -> None:
    assert common_prefix(names) == prefix


@pytest.mark.heavy
def test_names_that_grow_when_escaped_do_not_lengthen_a_request() -> None:
    found = [Failure(name=short_name(f"{n}{'`' * 500}"), message="E", frame=f"a.py:{n}") for n in range(50)]
    stage = Stage([fails(*found)], answers=None).run()

    text = render_delivery(stage.message("VFR-101-test-runner-1"))

    assert len(text) <= DELIVERY_CHARACTERS


def test_a_request_gives_a_cause_once_and_names_the_failures_it_stands_for() -> None:
    alike = [
        Failure(name=f"tests/t.py::test_{n}", message="TypeError: no kind", frame="src/a.py:3")
        for n in range(4)
    ]
    other = Failure(name="tests/t.py::test_b", message="KeyError: 1", frame="src/a.py:9")
    stage = Stage([fails(other, *alike)], answers=None).run()

    text = render_delivery(stage.message("VFR-101-test-runner-1"))

    assert re.findall(r"^## (F.*)$", text, re.MULTILINE) == [
        "F2, 4 failures alike at src/a.py:3",
        "F1 at src/a.py:9",
    ]
    assert text.count("TypeError: no kind") == 1
    assert "Also in tests/t.py: F3 test_1, F4 test_2, F5 test_3\n" in text.replace("\\", "")


def test_a_later_request_says_what_was_tried_and_with_what_result() -> None:
    fix = Fix("", diff="-price = 1\n+price = 2\n", said="I believe it is the price.")
    stage = Stage([fails("a", "b"), fails("b", "c")], answers=[fix]).run()
    request = stage.message("FIXREQ-101-2").body

    assert isinstance(request, FixRequest)
    (tried,) = request.tried
    assert (tried.diff, tried.said) == (fix.diff, fix.said)
    assert (tried.iteration, tried.resolved, tried.left, tried.new, tried.new_count) == (1, 1, 1, ("c",), 1)


def test_a_request_states_the_goal_first() -> None:
    stage = Stage({"code-quality": [fails("a", "b")]}, answers=None).run()

    text = render_delivery(stage.message("VFR-101-code-quality-1"))

    assert text.startswith("Resolve 2 findings of Code Quality")
