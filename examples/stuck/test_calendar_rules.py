from calendar_rules import is_leap


def test_every_fourth_year_is_a_leap_year():
    assert is_leap(2024)
    assert not is_leap(2025)


def test_a_century_is_no_leap_year():
    assert not is_leap(1900)


def test_a_negative_year_is_refused():
    try:
        is_leap(-4)
    except ValueError:
        return
    raise AssertionError("a negative year was accepted")
