from datetime import date

from ledger.journal import Entry, Journal


def test_entries_are_kept_in_time_order():
    journal = Journal([Entry(date(2026, 3, 9), "checking", -100)])
    journal.post(Entry(date(2026, 3, 2), "checking", 500))

    assert [entry.cents for entry in journal.entries("checking", 2026, 3)] == [500, -100]


def test_a_balance_is_that_of_the_start_of_the_day():
    journal = Journal([Entry(date(2026, 3, 9), "checking", 700)])

    assert journal.balance("checking", before=date(2026, 3, 9)) == 0
    assert journal.balance("checking") == 700
