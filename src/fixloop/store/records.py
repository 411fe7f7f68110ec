"""The records that go into the store and come out of it. Snapshots, entries and deadline names are opaque to the store.

Plain frozen dataclasses, not pydantic: each step makes a claim and a commit, from values that this package made itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from fixloop.errors import ProtocolError
from fixloop.protocol.event import Moment
from fixloop.protocol.ticket import Ticket
from fixloop.store.limits import LEASE_SECONDS
from fixloop.store.packing import NOTHING, Context

CommitStatus = Literal["ok", "dup", "stale", "gone", "conflict", "exists"]
ClaimStatus = Literal["ok", "busy", "gone", "early"]
Renewal = Literal["ok", "lost", "cancelled"]
Retirement = Literal["archived", "purged", "set-aside"]
Removal = Literal["ok", "gone", "live", "changed"]

DAMAGED: Final = "damaged"
"""A plain field that says why a workflow is unusable. Never stored."""
#: Fields of a workflow's hash that the store reserves, besides all names with a colon.
OWN_FIELDS: Final = frozenset({"version", "head", "snapshot", "done", "stale", "parked", "began", DAMAGED})
_OWN_ENTRY_KEYS: Final = frozenset({"seq", "prev", "state", "whole", "seal"})
GoesOn = Literal[False, "first", "past waiting"]
"""Whether the committer continues with the next ticket: no; if no other ticket comes first; in any case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One change of one workflow, applied all or nothing."""

    workflow: str
    expected_version: int
    """The version that the change was decided on; 0 creates the workflow."""
    head: str = ""
    """The head of that version. If it is left out, the commit takes one more round trip."""
    context: Context | None = None
    """The context of that version; likewise."""
    snapshot: bytes
    """The complete new state, JSON."""
    entry: Mapping[str, Any]
    """Body of the history entry: JSON-able, with `at` (ISO); `artifacts` lists the digests that it names."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Plain hash fields next to the snapshot, for lists and for people with `redis-cli`; an empty field is removed."""
    ticket: str = ""
    """The id of the ticket whose result this is; it is committed together with `owner` and `fence`."""
    owner: str = ""
    fence: int = 0
    operation: str = ""
    """Idempotency key of a commit without a ticket."""
    new_tickets: tuple[Ticket, ...] = ()
    claim: str = ""
    """The id of a new ticket that the committer claims in the same step. It is not claimed if the workflow is paused,
    or if a ticket in its queue is more urgent, or as urgent and offered before this workflow began."""
    past_waiting: bool = False
    """The claimed ticket only sends a message, so it is claimed even if others wait in its queue."""
    token: str = ""
    """The token of that claim."""
    drop_tickets: tuple[str, ...] = ()
    drop_all_tickets: bool = False
    """Withdraw all other tickets: the holder's next renewal returns `cancelled`, its commit `stale`."""
    set_deadlines: Mapping[str, float] = field(default_factory=dict)
    """Name → engine clock."""
    clear_deadlines: tuple[str, ...] = ()
    clear_all_deadlines: bool = False
    """Clear all deadlines except those that this commit sets."""
    hold: bool | None = None
    """True: unclaimed tickets cannot be claimed and no deadline falls due; False: both go on."""
    stood_seconds: float = 0.0
    """With `hold` False: how much later the existing deadlines become."""
    live: bool | None = None
    """True: makes it the feature's live workflow; False: it is no longer live."""

    def check(self) -> None:
        """Refuse a commit that would corrupt the store's bookkeeping."""
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
    """The result of a claim; the fields after `moment` are set only with `ok`."""

    status: ClaimStatus
    moment: Moment
    away_seconds: float = 0.0
    """The total time this shard's engine has been away (K34)."""
    fence: int = 0
    version: int = 0
    snapshot: bytes = b""
    head: str = ""
    ticket: Ticket | None = None
    deaths: int = 0
    """How often a process died while working on this ticket and its worker survived (K40)."""
    context: Context = NOTHING
    """The context for a commit on this version."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The result of a commit; nothing was changed unless it is `ok`."""

    status: CommitStatus
    version: int
    """ok, dup: the version this commit made; otherwise the current one."""
    head: str = ""
    snapshot: bytes | None = None
    """Only with `conflict`: the current snapshot, to decide again."""
    other: str = ""
    """Only with `exists`: the live workflow of the same feature."""
    context: Context = NOTHING
    """Only with `conflict`: the context for the next commit."""
    claim: Claim | None = None
    """The claim that the commit made, if any: only with `ok`, and with `dup` while it is held."""


@dataclass(frozen=True, slots=True)
class Held:
    """A ticket that is not committed yet, and its holder."""

    ticket: Ticket
    status: Literal["pending", "claimed", "delayed"]
    owner: str = ""
    fence: int = 0
    deaths: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One workflow's current state."""

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
    """The number of late commits refused so far."""
    context: Context = NOTHING
    """The context for a commit on this version."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Everything of a workflow as it is stored: what an archive has to keep to verify it later."""

    workflow: str
    version: int
    head: str
    snapshot: bytes
    """Stored form."""
    entries: tuple[bytes, ...]
    """Stored form, oldest first."""
    artifacts: Mapping[str, bytes]
    """Digest → data; includes the shared artifacts that the entries name, except missing ones."""
    fields: Mapping[str, str]
    stale: int = 0


@dataclass(frozen=True, slots=True)
class Retired:
    """The newest workflow of a feature that was removed from the store."""

    workflow: str
    how: Retirement
    at: datetime


@dataclass(frozen=True, slots=True)
class Entry:
    seq: int
    """From 1; the version that its commit made."""
    body: Mapping[str, Any]
    """The body that the commit gave."""
    prev: str
    """At least the first 32 digits of the previous entry's digest; empty for the first entry."""
    state: str
    """The same for the snapshot that its commit wrote."""
    digest: str
    """Digest of the entry's stored bytes."""


class Lane(NamedTuple):
    """A ticket's queue and priority (0 is served first)."""

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
    """The time it is due, engine clock."""


class QueueLoad(NamedTuple):
    """The work in a queue."""

    queue: str
    ready: int = 0
    """Tickets that a worker could claim now."""
    claimed: int = 0
    """Tickets that are claimed."""
    oldest_seconds: float = 0.0
    """How long the oldest ready ticket has waited, engine clock."""


class Change(NamedTuple):
    """A commit, or the removal of a workflow from the store."""

    workflow: str
    version: int
    """The version that the commit made; 0: the workflow was removed."""


class Changes(NamedTuple):
    """The changes after a cursor."""

    changes: tuple[Change, ...]
    cursor: str
    """The cursor to continue from; short and printable."""
    gap: bool = False
    """Some changes after the cursor may be lost: no changes are returned, and reading continues from the new cursor."""


class RejectedMessage(NamedTuple):
    """A broker message that no worker could take."""

    at: datetime
    """When a worker rejected it."""
    queue: str
    why: str
    text: str
    """The beginning of its text, on one line."""


class Rejections(NamedTuple):
    """The broker messages that no worker could take."""

    total: int
    """How many there ever were."""
    kept: tuple[RejectedMessage, ...]
    """The last ones, newest first."""

    @property
    def last(self) -> str:
        """`3 messages, the last at 2026-11-22 20:13:04Z on fixloop.control: its id is a list`, if there were any."""
        said = "1 message" if self.total == 1 else f"{self.total} messages"
        newest = self.kept[0]
        return f"{said}, the last at {newest.at:%Y-%m-%d %H:%M:%SZ} on {newest.queue}: {newest.why}"


@dataclass(frozen=True, slots=True)
class Swept:
    """The result of sweeping one shard; empty and not `mine` if another sweeper has the shard."""

    mine: bool
    moment: Moment
    away_seconds: float = 0.0
    gap_seconds: float = 0.0
    """How long the engine was away before this sweep: clocks stood still that long (K34); usually 0."""
    deadlines: tuple[Due, ...] = ()
    lapsed: tuple[Ticket, ...] = ()
    """Tickets whose lease ran out."""
    ready: tuple[Ticket, ...] = ()
    """Tickets whose delay is over; they were not hinted before."""
    unheard: tuple[Ticket, ...] = ()
    """Tickets whose hint was probably lost."""
    lanes: tuple[Lane, ...] = ()
    """Lanes in which tickets waited at the start; the next sweep needs to know which of them are empty."""
    damaged: tuple[str, ...] = ()
    """Workflows with items that could not be handed out; they are checked again in a minute."""

    @property
    def hints(self) -> tuple[Ticket, ...]:
        return self.lapsed + self.ready + self.unheard


def check_lease(lease_seconds: float) -> None:
    if not lease_seconds > 0:
        raise ProtocolError(f"a lease of {lease_seconds} s is none; it has to be over 0")


def check_claimant(owner: str, token: str, lease_seconds: float) -> None:
    """Refuse a claim that could not be distinguished from another."""
    check_lease(lease_seconds)
    if not owner or not token or "\n" in owner or "\n" in token:
        raise ProtocolError(f"a claim needs an owner and a token of one line, not {owner!r} and {token!r}")


def check_holder(ticket_id: str, owner: str, fence: int) -> None:
    """Refuse a holder's request without a claim's owner and fence."""
    if fence <= 0 or not owner:
        told = f"the holder of ticket {ticket_id} has an owner and a fence, not {owner!r} and {fence}"
        raise ProtocolError(told)
