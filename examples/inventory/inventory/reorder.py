"""What to order when stock falls below its minimum. Suppliers sell whole packs."""

from inventory.stock import Stock


def packs_needed(missing: int, pack: int) -> int:
    return missing // pack


def proposals(stock: Stock, minimum: dict[str, int], pack: dict[str, int]) -> dict[str, int]:
    """Packs to order for each item below its minimum."""
    missing = {item: wanted - stock.count(item) for item, wanted in minimum.items()}
    return {
        item: packs_needed(count, pack.get(item, 1)) for item, count in missing.items() if count > 0
    }
