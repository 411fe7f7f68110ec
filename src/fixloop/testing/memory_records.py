"""What MemoryStore keeps: the twin of the hashes and sorted sets in Redis."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, NamedTuple

from fixloop.protocol.moment import Moment
from fixloop.protocol.ticket import Ticket
from fixloop.store.limits import AWAY_AFTER, DONE_KEPT, FIRST
from fixloop.store.packing import NOTHING, Context
from fixloop.store.records import Claim, Held, Lane, Snapshot
from fixloop.store.replies import state_of

FOR_EVER: Final = float("inf")
NOWHERE: Final = Lane("", FIRST)


@dataclass(slots=True)
class KeptTicket:
    """A ticket that is not committed yet."""

    ticket: Ticket
    kind: Literal["pending", "claimed", "delayed"]
    ready: float = 0.0
    """Not before, engine clock; for a delayed one."""
    lane: Lane = NOWHERE
    number: int = 0
    """Its place in its lane, and since when it is there; for a pending one."""
    offered: float = 0.0
    fence: int = 0
    owner: str = ""
    token: str = ""
    limit: str = ""
    lease_until: float = 0.0
    deaths: int = 0

    @property
    def is_held_back(self) -> bool:
        """True while its workflow is held."""
        return self.kind == "delayed" and self.ready == FOR_EVER

    def hold_back(self) -> None:
        """Delayed for ever, until its workflow goes on."""
        self.kind, self.ready, self.token = "delayed", FOR_EVER, ""

    def as_held(self) -> Held:
        """What a reader of the workflow sees."""
        return Held(self.ticket, self.kind, self.owner, self.fence, self.deaths)


class Finished(NamedTuple):
    """A committed ticket, or a withdrawn one with the fence None."""

    ticket: str
    fence: int | None
    version: int


@dataclass(slots=True)
class KeptWorkflow:
    """One workflow's hash and history."""

    version: int = 0
    head: str = ""
    snapshot: bytes = b""
    entries: list[bytes] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)
    tickets: dict[str, KeptTicket] = field(default_factory=dict)
    deadlines: dict[str, float] = field(default_factory=dict)
    """Name → when it is due."""
    looked_at: dict[str, float] = field(default_factory=dict)
    """Name → when the sweeper looks at it."""
    done: list[Finished] = field(default_factory=list)
    operations: dict[str, int] = field(default_factory=dict)
    stale: int = 0
    parked: bool = False
    """Held: nothing of it is offered, and no deadline looked at."""

    def state(self, workflow: str) -> tuple[bytes, Context]:
        """
        The snapshot, and what a commit on it may lean on.

        Raises:
            ProtocolError: it is damaged.
        """
        return state_of(self.snapshot, self.entries, workflow) if self.version else (b"", NOTHING)

    def as_snapshot(self, workflow: str, now: Moment, away: float) -> Snapshot:
        """What a reader gets."""
        data, context = self.state(workflow)
        return Snapshot(
            workflow=workflow,
            version=self.version,
            snapshot=data,
            head=self.head,
            fields=dict(self.fields),
            moment=now,
            away_seconds=away,
            tickets=tuple(held.as_held() for _, held in sorted(self.tickets.items())),
            deadlines=dict(sorted(self.deadlines.items())),
            stale=self.stale,
            context=context,
        )

    def as_claim(self, held: KeptTicket, now: Moment, away: float) -> Claim:
        """What the holder of a ticket gets."""
        data, context = self.state(held.ticket.workflow)
        return Claim(
            status="ok",
            moment=now,
            away_seconds=away,
            fence=held.fence,
            version=self.version,
            snapshot=data,
            head=self.head,
            ticket=held.ticket,
            deaths=held.deaths,
            context=context,
        )

    def set_deadline(self, name: str, due: float) -> None:
        """A clock runs, unless the workflow is held."""
        self.deadlines[name] = due
        if not self.parked:
            self.looked_at[name] = due

    def clear_deadline(self, name: str) -> None:
        """A clock stops."""
        self.deadlines.pop(name, None)
        self.looked_at.pop(name, None)

    def hold(self) -> None:
        """What nobody has waits, and no deadline falls due."""
        self.parked = True
        self.looked_at.clear()
        for kept in self.tickets.values():
            if kept.kind != "claimed":
                kept.hold_back()

    def let_go(self, stood: float) -> "list[KeptTicket]":
        """Deadlines go on, by so much later; the tickets that waited, to be offered."""
        self.parked = False
        self.deadlines = {name: due + stood for name, due in self.deadlines.items()}
        waiting = [kept for _, kept in sorted(self.tickets.items()) if kept.is_held_back]
        limits = {kept.limit for kept in waiting}
        self.looked_at = {name: due for name, due in self.deadlines.items() if name not in limits}
        return waiting

    def take_away(self, ticket_id: str, *, fence: int | None, version: int) -> None:
        """A ticket is committed, or withdrawn with the fence None."""
        kept = self.tickets.pop(ticket_id)
        if kept.limit:
            self.clear_deadline(kept.limit)
        self.done = [found for found in self.done if found.ticket != ticket_id]
        self.done.append(Finished(ticket_id, fence, version))
        del self.done[:-DONE_KEPT]

    def finished(self, ticket_id: str) -> Finished | None:
        """What became of a ticket that is not here any more."""
        return next((found for found in self.done if found.ticket == ticket_id), None)


@dataclass(slots=True)
class KeptShard:
    """A shard's clock and counters."""

    away: float = 0.0
    turned: float = 0.0
    swept: float | None = None
    sweeper: str = ""
    until: float = 0.0
    fence: int = 0
    made: dict[Lane, int] = field(default_factory=dict)

    def moment(self, at: datetime) -> Moment:
        """Both times, when the wall clock shows `at`."""
        now = wall = at.timestamp()
        if self.swept is not None:
            now = max(self.swept, min(wall, self.swept + AWAY_AFTER))
        return Moment(at, now - self.away - self.turned)

    def next_fence(self) -> int:
        """A number higher than all before."""
        self.fence += 1
        return self.fence

    def offer(self, kept: KeptTicket, clock: float, *, again: bool = False) -> None:
        """Put a ticket at the end of its lane, or of the one that is served first."""
        kept.lane = Lane(kept.ticket.queue, FIRST if again else kept.ticket.priority)
        self.made[kept.lane] = kept.number = self.made.get(kept.lane, 0) + 1
        kept.kind, kept.offered, kept.token, kept.ready = "pending", clock, "", 0.0

    def sweep_by(self, owner: str, wall: float, lease_seconds: float) -> float | None:
        """Keep the clock running; the gap since the last time, or None when another sweeper is at it."""
        # A lease that ends later than any could is from before the clock was turned back.
        if self.sweeper not in ("", owner) and 0 < self.until - wall <= lease_seconds:
            return None
        gap = 0.0 if self.swept is None else wall - self.swept
        self.away += max(0.0, gap - AWAY_AFTER)
        self.turned += min(0.0, gap)
        self.swept, self.sweeper, self.until = wall, owner, wall + lease_seconds
        return gap if gap > AWAY_AFTER else 0.0
