"""What states and messages consist of, the envelope of everything that can happen to a workflow, and what can happen
to those of every profile."""

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """A part of a state, or of what is said; what a newer version says more is left aside. Its checks are made when
    they are first needed: a command needs few of them."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    def with_(self, **changes: Any) -> Self:
        """The same with some fields changed: what `model_copy` does, at a quarter of its cost."""
        copy = self.__class__.__new__(self.__class__)
        object.__setattr__(copy, "__dict__", {**self.__dict__, **changes})
        # Which of them were given and which are defaults is asked by nobody.
        object.__setattr__(copy, "__pydantic_fields_set__", self.__pydantic_fields_set__)
        object.__setattr__(copy, "__pydantic_extra__", self.__pydantic_extra__)
        object.__setattr__(copy, "__pydantic_private__", self.__pydantic_private__)
        return copy

    @classmethod
    def build(cls) -> None:
        """Make the checks of all kinds that are loaded, for a process that goes on for long or is forked."""
        for kind in cls.__subclasses__():
            kind.model_rebuild(raise_errors=False)
            kind.build()


class Event(Value):
    """The only input of decisions, in the past tense; what a newer version says more is left aside."""

    sender: str = ""
    """Whom it is from, as a handle; empty: the usual sender of such events."""
    kind: str


class Start(Event):
    """The event that begins a workflow."""

    workflow: str


class WorkStarted(Start):
    """Somebody wants a workflow: what every profile has to know of it."""

    project: str = ""
    issue: int
    name: str
    max_iterations: int = 5
    queue: str = ""
    configuration: str = ""
    snapshot: str = ""
    tip: str = ""
    push: bool = False
    """When it ends well, its branch goes to the URL that the repository was given by."""
    notify: bool = False
    """A command tells a person of each escalation."""


class DeadlineReached(Event):
    """A deadline fell due; whether it still matters is for the decision to say (R6)."""

    kind: Literal["deadline-reached"] = "deadline-reached"
    name: str
    due: float
    """Engine seconds."""


class BranchPushed(Event):
    """The verified branch was pushed to the repository's URL, or was not."""

    kind: Literal["branch-pushed"] = "branch-pushed"
    branch: str = ""
    """Its name there; empty: nothing was pushed."""
    attempt: int = 1
    error: str = ""
    """Why not; empty with an empty branch: no fix was needed."""
    fatal: bool = False
    """Trying again cannot help: it was refused."""


class PersonNotified(Event):
    """The notify command was run, successfully or not."""

    kind: Literal["person-notified"] = "person-notified"
    detail: str = ""


class EventRefused(Event):
    """Another event was refused; kept so that the log tells of it (A51, K8, K20)."""

    kind: Literal["event-refused"] = "event-refused"
    refused: str
    """The refused event's kind."""
    reason: str
    """The sentence with which it was refused."""
    artifacts: tuple[str, ...] = ()
    """What it rested on: a late answer is not lost."""
