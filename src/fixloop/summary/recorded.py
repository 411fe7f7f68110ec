"""The entries of a history as a report reads them: typed, and tolerant of what an older or newer version wrote."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from fixloop.history import Said, said
from fixloop.protocol.events import RunFinished
from fixloop.store.records import Entry

__all__ = ["Change", "Recorded", "recorded"]


class Change(NamedTuple):
    """A specialist's new status."""

    specialist: str
    after: str


class Recorded(NamedTuple):
    """One commit: what happened and what followed."""

    at: datetime
    clock: float
    """Engine seconds, which stand still while the engine is away (K34)."""
    kind: str
    """The event's."""
    event: Mapping[str, Any]
    changes: tuple[Change, ...]
    lines: tuple[Said, ...]

    @property
    def run(self) -> RunFinished | None:
        """The run that ended here."""
        return RunFinished.model_validate(self.event) if self.kind == "run-finished" else None

    def says(self, kind: str) -> Said | None:
        """The first line with a body of `kind`."""
        return next((line for line in self.lines if line.message.body.kind == kind), None)


def recorded(entries: Iterable[Entry]) -> tuple[Recorded, ...]:
    """All entries, in order."""
    return tuple(_recorded(entry) for entry in entries)


def _recorded(entry: Entry) -> Recorded:
    event = entry.body.get("event", {})
    at = datetime.fromisoformat(entry.body["at"])
    return Recorded(
        at=at,
        clock=float(entry.body.get("clock", at.timestamp())),
        kind=str(event.get("kind", "")),
        event=event,
        changes=tuple(
            Change(str(change["specialist"]), str(change["after"]))
            for change in entry.body.get("transitions", ())
        ),
        lines=tuple(said([entry])),
    )
