import sys
from datetime import date

from ledger.exchange import export, read_csv
from ledger.journal import Entry
from ledger.statement import Statement


def test_a_csv_file_becomes_a_journal(tmp_path):
    bank = tmp_path / "bank.csv"
    bank.write_text("day,amount,category,memo\n2026-03-02,-12.50,food,lunch\n2026-03-01,900,,\n")

    journal = read_csv(bank, "checking")

    assert journal.entries("checking", 2026, 3) == [
        Entry(date(2026, 3, 1), "checking", 90000),
        Entry(date(2026, 3, 2), "checking", -1250, "food", "lunch"),
    ]


def test_the_hook_is_given_the_exported_file(tmp_path):
    statement = Statement("checking", date(2026, 3, 1), 0, [], 0)
    script = tmp_path / "archive.py"
    script.write_text("import os, sys\nos.rename(sys.argv[1], sys.argv[1] + '.archived')\n")

    path = export(statement, tmp_path, hook=f"'{sys.executable}' '{script}'")

    assert path.with_name("checking-2026-03.txt.archived").exists()
