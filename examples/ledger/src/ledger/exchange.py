"""CSV from the bank, statements to files."""

import csv
import subprocess
from collections.abc import Iterable
from datetime import date
from pathlib import Path

from ledger.journal import Entry, Journal
from ledger.money import parse_amount
from ledger.statement import Statement, render


def read_rows(rows: Iterable[dict[str, str]], account: str) -> Journal:
    """A journal from rows with `day`, `amount` and optional `category` and `memo`."""
    journal = Journal()
    for number, row in enumerate(rows, start=1):
        try:
            day, cents = date.fromisoformat(row["day"]), parse_amount(row["amount"])
        except (KeyError, ValueError) as problem:
            raise ValueError(f"row {number}: {problem}") from problem
        journal.post(
            Entry(day, account, cents, row.get("category") or "other", row.get("memo") or None)
        )
    return journal


def read_csv(path: Path, account: str) -> Journal:
    """A journal from a CSV file with a header line."""
    with path.open(newline="", encoding="utf-8") as stream:
        return read_rows(csv.DictReader(stream), account)


def export(statement: Statement, folder: Path, hook: str = "") -> Path:
    """Write the statement to `folder`, then run `hook` with the new file as last argument."""
    path = folder / f"{statement.account}-{statement.first:%Y-%m}.txt"
    path.write_text(render(statement), encoding="utf-8")
    if hook:
        subprocess.run(f"{hook} {path}", shell=True, check=True)
    return path
