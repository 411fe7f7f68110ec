"""What the engine needs from a profile (R1): how to load its states, its decisions, and who may send which event.

States, events, messages and decisions belong to the profile (K30); tickets, deadlines, history and commits are shared.
Separate from the engine, so that readers of snapshots need not import every profile's decisions.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

from fixloop.errors import Damaged, NewerVersion
from fixloop.profile_table import loaded, profile_of, registered
from fixloop.protocol.draft import Outcome
from fixloop.protocol.event import Event, Moment, Unexpected, read_event
from fixloop.protocol.state import SCHEMA_VERSION, State
from fixloop.protocol.ticket import Ticket


class AnyState(Protocol):
    """The attributes that every profile's state has; the states are pydantic models."""

    workflow: str
    issue: int
    configuration: str
    snapshot: str
    tip: str
    last_at: datetime

    @property
    def ended(self) -> bool: ...

    def model_dump_json(self, *, exclude_defaults: bool = ...) -> str: ...


S = TypeVar("S", bound=AnyState)
AnyOutcome: TypeAlias = Outcome[S, Any]
"""The outcome of a decision, in any profile."""


class Told(NamedTuple):
    """A message to an outside agent, whose mailbox gets a letter about it."""

    agent: str
    message_id: str
    uid: str
    kind: str
    priority: int
    """The broker's priority: 0 is served first."""


class Profile(NamedTuple, Generic[S]):
    """What the engine needs from one profile."""

    name: str
    orchestrator: str
    """The sender name of the engine's own events."""
    decide_version: int
    """The version of the decisions: `audit verify` replays only decisions of this version."""
    decide: Callable[[S | None, Any, Moment], AnyOutcome[S]]
    load: Callable[[bytes], S]
    kinds: Mapping[str, type[Event]]
    """Its events, by kind."""
    fields: Callable[[S], dict[str, str]]
    """Plain fields stored next to the snapshot, for a person with `redis-cli`."""
    recorded: Callable[[Any], dict[str, Any]]
    """A message in the form the history keeps."""
    check_party: Callable[[Any, str], None]
    """Refuses an event from a sender that may not send it (A51)."""
    worker_of: Callable[[Ticket], str]
    """The worker that does a ticket's work."""
    is_deadline: Callable[[str], bool]
    """Whether the profile sets deadlines of this name."""
    instead: Callable[[Any, Unexpected], Event | None] = lambda event, refused: None
    """The event to apply instead of a worker's result that is refused for its content, such as an invalid answer."""
    letters: Callable[[Any], Sequence[Told]] = lambda outcome: ()
    """The messages of an outcome to outside agents, which have mailboxes; those that steps deliver are left out."""
    children: Callable[[S], Sequence[str]] = lambda state: ()
    """The tickets of a state that another workflow may be working for."""
    from_parent: Mapping[str, Callable[[str], Event]] = MappingProxyType({})
    """The events by which a parent workflow ends, pauses and continues this one, each made from a reason: `cancelled`,
    `paused`, `continued`."""
    text: Callable[[Mapping[str, Any]], str] | None = None
    """Renders a recorded message for its reader. None: the history has the texts, or what they are rendered from."""
    supersedes: bool = False
    """Whether a step that an outside event asks for replaces the one in progress."""

    def read_event(self, text: str) -> Event:
        """Read an event from the JSON in the history; ValueError if it is none."""
        return read_event(self.kinds, text)

    def event(self, kind: str, **facts: Any) -> Event:
        """The event of this kind."""
        return self.kinds[kind].model_validate(facts)


def profile_named(name: str) -> Profile[Any]:
    """The profile of this name; NewerVersion if this version has no such profile."""
    found: Profile[Any] = loaded(registered(name).engine)
    return found


def profile_in(snapshot: bytes) -> Profile[Any]:
    """The profile of the workflow in a snapshot; NewerVersion if this version has no such profile."""
    return profile_named(profile_of(snapshot))


def iso(at: datetime) -> str:
    """A time in the format the models write, so that equal times are equal texts."""
    return at.isoformat().replace("+00:00", "Z")


_WORKFLOW: Final = re.compile(rb'"workflow":"([0-9a-f]{8}-\d{1,15}-\d{1,9})"')
M = TypeVar("M", bound=BaseModel)


def loader(model: type[M], newest: int) -> Callable[[bytes], M]:
    """A function that loads snapshots of `model` up to schema version `newest`; it raises NewerVersion or Damaged."""

    def load(snapshot: bytes) -> M:
        try:
            found = model.model_validate_json(snapshot)
        except ValueError as error:
            _refuse_newer(object_in(snapshot), newest)
            # A snapshot that is no valid state may still name its workflow.
            named, said = _WORKFLOW.search(snapshot), " ".join(str(error).split())[:300]
            workflow = named[1].decode() if named is not None else ""
            raise Damaged(workflow, f"its snapshot cannot be read: {said}") from None
        _refuse_newer(found.__dict__, newest)
        return found

    return load


def _refuse_newer(found: dict[str, Any], newest: int) -> None:
    version = found.get("schema_version", 1)
    if isinstance(version, int) and version > newest:
        is_named = found.get("profile", "validation") == "validation"
        which = f"workflow {found.get('workflow', '')}" if is_named else "a workflow"
        raise NewerVersion(
            f"{which} was written by a newer fixloop (schema {version}, this one reads up to {newest}); "
            "it was left as it is: upgrade this one"
        )


def object_in(text: bytes) -> dict[str, Any]:
    """The JSON object in `text`; empty if it holds none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


load_state: Final = loader(State, SCHEMA_VERSION)
"""Loads the snapshot of a validation workflow."""
