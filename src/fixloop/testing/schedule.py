"""Which injury is due as tickets come to their boundaries: the one that was planned, or one that was put off."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from fixloop.testing.plan import Boundary, Injury, Occasion, Places, Plan

MOST_FOR_A_TICKET: Final = 4
"""A fifth death of its process is taken for the step's own fault (K40)."""


class Schedule:
    """Goes by a plan; what cannot be done at its occasion is done at the next that fits."""

    def __init__(self, plan: Plan, places: Places) -> None:
        self._plan = plan
        self._places = places
        self._came: Counter[tuple[str, Boundary]] = Counter()
        self._seen: set[tuple[str, Boundary]] = set()
        self._put_off: list[Injury] = []
        self._hurt: Counter[str] = Counter()

    def due(
        self, ticket: str, steps: Sequence[str], boundary: Boundary, may: Callable[[Injury], bool]
    ) -> Injury | None:
        """
        What to do to a ticket that is at a boundary, once for each boundary.

        Args:
            steps: all names of its step.
            may: whether there is somebody to be hurt that way.
        """
        if self.has_come(ticket, boundary):
            return None
        self._seen.add((ticket, boundary))
        for step in steps:
            self._came[step, boundary] += 1
            planned = self._plan.get(Occasion(step, boundary, self._came[step, boundary]))
            if planned is not None:
                self._put_off.append(planned)
        if self._hurt[ticket] >= MOST_FOR_A_TICKET:
            return None
        for injury in self._put_off:
            places = self._places.get(injury, ())
            if any((step, boundary) in places for step in steps) and may(injury):
                self._put_off.remove(injury)
                self._hurt[ticket] += 1
                return injury
        return None

    def has_come(self, ticket: str, boundary: Boundary) -> bool:
        """Whether a ticket has been at a boundary."""
        return (ticket, boundary) in self._seen

    def put_off(self, injury: Injury, ticket: str = "") -> None:
        """It was not felt: another's turn; by `ticket` it was not even begun, and it does not count there."""
        self._put_off.append(injury)
        if ticket:
            self._hurt[ticket] -= 1
