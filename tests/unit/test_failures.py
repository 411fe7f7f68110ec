"""What makes two failures the same one, and how two runs compare."""

import pytest
from hypothesis import given, strategies as st

from fixloop.protocol.failures import Failure, FailureKey, compare, same_failures

A, B, C = (FailureKey(f"tests/{name}.py", name, "AssertionError", "") for name in "abc")
KEYS = st.lists(st.sampled_from([A, B, C]), max_size=6)


@pytest.mark.proves("K7", "B43")
def test_line_message_and_severity_do_not_make_another_failure() -> None:
    one = Failure(name="a", file="a.py", line=1, error_type="KeyError", message="'x'")
    other = one.model_copy(update={"line": 99, "message": "'y'", "check": "z", "suggestion": "s"})

    assert one.key == other.key


@pytest.mark.proves("K7")
@pytest.mark.parametrize("field", ["name", "file", "error_type", "measure"])
def test_name_file_error_type_and_measure_make_another_failure(field: str) -> None:
    one = Failure(name="a", file="a.py", error_type="KeyError")

    assert one.key != one.model_copy(update={field: "another"}).key


@pytest.mark.proves("K7")
def test_keys_are_counted_with_multiplicity() -> None:
    finding = Failure(name="E501", file="app.py", error_type="E501")
    found = [finding.model_copy(update={"line": line}).key for line in (1, 2, 3)]

    assert compare([], found).new == ("E501", "E501", "E501")
    assert not same_failures([found, found[:2]])


@pytest.mark.proves("B42")
def test_a_comparison_splits_into_resolved_persisting_and_new() -> None:
    compared = compare([A, B, B], [B, C])

    assert compared.resolved == ("a", "b")
    assert compared.persisting == ("b",)
    assert compared.new == ("c",)


@pytest.mark.proves("B42")
@given(KEYS, KEYS)
def test_counts_add_up_on_both_sides(previous: list[FailureKey], current: list[FailureKey]) -> None:
    compared = compare(previous, current)

    assert compared.previous_count == len(previous)
    assert len(compared.persisting) + len(compared.new) == len(current)
    assert sorted([*compared.resolved, *compared.persisting]) == sorted(key.name for key in previous)
    assert sorted([*compared.new, *compared.persisting]) == sorted(key.name for key in current)


@pytest.mark.proves("K7")
@given(KEYS.flatmap(lambda run: st.tuples(st.just(run), st.permutations(run))))
def test_order_does_not_matter_for_sameness(runs: tuple[list[FailureKey], list[FailureKey]]) -> None:
    run, shuffled = runs

    assert same_failures([run, shuffled, run]) is bool(run)


@pytest.mark.proves("K7")
@pytest.mark.parametrize("runs", [[], [[]], [[], [], []], [[A], [A, A]], [[A], [B]], [[A], []]])
def test_no_failures_and_other_counts_are_not_the_same(runs: list[list[FailureKey]]) -> None:
    assert not same_failures(runs)


@pytest.mark.proves("A25")
def test_a_location_says_as_much_as_is_known() -> None:
    assert Failure(name="a", file="a.py", line=3).location == "a.py:3"
    assert Failure(name="a", file="a.py").location == "a.py"
    assert Failure(name="a", line=3).location == ""
