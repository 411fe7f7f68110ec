"""What a chaos run of cycles and handoffs considers equal, and what not."""

import pytest

from fixloop.testing.chaos import plain


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ('"at": "2026-01-22T10:00:00+08:00"', '"at": "2026-03-02T09:30:01.123+08:00"'),
        ("- [10:45:00] VAS: found 1 failure", "- [23:59:59] VAS: found 1 failure"),
        ("ESC-47-20260301T103001Z", "ESC-47-20260302T000000Z"),
        (
            "handoff-3b6adfe6-9929-4fe0-bb5e-68205b0b69f4.json",
            "handoff-e41c63b5-c67e-4c15-be4d-d92ecb9b2adb.json",
        ),
        ("0a1e1e55-5-1.vas.1.1", "d15a57e2-5-1.vas.1.1"),
    ],
)
def test_times_and_ids_do_not_count_as_differences(one: str, two: str) -> None:
    assert plain(one) == plain(two)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("version 1.0.0", "version 1.1.0"),
        ("0a1e1e55-5-1.vas.1.1", "0a1e1e55-5-1.vas.2.1"),
        ('"iteration": 1', '"iteration": 2'),
        ("login fails", "login fails\n"),
    ],
)
def test_everything_else_counts_as_a_difference(one: str, two: str) -> None:
    assert plain(one) != plain(two)
