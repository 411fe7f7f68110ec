"""A point in time for decisions: wall time for people, engine time for clocks (K34).

Nothing here reads a clock: a moment comes from the store, and its holder adds monotonic differences.
"""

from datetime import datetime, timedelta
from typing import NamedTuple


class Moment(NamedTuple):
    """The time of a decision."""

    at: datetime
    """Aware UTC wall time, as a log shows it."""
    clock: float
    """Seconds of engine time, which stands still while the engine is away; limits are measured in it."""

    def plus(self, seconds: float) -> "Moment":
        """This moment `seconds` later, on both clocks."""
        return Moment(self.at + timedelta(seconds=seconds), self.clock + seconds)
