import pytest

from ledger.money import format_amount, parse_amount


@pytest.mark.parametrize(
    ("text", "cents"),
    [("12.50", 1250), ("-3", -300), (" 1,200.00 ", 120000), ("0.005", 0), ("0", 0)],
)
def test_amounts_are_read_as_cents(text, cents):
    assert parse_amount(text) == cents


@pytest.mark.parametrize(("cents", "text"), [(1250, "12.50"), (-5, "-0.05"), (120000, "1,200.00")])
def test_cents_are_written_as_amounts(cents, text):
    assert format_amount(cents) == text
