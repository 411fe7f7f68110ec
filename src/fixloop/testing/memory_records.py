"""What MemoryStore keeps, the twin of the hashes and sorted sets in Redis, and what commits and sweeps do to it."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, NamedTuple

from fixloop.protocol.moment import Moment
from fixloop.protocol.ticket import Ticket
from fixloop.store import limits
from fixloop.store.entries import Written, digest_of
from fixloop.store.packing import NOTHING, Context
from fixloop.store.records import Commit, Committed, Due, Held, Lane, Snapshot
from fixloop.store.replies import state_of

FOR_EVER: Final = float("inf")
NOWHERE: Final = Lane("", limits.FIRST)


@dataclass(slots=True)
class KeptTicket:
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


@dataclass(slots=True)
class KeptShard:
    away: float = 0.0
    turned: float = 0.0
    swept: float | None = None
    sweeper: str = ""
    until: float = 0.0
    fence: int = 0
    made: dict[Lane, int] = field(default_factory=dict)

    def moment(self, at: datetime) -> Moment:
        now = wall = at.timestamp()
        if self.swept is not None:
            now = max(self.swept, min(wall, self.swept + limits.AWAY_AFTER))
        return Moment(at, now - self.away - self.turned)

    def next_fence(self) -> int:
        self.fence += 1
        return self.fence

    def offer(self, kept: KeptTicket, clock: float, *, again: bool = False) -> None:
        """Put a ticket at the end of its lane, or of the one that is served first."""
        kept.lane = Lane(kept.ticket.queue, limits.FIRST if again else kept.ticket.priority)
        self.made[kept.lane] = kept.number = self.made.get(kept.lane, 0) + 1
        kept.kind, kept.offered, kept.token, kept.ready = "pending", clock, "", 0.0

    def sweep_by(self, owner: str, wall: float, lease_seconds: float) -> float | None:
        """Keep the clock running; the gap since the last time, or None when another sweeper is at it."""
        # A lease that ends later than any could is from before the clock was turned back.
        if self.sweeper not in ("", owner) and 0 < self.until - wall <= lease_seconds:
            return None
        gap = 0.0 if self.swept is None else wall - self.swept
        self.away += max(0.0, gap - limits.AWAY_AFTER)
        self.turned += min(0.0, gap)
        self.swept, self.sweeper, self.until = wall, owner, wall + lease_seconds
        return gap if gap > limits.AWAY_AFTER else 0.0


class Finished(NamedTuple):
    """Of a committed ticket, or of a withdrawn one with the fence None."""

    fence: int | None
    version: int


class _Unpacked(NamedTuple):
    """A state as it was last read: unpacking it takes longer than most of what a test then does with it."""

    snapshot: bytes
    entries: list[bytes]
    state: tuple[bytes, Context]


@dataclass(slots=True)
class KeptWorkflow:
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
    done: dict[str, Finished] = field(default_factory=dict)
    """By ticket, the last one at the end."""
    operations: dict[str, int] = field(default_factory=dict)
    stale: int = 0
    parked: bool = False
    """Held: nothing of it is offered, and no deadline looked at."""
    _unpacked: "_Unpacked | None" = None

    def state(self, workflow: str) -> tuple[bytes, Context]:
        """The snapshot, and what a commit on it may lean on; raises ProtocolError when it is damaged."""
        if not self.version:
            return b"", NOTHING
        known = self._unpacked
        if known is None or (known.snapshot, known.entries) != (self.snapshot, self.entries):
            state = state_of(self.snapshot, self.entries, workflow)
            known = self._unpacked = _Unpacked(self.snapshot, list(self.entries), state)
        return known.state

    def as_snapshot(self, workflow: str, now: Moment, away: float) -> Snapshot:
        data, context = self.state(workflow)
        return Snapshot(
            workflow=workflow,
            version=self.version,
            snapshot=data,
            head=self.head,
            fields=dict(self.fields),
            moment=now,
            away_seconds=away,
            tickets=tuple(
                Held(kept.ticket, kept.kind, kept.owner, kept.fence, kept.deaths)
                for _, kept in sorted(self.tickets.items())
            ),
            deadlines=dict(sorted(self.deadlines.items())),
            stale=self.stale,
            context=context,
        )

    def set_deadline(self, name: str, due: float) -> None:
        self.deadlines[name] = due
        if not self.parked:
            self.looked_at[name] = due

    def clear_deadline(self, name: str) -> None:
        self.deadlines.pop(name, None)
        self.looked_at.pop(name, None)

    def _hold(self) -> None:
        """What nobody has waits, and no deadline falls due."""
        self.parked = True
        self.looked_at.clear()
        for kept in self.tickets.values():
            if kept.kind != "claimed":
                kept.hold_back()

    def _let_go(self, stood: float) -> list[KeptTicket]:
        """Deadlines go on, by so much later; the tickets that waited, to be offered."""
        self.parked = False
        self.deadlines = {name: due + stood for name, due in self.deadlines.items()}
        waiting = [kept for _, kept in sorted(self.tickets.items()) if kept.is_held_back]
        limits = {kept.limit for kept in waiting}
        self.looked_at = {name: due for name, due in self.deadlines.items() if name not in limits}
        return waiting

    def write(self, commit: Commit, new: Written, shard: KeptShard, clock: float) -> None:
        """What is committed, in the order of commit.lua."""
        self.version += 1
        self.head, self.snapshot = new.head, new.snapshot
        self.entries.append(new.entry)
        self.fields = {name: value for name, value in {**self.fields, **commit.fields}.items() if value}
        if commit.operation:
            self.operations[commit.operation] = self.version
        if commit.ticket:
            self._take_away(commit.ticket, Finished(commit.fence, self.version))
        for ticket_id in (*commit.drop_tickets, *(tuple(self.tickets) if commit.drop_all_tickets else ())):
            if ticket_id in self.tickets:
                self._take_away(ticket_id, Finished(None, 0))
        for name in tuple(self.deadlines) if commit.clear_all_deadlines else commit.clear_deadlines:
            self.clear_deadline(name)
        if commit.hold:
            self._hold()
        elif commit.hold is False:
            for waiting in self._let_go(commit.stood_seconds):
                shard.offer(waiting, clock)
        for name, due in commit.set_deadlines.items():
            self.set_deadline(name, due)
        for ticket in commit.new_tickets:
            if ticket.id not in self.tickets:
                held = self.tickets[ticket.id] = KeptTicket(
                    ticket, "delayed", ready=clock + ticket.delay_seconds
                )
                if self.parked:
                    held.hold_back()
                elif ticket.delay_seconds <= 0:
                    shard.offer(held, clock)

    def _take_away(self, ticket_id: str, finished: Finished) -> None:
        kept = self.tickets.pop(ticket_id)
        if kept.limit:
            self.clear_deadline(kept.limit)
        self.done.pop(ticket_id, None)
        self.done[ticket_id] = finished
        if len(self.done) > limits.DONE_KEPT:
            del self.done[next(iter(self.done))]


Workflows = dict[str, KeptWorkflow]


def refusal(commit: Commit, kept: KeptWorkflow, living: str | None) -> Committed | None:
    """The answer to a commit that may not be written, as commit.lua has it, in its order; `living` is its feature's."""
    refused = _ticket_refusal(commit, kept)
    if refused is not None:
        return refused
    if commit.operation and commit.operation in kept.operations:
        return _first_answer(kept, kept.operations[commit.operation])
    if kept.version == 0 and commit.expected_version > 0:
        return Committed("gone", 0)
    if commit.live and living and (living != commit.workflow or commit.expected_version == 0):
        return Committed("exists", kept.version, kept.head, other=living)
    if kept.version != commit.expected_version or commit.head not in ("", kept.head):
        data, context = kept.state(commit.workflow)
        return Committed("conflict", kept.version, kept.head, data, context=context)
    return None


def _ticket_refusal(commit: Commit, kept: KeptWorkflow) -> Committed | None:
    if not commit.ticket:
        return None
    held, finished = kept.tickets.get(commit.ticket), kept.done.get(commit.ticket)
    if held is not None and (held.fence, held.owner) == (commit.fence, commit.owner):
        return None
    if held is not None or (finished is not None and finished.fence is None):
        kept.stale += 1
        return Committed("stale", kept.version, kept.head)
    if finished is not None and finished.fence == commit.fence:
        return _first_answer(kept, finished.version)
    return Committed("gone", kept.version, kept.head)


def _first_answer(kept: KeptWorkflow, version: int) -> Committed:
    return Committed("dup", version, digest_of(kept.entries[version - 1]))


def due_deadlines(workflows: Workflows, clock: float, horizon: float, most: int) -> Iterator[Due]:
    """Deadlines due within the horizon, each to be looked at again after it was due."""
    found = sorted(
        (at, workflow, name)
        for workflow, kept in workflows.items()
        for name, at in kept.looked_at.items()
        if at <= clock + horizon
    )
    for _, workflow, name in found[:most]:
        due = workflows[workflow].deadlines[name]
        workflows[workflow].looked_at[name] = max(due, clock) + limits.SEND_AGAIN + horizon
        yield Due(workflow, name, due)


def lapsed_leases(shard: KeptShard, workflows: Workflows, clock: float) -> Iterator[Ticket]:
    """Claimed tickets whose lease ran out are pending again; fence and limit wait for a late renewal."""
    for kept in _until(clock, "claimed", workflows, lambda kept: kept.lease_until):
        flow = workflows[kept.ticket.workflow]
        flow.looked_at.pop(kept.limit, None)
        if flow.parked:
            kept.hold_back()
            continue
        shard.offer(kept, clock, again=True)
        yield kept.ticket


def ended_delays(shard: KeptShard, workflows: Workflows, clock: float) -> Iterator[Ticket]:
    for kept in _until(clock, "delayed", workflows, lambda kept: kept.ready):
        shard.offer(kept, clock, again=True)
        yield kept.ticket


def _until(
    clock: float, kind: str, workflows: Workflows, when: Callable[[KeptTicket], float]
) -> list[KeptTicket]:
    found = [kept for kept in _of_kind(workflows, kind) if when(kept) <= clock]
    return sorted(found, key=when)[: limits.MOST_PER_SWEEP]


def unheard(
    shard: KeptShard, workflows: Workflows, clock: float, empty_lanes: Collection[Lane]
) -> Iterator[Ticket]:
    """Pending tickets that ten younger ones overtook, or that wait although their lane is empty."""
    pending = sorted(_of_kind(workflows, "pending"), key=lambda kept: (kept.lane, kept.number))
    lost: list[KeptTicket] = []
    for lane, made in sorted(shard.made.items(), key=lambda item: str(item[0])):
        waiting = [kept for kept in pending if kept.lane == lane]
        # Of the tickets made after one, those that are no longer pending were claimed.
        behind = range(len(waiting) - 1, -1, -1)
        lost.extend(
            kept
            for kept, younger in zip(waiting, behind, strict=True)
            if made - kept.number - younger >= limits.OVERTAKEN_BY
        )
        if not waiting:
            del shard.made[lane]
    alone = (kept for kept in pending if kept.lane in empty_lanes and kept not in lost)
    lost.extend(kept for kept in alone if kept.offered < clock - limits.UNHEARD_AFTER)
    for kept in lost[: limits.MOST_PER_SWEEP]:
        shard.offer(kept, clock, again=True)
        yield kept.ticket


def _of_kind(workflows: Workflows, kind: str) -> Iterator[KeptTicket]:
    return (kept for flow in workflows.values() for kept in flow.tickets.values() if kept.kind == kind)
