"""`python -m inventory replay WEEK EXPECTED`: replays a week and compares what to reorder."""

import json
import sys
from pathlib import Path

from inventory.reorder import proposals
from inventory.stock import Stock


def replay(week: dict) -> dict[str, int]:
    """Packs to order after all deliveries and sales of `week`."""
    stock = Stock(week["opening"])
    for day in week["days"]:
        for item, count in day.get("delivered", {}).items():
            stock.receive(item, count)
        for item, count in day.get("sold", {}).items():
            stock.sell(item, count)
    return proposals(stock, week["minimum"], week["pack"])


def main(arguments: list[str]) -> int:
    """Exit code 1 when the replay differs from what is expected, 2 for a wrong call."""
    if len(arguments) != 3 or arguments[0] != "replay":
        print("usage: python -m inventory replay WEEK EXPECTED", file=sys.stderr)
        return 2
    week, expected = (json.loads(Path(name).read_text(encoding="utf-8")) for name in arguments[1:])
    found = replay(week)
    for item in sorted(expected.keys() | found.keys()):
        if found.get(item) != expected.get(item):
            print(f"{item}: {found.get(item)} packs proposed, {expected.get(item)} expected")
    return int(found != expected)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
