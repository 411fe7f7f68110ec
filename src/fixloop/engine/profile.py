"""What the engine has to know of a profile (R1): how its states are read, what follows from an event, whose it is.

States, events, messages and decisions are each profile's own (K30); tickets, deadlines, history and commits are shared.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from fixloop.profile_table import loaded, profile_of, registered
from fixloop.protocol.draft import Outcome
from fixloop.protocol.event import Event
from fixloop.protocol.moment import Moment
from fixloop.protocol.refusals import Unexpected
from fixloop.protocol.ticket import Ticket


class AnyState(Protocol):
    """What every state says of itself; a pydantic model."""

    @property
    def workflow(self) -> str: ...

    @property
    def issue(self) -> int: ...

    @property
    def configuration(self) -> str: ...

    @property
    def snapshot(self) -> str: ...

    @property
    def tip(self) -> str: ...

    @property
    def last_at(self) -> datetime: ...

    @property
    def ended(self) -> bool: ...

    def model_dump_json(self, *, exclude_defaults: bool = ...) -> str: ...


S = TypeVar("S", bound=AnyState)
AnyOutcome: TypeAlias = Outcome[S, Any]
"""What a decision comes to, in every profile."""


class Told(NamedTuple):
    """Something said to an outside agent, whose mailbox gets a letter about it."""

    agent: str
    message_id: str
    uid: str
    kind: str
    priority: int
    """The broker's: 0 is served first."""


class Profile(NamedTuple, Generic[S]):
    """One profile's side of the engine."""

    name: str
    orchestrator: str
    """Who speaks for the engine."""
    decide_version: int
    """Of the decisions: `audit verify` replays its own only."""
    decide: Callable[[S | None, Any, Moment], AnyOutcome[S]]
    load: Callable[[bytes], S]
    read_event: Callable[[str], Event]
    """An event as the history keeps it, JSON."""
    fields: Callable[[S], dict[str, str]]
    """What a person would look for with `redis-cli`, next to the snapshot."""
    recorded: Callable[[Any], dict[str, Any]]
    """A message as the history keeps it."""
    refused: Callable[..., Event]
    """The event that tells of a refused one: `refused`, `reason`, `sender`, `artifacts`."""
    reached: Callable[..., Event]
    """The event of a deadline that passed: `name`, `due`."""
    cancelled: Callable[..., Event]
    """The event that stops a workflow: `reason`."""
    check_party: Callable[[Any, str], None]
    """Refuses an event from somebody whose it is not (A51)."""
    worker_of: Callable[[Ticket], str]
    """Whose work a ticket is."""
    is_deadline: Callable[[str], bool]
    """Whether the profile sets deadlines of this name."""
    instead: Callable[[Any, Unexpected], Event | None] = lambda event, refused: None
    """What happened where a worker's result was refused for what it says: an invalid answer is an event, too."""
    letters: Callable[[Any], Sequence[Told]] = lambda outcome: ()
    """What an outcome says to outside agents, each with a mailbox of that name; what steps deliver is left out."""
    children: Callable[[S], Sequence[str]] = lambda state: ()
    """The tickets of a state that another workflow may work for."""
    from_parent: Mapping[str, Callable[[str], Event]] = MappingProxyType({})
    """The events by which whom a workflow works for ends it, holds it and lets it go on, given why: `cancelled`,
    `paused`, `continued`."""
    text: Callable[[Mapping[str, Any]], str] | None = None
    """A recorded message as its reader gets it; None: the history has the texts, or what they follow from."""
    supersedes: bool = False
    """Whether steps that somebody outside asks for take the place of the one in progress."""


def profile_named(name: str) -> Profile[Any]:
    """A profile's side of the engine; NewerVersion where this version has no such profile."""
    found: Profile[Any] = loaded(registered(name).engine)
    return found


def profile_in(snapshot: bytes) -> Profile[Any]:
    """The profile of the workflow that this is a snapshot of; NewerVersion where this version has no such profile."""
    return profile_named(profile_of(snapshot))


def iso(at: datetime) -> str:
    """As the models write it, so that it is the same text wherever it stands."""
    return at.isoformat().replace("+00:00", "Z")
