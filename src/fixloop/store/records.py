"""What goes into the store and comes out of it. Opaque to it: snapshots, entries, names of deadlines.

Plain frozen dataclasses, not pydantic: a claim and a commit happen for every step, on values this package
made itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from fixloop.errors import ProtocolError
from fixloop.protocol.moment import Moment
from fixloop.protocol.ticket import Ticket
from fixloop.store.limits import LEASE_SECONDS
from fixloop.store.packing import NOTHING, Context

CommitStatus = Literal["ok", "dup", "stale", "gone", "conflict", "exists"]
ClaimStatus = Literal["ok", "busy", "gone", "early"]
Renewal = Literal["ok", "lost", "cancelled"]
Retirement = Literal["archived", "purged", "set-aside"]
Removal = Literal["ok", "gone", "live", "changed"]

DAMAGED: Final = "damaged"
"""The plain field of a workflow that cannot be used: what is wrong with it. Never stored."""
#: Fields of a workflow's hash that are the store's own; all others with a colon are, too.
OWN_FIELDS: Final = frozenset({"version", "head", "snapshot", "done", "stale", "parked", "began", DAMAGED})
_OWN_ENTRY_KEYS: Final = frozenset({"seq", "prev", "state", "whole", "seal"})


GoesOn = Literal[False, "first", "past waiting"]
"""Whether who commits goes on with the ticket that follows: no; if nobody else comes first; in any case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One change of one workflow, all of it or nothing."""

    workflow: str
    expected_version: int
    """The version it was decided on; 0 creates the workflow."""
    head: str = ""
    """The head that came with that version. Left out, it costs one more round trip."""
    context: Context | None = None
    """The context that came with it; likewise."""
    snapshot: bytes
    """The complete new state, JSON."""
    entry: Mapping[str, Any]
    """Body of the history entry: JSON-able, with `at` (ISO); `artifacts` lists the digests it names."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Plain hash fields next to the snapshot, for people with `redis-cli` and for lists; an empty one is not there."""
    ticket: str = ""
    """The id of the ticket whose work this is; committed with it, together with `owner` and `fence`."""
    owner: str = ""
    fence: int = 0
    operation: str = ""
    """Idempotency key of a commit without a ticket."""
    new_tickets: tuple[Ticket, ...] = ()
    claim: str = ""
    """The id of one of these, which who commits goes on with: it is claimed in the same moment, unless its workflow is
    held, or one waits in its queue that is more urgent, or as urgent and was there before this workflow began."""
    past_waiting: bool = False
    """It only speaks, and is claimed even where others wait in its queue."""
    token: str = ""
    """That claim's."""
    drop_tickets: tuple[str, ...] = ()
    drop_all_tickets: bool = False
    """Withdraw every other ticket: its holder's next renewal says `cancelled`, its commit `stale`."""
    set_deadlines: Mapping[str, float] = field(default_factory=dict)
    """Name → engine clock."""
    clear_deadlines: tuple[str, ...] = ()
    clear_all_deadlines: bool = False
    """All, except those this commit sets."""
    hold: bool | None = None
    """True: tickets that nobody has cannot be claimed, and no deadline falls due; False: they go on."""
    stood_seconds: float = 0.0
    """With `hold` False: how much later the deadlines are now that it made."""
    live: bool | None = None
    """True: becomes the feature's one live workflow; False: is no longer."""

    def check(self) -> None:
        """Refuse what would break the store's own book-keeping."""
        if self.ticket:
            check_holder(self.ticket, self.owner, self.fence)
        if self.head and self.expected_version == 0:
            raise ProtocolError(f"workflow {self.workflow} does not exist yet and has no head")
        for ticket in self.new_tickets:
            if ticket.workflow != self.workflow or not ticket.id.startswith(f"{self.workflow}."):
                raise ProtocolError(f"ticket {ticket.id} does not belong to workflow {self.workflow}")
        if self.claim:
            check_claimant(self.owner, self.token, LEASE_SECONDS)
            if not self.ticket or self.claim not in {ticket.id for ticket in self.new_tickets}:
                raise ProtocolError(f"a commit of workflow {self.workflow} claims what it does not make")
        if len({ticket.id for ticket in self.new_tickets}) < len(self.new_tickets):
            raise ProtocolError(f"a commit of workflow {self.workflow} makes two tickets of one id")
        wrong = [name for name in self.fields if ":" in name or name in OWN_FIELDS]
        wrong += [name for name in self.entry if name in _OWN_ENTRY_KEYS]
        wrong += [name for name in self.set_deadlines if not name or not name.isprintable() or "|" in name]
        if wrong:
            raise ProtocolError(f"the names {', '.join(sorted(wrong))} are the store's own; use others")


@dataclass(frozen=True, slots=True)
class Claim:
    """What became of a claim; everything after `moment` only with `ok`."""

    status: ClaimStatus
    moment: Moment
    away_seconds: float = 0.0
    """How long this shard's engine has been away in all its time (K34)."""
    fence: int = 0
    version: int = 0
    snapshot: bytes = b""
    head: str = ""
    ticket: Ticket | None = None
    deaths: int = 0
    """How often a process died over this ticket while its worker lived (K40)."""
    context: Context = NOTHING
    """What a commit on this version may lean on."""


@dataclass(frozen=True, slots=True)
class Committed:
    """What became of a commit; nothing was changed unless it is `ok`."""

    status: CommitStatus
    version: int
    """ok, dup: the version this commit made; otherwise the current one."""
    head: str = ""
    snapshot: bytes | None = None
    """Only with `conflict`, to decide again on."""
    other: str = ""
    """Only with `exists`: the live workflow of the same feature."""
    context: Context = NOTHING
    """Only with `conflict`, for the next commit."""
    claim: Claim | None = None
    """Of the ticket that the commit was to claim, if it was: only with `ok`, and with `dup` as long as it is held."""


@dataclass(frozen=True, slots=True)
class Held:
    """A ticket that is not committed yet, and who has it."""

    ticket: Ticket
    status: Literal["pending", "claimed", "delayed"]
    owner: str = ""
    fence: int = 0
    deaths: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One workflow as it stands."""

    workflow: str
    version: int
    snapshot: bytes
    head: str
    fields: Mapping[str, str]
    moment: Moment
    away_seconds: float
    tickets: tuple[Held, ...]
    deadlines: Mapping[str, float]
    """Name → engine clock."""
    stale: int = 0
    """Late commits refused so far."""
    context: Context = NOTHING
    """What a commit on this version may lean on."""


@dataclass(frozen=True, slots=True)
class Stored:
    """All of a workflow as it is stored: what an archive has to keep so that it can be verified for ever."""

    workflow: str
    version: int
    head: str
    snapshot: bytes
    """Stored form."""
    entries: tuple[bytes, ...]
    """Stored form, oldest first."""
    artifacts: Mapping[str, bytes]
    """Digest → data; also the shared ones that the entries name, without those that are missing."""
    fields: Mapping[str, str]
    stale: int = 0


@dataclass(frozen=True, slots=True)
class Retired:
    """The newest workflow of a feature that is no longer in the store."""

    workflow: str
    how: Retirement
    at: datetime


@dataclass(frozen=True, slots=True)
class Entry:
    seq: int
    """From 1; the version its commit made."""
    body: Mapping[str, Any]
    """What the commit gave."""
    prev: str
    """The first 32 digits, at least, of the digest of the entry before; empty for the first."""
    state: str
    """The same of the snapshot its commit wrote."""
    digest: str
    """Digest of its own stored bytes."""


class Lane(NamedTuple):
    """Where a ticket waits: its queue, and how urgent it is there (0 is served first)."""

    queue: str
    priority: int

    def __str__(self) -> str:
        return f"{self.queue}|{self.priority}"

    @classmethod
    def parse(cls, text: str) -> "Lane":
        """The lane that `str` wrote."""
        queue, _, priority = text.rpartition("|")
        return cls(queue, int(priority))


@dataclass(frozen=True, slots=True)
class Due:
    """A deadline that is due, or will be within the sweep's horizon."""

    workflow: str
    name: str
    clock: float
    """When, engine clock."""


class QueueLoad(NamedTuple):
    """What there is to do in a queue."""

    queue: str
    ready: int = 0
    """Tickets that a worker could take now."""
    claimed: int = 0
    """Tickets at which somebody is at work."""
    oldest_seconds: float = 0.0
    """How long the oldest of those that are ready has waited, on the engine's clock."""


class Change(NamedTuple):
    """One commit, or the end of a workflow's stay in the store."""

    workflow: str
    version: int
    """That it made; 0: the workflow was taken out."""


class Changes(NamedTuple):
    """What has happened after a cursor."""

    changes: tuple[Change, ...]
    cursor: str
    """Where to read on; short and printable."""
    gap: bool = False
    """Some of what happened after the cursor may not be known any more: there are no changes, and the new cursor is
    where it goes on."""


class RejectedMessage(NamedTuple):
    """A broker message that no worker could take."""

    at: datetime
    """When a worker rejected it."""
    queue: str
    why: str
    text: str
    """Its beginning, on one line."""


class Rejections(NamedTuple):
    """The broker messages that no worker could take."""

    total: int
    """How many there were, ever."""
    kept: tuple[RejectedMessage, ...]
    """The last ones, newest first."""

    @property
    def last(self) -> str:
        """`3 messages, the last at 2026-11-22 20:13:04Z on fixloop.control: its id is a list`, where there were any."""
        said = "1 message" if self.total == 1 else f"{self.total} messages"
        newest = self.kept[0]
        return f"{said}, the last at {newest.at:%Y-%m-%d %H:%M:%SZ} on {newest.queue}: {newest.why}"


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep of one shard found; empty and not `mine` when another sweeper has the shard."""

    mine: bool
    moment: Moment
    away_seconds: float = 0.0
    gap_seconds: float = 0.0
    """How long the engine was away just now: clocks stood still that long (K34); 0 usually."""
    deadlines: tuple[Due, ...] = ()
    lapsed: tuple[Ticket, ...] = ()
    """Their lease ran out."""
    ready: tuple[Ticket, ...] = ()
    """Their delay is over; nobody has hinted them before."""
    unheard: tuple[Ticket, ...] = ()
    """Their hint was probably lost."""
    lanes: tuple[Lane, ...] = ()
    """Where tickets were waiting when it began: whether these are empty is worth knowing next time."""
    damaged: tuple[str, ...] = ()
    """Workflows of which something could not be handed out; they are looked at again in a minute."""

    @property
    def hints(self) -> tuple[Ticket, ...]:
        return self.lapsed + self.ready + self.unheard


def check_lease(lease_seconds: float) -> None:
    if not lease_seconds > 0:
        raise ProtocolError(f"a lease of {lease_seconds} s is none; it has to be over 0")


def check_claimant(owner: str, token: str, lease_seconds: float) -> None:
    """Refuse a claim that could not be told from another."""
    check_lease(lease_seconds)
    if not owner or not token or "\n" in owner or "\n" in token:
        raise ProtocolError(f"a claim needs an owner and a token of one line, not {owner!r} and {token!r}")


def check_holder(ticket_id: str, owner: str, fence: int) -> None:
    """Refuse what only the holder of a ticket may ask, without a claim's owner and fence."""
    if fence <= 0 or not owner:
        told = f"the holder of ticket {ticket_id} has an owner and a fence, not {owner!r} and {fence}"
        raise ProtocolError(told)
