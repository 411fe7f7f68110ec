"""What a formerly failing test is, by its results when it ran again in each place."""

import pytest

from workers.commands.proof import told_apart

PASSED, FAILED = "passed", "failed"


def judged(
    varied: str, plain: str = PASSED, *, again: tuple[str, str] = ("", ""), in_place: str = ""
) -> tuple[bool, bool]:
    """Whether the test `a` is flaky, and whether it depends on conditions; `again`: usual ones, then other ones."""
    found = {"varied": {"a": varied, "b": PASSED}, "plain": {"a": plain, "b": PASSED}}
    second = {"plain": {"a": again[0], "b": PASSED}, "varied": {"a": again[1], "b": PASSED}}
    flaky, depends = told_apart(
        found, second if again[0] else {}, {"plain": {"a": in_place}} if in_place else {}
    )
    assert "b" not in flaky + depends
    return "a" in flaky, "a" in depends


def test_a_test_that_passes_everywhere_is_neither_flaky_nor_dependent() -> None:
    assert judged(PASSED) == (False, False)


def test_a_test_that_fails_in_other_conditions_each_time_depends_on_them() -> None:
    assert judged(FAILED, again=(PASSED, FAILED)) == (False, True)


def test_a_test_that_failed_in_other_conditions_once_is_flaky() -> None:
    assert judged(FAILED, again=(PASSED, PASSED)) == (True, False)


@pytest.mark.parametrize("varied", [PASSED, FAILED])
def test_a_test_that_fails_again_where_the_check_ran_is_flaky(varied: str) -> None:
    assert judged(varied, FAILED, again=(FAILED, FAILED), in_place=FAILED) == (True, False)


def test_a_test_that_passes_next_to_its_check_s_files_is_neither() -> None:
    assert judged(FAILED, FAILED, again=(FAILED, FAILED), in_place=PASSED) == (False, False)


@pytest.mark.parametrize("then", [PASSED, FAILED])
def test_a_test_that_passes_only_once_in_a_process_is_neither(then: str) -> None:
    assert judged(PASSED, FAILED, again=(PASSED, then)) == (False, False)


@pytest.mark.parametrize("then", [("", ""), ("skipped", "skipped")])
def test_a_test_that_could_not_be_run_again_is_neither(then: tuple[str, str]) -> None:
    assert judged(FAILED, FAILED, again=then) == (False, False)
