"""Entries in time order; everything else is computed from them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True)
class Entry:
    """One movement on one account; spending is negative."""

    day: date
    account: str
    cents: int
    category: str = "other"
    memo: str | None = None


class Journal:
    """All entries of all accounts."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries = sorted(entries, key=lambda entry: entry.day)

    def post(self, entry: Entry) -> None:
        """Add one entry, keeping time order."""
        self._entries.append(entry)
        self._entries.sort(key=lambda entry: entry.day)

    def accounts(self) -> list[str]:
        """Names of all accounts, sorted."""
        return sorted({entry.account for entry in self._entries})

    def entries(self, account: str, year: int, month: int) -> list[Entry]:
        """Entries of `account` in one month."""
        return [
            entry
            for entry in self._entries
            if entry.account == account and (entry.day.year, entry.day.month) == (year, month)
        ]

    def balance(self, account: str, before: date = date.max) -> int:
        """Cents on `account` at the start of the day `before`."""
        return sum(e.cents for e in self._entries if e.account == account and e.day < before)

    def largest(self, account: str) -> Entry:
        """The entry of `account` that moved most."""
        mine = [entry for entry in self._entries if entry.account == account]
        return max(mine, key=lambda entry: abs(entry.cents), default=None)
