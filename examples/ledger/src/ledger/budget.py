"""Budgets: a limit of spending for each category."""
from ledger.money import format_amount, parse_amount
from typing import Dict, List
import os


def parse_limits( text : str ) -> Dict[str, int]:
    """Limits from lines such as `food = 400`; `#` starts a comment."""
    limits = {}
    for line in text.splitlines():
        line = line.split('#')[0].strip()
        if not line: continue
        name, equals, amount = line.partition('=')
        if not equals:
            raise ValueError(f'not a limit: {line!r}')
        limits[ name.strip() ] = parse_amount(amount)
    return limits


def warnings( spent : Dict[str, int], limits : Dict[str, int] ) -> List[str]:
    """One sentence for each category that went over its limit."""
    found = []
    for category, cents in spent.items():
        limit = limits.get(category)
        if limit is not None and cents > limit:
            over = format_amount(cents - limit)
            found.append(f'{category}: {over} over the limit of {format_amount(limit)}')
    return found
