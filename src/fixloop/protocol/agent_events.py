"""The events that all profiles have whose steps are runs of named agents; what agents bring is each profile's own."""

from typing import Literal

from fixloop.protocol.agents import ORCHESTRATOR, USER
from fixloop.protocol.event import Event


class AgentEvent(Event):
    """One of these profiles' events."""

    sender: str = ORCHESTRATOR


class AgentFailed(AgentEvent):
    """An agent's command could not be run, or ended in an error (D37, D38)."""

    kind: Literal["agent-failed"] = "agent-failed"
    agent: str
    reason: str
    fatal: bool = False
    artifacts: tuple[str, ...] = ()


class MessageStored(AgentEvent):
    """The mailbox of an agent outside took a letter (A70)."""

    kind: Literal["message-stored"] = "message-stored"
    number: int
    """The letter's."""


class DeliveryFailed(AgentEvent):
    """The mailbox of an agent outside could not take a letter (A70)."""

    kind: Literal["delivery-failed"] = "delivery-failed"
    number: int
    """The letter's."""
    error: str


class PersonNotified(AgentEvent):
    """The notify command was run, successfully or not."""

    kind: Literal["person-notified"] = "person-notified"
    detail: str = ""


class DeadlineReached(AgentEvent):
    """A deadline that the state set has passed."""

    kind: Literal["deadline-reached"] = "deadline-reached"
    name: str
    due: float


class BranchPushed(AgentEvent):
    """The branch was pushed to the repository's URL, or was not."""

    kind: Literal["branch-pushed"] = "branch-pushed"
    branch: str = ""
    """Empty: there was nothing to push, or `error` says why it was not."""
    attempt: int = 1
    error: str = ""
    fatal: bool = False
    """Trying again is of no use."""


class Cancelled(AgentEvent):
    kind: Literal["cancelled"] = "cancelled"
    sender: str = USER
    reason: str = ""


class Paused(AgentEvent):
    kind: Literal["paused"] = "paused"
    sender: str = USER
    reason: str = ""


class Continued(AgentEvent):
    kind: Literal["continued"] = "continued"
    sender: str = USER


class EventRefused(AgentEvent):
    """Something that was not allowed was tried; kept for the log and nothing else."""

    kind: Literal["event-refused"] = "event-refused"
    refused: str
    reason: str
    artifacts: tuple[str, ...] = ()
