"""The entries of a history for a report: typed, and tolerant of entries of older and newer versions."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from fixloop.engine.history import Said, said
from fixloop.protocol.events import RunFinished
from fixloop.store.records import Entry

Artifact = Callable[[str], bytes | None]
"""Loads an artifact of the workflow by its digest; None if it is gone."""


class Change(NamedTuple):
    specialist: str
    after: str


class Recorded(NamedTuple):
    """One commit: an event and what followed from it."""

    at: datetime
    clock: float
    """Engine seconds, which stand still while the engine is away (K34)."""
    kind: str
    """The event's kind."""
    event: Mapping[str, Any]
    changes: tuple[Change, ...]
    lines: tuple[Said, ...]
    run: RunFinished | None = None
    """The result of a specialist's run, if it is one."""
    is_kept: bool = False
    """Whether it arrived while a person had paused the workflow."""
    taken_up: "Recorded | None" = None
    """The entry in which a kept event took effect."""

    @property
    def effect(self) -> "Recorded":
        """The entry with the effects of the event."""
        return self.taken_up or self

    def says(self, kind: str) -> Said | None:
        """The first message with a body of `kind`."""
        return next((line for line in self.lines if line.message.body.kind == kind), None)


def recorded(entries: Iterable[Entry]) -> tuple[Recorded, ...]:
    """All entries in order, except refused events, which had no effect."""
    found: list[Recorded] = []
    for each in entries:
        event, at = each.body.get("event", {}), datetime.fromisoformat(each.body["at"])
        if event.get("kind") == "event-refused":
            continue
        changes, kind = each.body.get("transitions", ()), str(event.get("kind", ""))
        found.append(
            Recorded(
                at=at,
                clock=float(each.body.get("clock", at.timestamp())),
                kind=kind,
                event=event,
                changes=tuple(Change(str(change["specialist"]), str(change["after"])) for change in changes),
                lines=tuple(said([each])),
                run=RunFinished.model_validate(event) if kind == "run-finished" else None,
            )
        )
    since: int | None = None
    for index, entry in enumerate(found):
        if entry.kind in ("continued", "cancelled") and since is not None:
            for kept in range(since, index):
                found[kept] = found[kept]._replace(taken_up=entry)
            since = None
        elif since is not None:
            found[index] = entry._replace(is_kept=True)
        elif entry.kind == "paused":
            since = index + 1
    return tuple(found)
