"""Repeating the tests: which failed, how often, with busy loops that end with the run."""

from tests.again import Run, red_in_all


def test_failures_are_counted_over_all_runs_most_frequent_first() -> None:
    runs = [Run(1, 9, 0, {"a": ""}), Run(1, 9, 0, {"b": "", "a": ""}), Run(0, 9, 0, {})]

    assert red_in_all(runs) == ["2 of 3: a", "1 of 3: b"]


def test_a_run_without_a_result_names_pytest_s_exit_code() -> None:
    assert str(Run(5, 0, 0, {})) == "pytest ended with exit code 5; 0 passed, 0 skipped, 0 red"
