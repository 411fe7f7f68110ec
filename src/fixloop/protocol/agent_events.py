"""The events that all profiles have whose steps are runs of named agents; what agents bring is each profile's own."""

from typing import Any, Literal

from fixloop.protocol import event
from fixloop.protocol.agents import ORCHESTRATOR, USER


class AgentEvent(event.Event):
    """One of these profiles' events."""

    sender: str = ORCHESTRATOR


class Restored(AgentEvent, event.Start):
    """A workflow that Redis lost goes on from its named files (K23)."""

    state: dict[str, Any]
    """The snapshot that the files were made from."""
    bundle: str = ""
    """Digest of what other machines need to have the work so far, an artifact."""


class RunEnded(AgentEvent):
    """An agent ended a run, with what it changed in the repository."""

    base: str = ""
    """The commit that its agent began from."""
    tip: str = ""
    """The commit with what it changed; `base`, or empty, where that is nothing."""
    bundle: str = ""
    """Digest of what other machines need to have `tip`, an artifact."""


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


class PersonNotified(event.PersonNotified):
    sender: str = ORCHESTRATOR


class DeadlineReached(event.DeadlineReached):
    sender: str = ORCHESTRATOR


class BranchPushed(event.BranchPushed):
    sender: str = ORCHESTRATOR


class Cancelled(AgentEvent):
    kind: Literal["cancelled"] = "cancelled"
    sender: str = USER
    by: str = ""
    reason: str = ""


class Paused(AgentEvent):
    kind: Literal["paused"] = "paused"
    sender: str = USER
    by: str = ""
    reason: str = ""


class Continued(AgentEvent):
    kind: Literal["continued"] = "continued"
    sender: str = USER
    by: str = ""


class EventRefused(event.EventRefused):
    sender: str = ORCHESTRATOR
