"""Monthly statements (feature #47): what an account held, what moved, what it holds now."""

from dataclasses import dataclass
from datetime import date

from ledger.journal import Entry, Journal
from ledger.money import format_amount


@dataclass(frozen=True)
class Statement:
    """One account in one month."""

    account: str
    first: date
    opening: int
    entries: list[Entry]
    closing: int


def build_statement(journal: Journal, account: str, year: int, month: int) -> Statement:
    """The statement of `account` for one month."""
    first = date(year, month, 1)
    entries = journal.entries(account, year, month)
    opening = journal.balance(account, before=first)
    closing = sum(entry.cents for entry in entries)
    return Statement(account, first, opening, entries, closing)


def totals_by_category(statement: Statement) -> dict[str, int]:
    """What was spent in each category, as positive cents, largest first."""
    totals: dict[str, int] = {}
    for entry in statement.entries:
        if entry.cents < 0:
            totals[entry.category] -= entry.cents
    ordered = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    return dict(ordered)


def render(statement: Statement) -> str:
    """The statement as text, one line an entry."""
    lines = [f"{statement.account}, {statement.first:%B %Y}"]
    lines.append(f"{'opening balance':<36}{format_amount(statement.opening):>12}")
    for entry in statement.entries:
        memo = entry.memo.strip()
        label = memo or entry.category
        if len(label) > 24:
            label = label[:23] + "…"
        lines.append(f"{entry.day:%Y-%m-%d}  {label:<24}{format_amount(entry.cents):>12}")
    lines.append(f"{'closing balance':<36}{format_amount(statement.closing):>12}")
    return "\n".join(lines) + "\n"
