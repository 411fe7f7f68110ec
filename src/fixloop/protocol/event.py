"""The value type of states and messages, the envelope of all events, the moment of a decision about one, its refusals,
and the events and names every profile shares."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict
from pydantic_core import from_json

from fixloop.errors import RefusedError


class Moment(NamedTuple):
    """The time of a decision: wall time for people, engine time for clocks (K34). Nothing here reads a clock: a moment
    comes from the store, and its holder adds monotonic differences."""

    at: datetime
    """Aware UTC wall time, as a log shows it."""
    clock: float
    """Seconds of engine time, which stands still while the engine is away; limits are measured in it."""

    def plus(self, seconds: float) -> "Moment":
        """This moment `seconds` later, on both clocks."""
        return Moment(self.at + timedelta(seconds=seconds), self.clock + seconds)


class Unexpected(RefusedError):
    """The event does not fit the state; nothing was changed."""


class Repeated(Unexpected):
    """It has already happened; a repetition has no effect (R8)."""


class NotDue(Unexpected):
    """A timer fired too early; it will fire again."""


class Moved(Unexpected):
    """The work is based on a commit that is no longer the latest; it has to be rebased first."""


ORCHESTRATOR: Final = "orchestrator"
USER: Final = "user"
"""The names of the orchestrator and of the person, in profiles whose steps are runs of named agents."""


class Value(BaseModel):
    """A part of a state or a message; unknown fields of newer versions are ignored. Validators are built on first use,
    because a command needs few of them."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    def __eq__(self, other: object) -> bool:
        # Writing a state compares each of its parts with its default; pydantic's takes ten times as long.
        return self.__class__ is other.__class__ and self.__dict__ == other.__dict__

    def with_(self, **changes: Any) -> Self:
        """A copy with some fields changed: like `model_copy`, at a quarter of the cost."""
        copy = self.__class__.__new__(self.__class__)
        object.__setattr__(copy, "__dict__", {**self.__dict__, **changes})
        # `fields_set` is copied unchanged; nothing reads it.
        object.__setattr__(copy, "__pydantic_fields_set__", self.__pydantic_fields_set__)
        object.__setattr__(copy, "__pydantic_extra__", self.__pydantic_extra__)
        object.__setattr__(copy, "__pydantic_private__", self.__pydantic_private__)
        return copy

    @classmethod
    def build(cls) -> None:
        """Build the validators of all loaded subclasses, for a process that runs for long or forks."""
        for kind in cls.__subclasses__():
            kind.model_rebuild(raise_errors=False)
            kind.build()


class Event(Value):
    """The only input of decisions, in the past tense; unknown fields of newer versions are ignored."""

    sender: str = ""
    """The sender's handle; empty: the usual sender of such events."""
    kind: str


def kinds_in(names: Mapping[str, Any]) -> dict[str, type[Event]]:
    """The events among the names of a module, by kind."""
    events = [each for each in names.values() if isinstance(each, type) and issubclass(each, Event)]
    kinds = {each.model_fields["kind"].default: each for each in events}
    return {kind: event for kind, event in kinds.items() if isinstance(kind, str)}


def read_event(kinds: Mapping[str, type[Event]], text: str) -> Event:
    """Read an event of one of these kinds back from a history entry; ValueError if it is none."""
    content = from_json(text)
    event = kinds.get(str(content.get("kind"))) if isinstance(content, dict) else None
    if event is None:
        raise ValueError(f"this is no event of a known kind: {text[:100]}")
    return event.model_validate_json(text)


class Start(Event):
    """The event that starts a workflow."""

    workflow: str


class WorkStarted(Start):
    """A workflow was requested; the fields that every profile needs."""

    project: str = ""
    issue: int
    name: str
    max_iterations: int = 5
    queue: str = ""
    configuration: str = ""
    snapshot: str = ""
    tip: str = ""
    push: bool = False
    """Push the branch to the repository's URL after a successful end."""
    notify: bool = False
    """A command notifies a person of each escalation."""


class DeadlineReached(Event):
    """A deadline fell due; the decision checks whether it still matters (R6)."""

    kind: Literal["deadline-reached"] = "deadline-reached"
    name: str
    due: float
    """Engine seconds."""


class BranchPushed(Event):
    """The verified branch was pushed to the repository's URL, or the push failed."""

    kind: Literal["branch-pushed"] = "branch-pushed"
    branch: str = ""
    """Its name there; empty: nothing was pushed."""
    attempt: int = 1
    error: str = ""
    """Why not; empty with an empty branch: no fix was needed."""
    fatal: bool = False
    """A retry cannot help: the push was refused."""


class PersonNotified(Event):
    """The notify command was run, successfully or not."""

    kind: Literal["person-notified"] = "person-notified"
    detail: str = ""


class EventRefused(Event):
    """Another event was refused; recorded for the log (A51, K8, K20)."""

    kind: Literal["event-refused"] = "event-refused"
    refused: str
    """The refused event's kind."""
    reason: str
    """The refusal's message."""
    artifacts: tuple[str, ...] = ()
    """Its artifacts, so that a late answer is not lost."""
