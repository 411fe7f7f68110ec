"""How many of each item lie on the shelves."""


class Stock:
    """Counts by item; never below zero."""

    def __init__(self, counts: dict[str, int] | None = None) -> None:
        self._counts = dict(counts or {})

    def receive(self, item: str, count: int) -> None:
        """Put `count` of `item` on the shelf."""
        if count < 1:
            raise ValueError(f"a delivery of {count} {item}")
        self._counts[item] = self.count(item) + count

    def sell(self, item: str, count: int) -> int:
        """Take up to `count` of `item`; returns how many were missing."""
        taken = min(count, self.count(item))
        self._counts[item] = self.count(item) - taken
        return count - taken

    def count(self, item: str) -> int:
        """How many of `item` there are."""
        return self._counts.get(item, 0)
