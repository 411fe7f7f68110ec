"""Feature #47 as its users told it."""

from datetime import date

from ledger.budget import parse_limits, warnings
from ledger.cli import main
from ledger.journal import Entry, Journal
from ledger.statement import build_statement, render, totals_by_category


def household() -> Journal:
    return Journal(
        [
            Entry(date(2026, 2, 27), "checking", 150000, "salary", "ACME Ltd"),
            Entry(date(2026, 3, 2), "checking", -80000, "rent", "March rent"),
            Entry(date(2026, 3, 9), "checking", -12550, "food"),
            Entry(date(2026, 3, 31), "checking", -3000, "food", "market"),
        ]
    )


def test_a_statement_carries_last_months_balance_forward():
    statement = build_statement(household(), "checking", 2026, 3)

    assert statement.opening == 150000
    assert statement.closing == 54450


def test_spending_is_held_against_the_budget():
    totals = totals_by_category(build_statement(household(), "checking", 2026, 3))

    assert totals == {"rent": 80000, "food": 15550}
    limits = parse_limits("# a month\nfood = 150\nrent = 800\n")
    assert warnings(totals, limits) == ["food: 5.50 over the limit of 150.00"]


def test_an_entry_without_a_memo_shows_its_category(tmp_path, capsys):
    text = render(build_statement(household(), "checking", 2026, 3))

    assert "2026-03-09  food" in text
    bank = tmp_path / "bank.csv"
    bank.write_text("day,amount,category,memo\n2026-03-02,-9.50,food,\n")
    assert main(["statement", str(bank), "checking", "2026", "3"]) == 0
    assert "2026-03-02  food" in capsys.readouterr().out
