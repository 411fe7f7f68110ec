"""What a chaos run did to its workers, and what it saw them do about it."""

import json
from dataclasses import dataclass
from typing import NamedTuple

from fixloop.testing.plan import Boundary, Injury


@dataclass(eq=False)
class Wound:
    """One injury that was done."""

    injury: Injury
    ticket: str
    boundary: Boundary
    hosts: tuple[str, ...]
    """Whose processes were cut off; none where `pids` says who was hit."""
    pids: frozenset[int]
    began: float
    """By `time.monotonic()`, which all processes of a machine share."""
    ended: float
    is_felt: bool = False
    """Whether it took effect: what was killed is dead, what was to be lost was lost, and so on."""
    skew_seconds: float = 0.0
    """By how much it put the wall clock of its host off."""

    def line(self) -> str:
        """For the record, as JSON."""
        told = {
            "at": round(self.began, 3),
            "injury": self.injury.value,
            "ticket": self.ticket,
            "boundary": self.boundary.value,
            "hosts": self.hosts,
            "pids": sorted(self.pids),
            "seconds": round(self.ended - self.began, 3),
            "felt": self.is_felt,
        }
        return json.dumps(told)


class Takeover(NamedTuple):
    """A ticket that was claimed while another had it."""

    ticket: str
    pid: int
    """Who had it."""
    alive: bool
    """Whether that process still ran."""
