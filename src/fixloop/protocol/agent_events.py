"""Events shared by all profiles whose steps are runs of named agents; results of agents belong to each profile."""

from typing import Any, Final, Literal

from fixloop.protocol import event
from fixloop.protocol.event import ORCHESTRATOR, USER


class AgentEvent(event.Event):
    """An event of these profiles."""

    sender: str = ORCHESTRATOR


class Restored(AgentEvent, event.Start):
    """A workflow that Redis lost continues from its named files (K23)."""

    state: dict[str, Any]
    """The snapshot that the files were made from."""
    bundle: str = ""
    """Digest of the artifact that gives other machines the work so far."""


class RunEnded(AgentEvent):
    """An agent finished a run, with its changes to the repository."""

    base: str = ""
    """The commit that its agent started from."""
    tip: str = ""
    """The commit with its changes; `base` or empty if there are none."""
    bundle: str = ""
    """Digest of the artifact that gives other machines `tip`."""


class AgentFailed(AgentEvent):
    """An agent's command could not be run or failed (D37, D38)."""

    kind: Literal["agent-failed"] = "agent-failed"
    agent: str
    reason: str
    fatal: bool = False
    artifacts: tuple[str, ...] = ()


class MessageStored(AgentEvent):
    """The mailbox of an outside agent took a letter (A70)."""

    kind: Literal["message-stored"] = "message-stored"
    number: int
    """The letter's number."""


class DeliveryFailed(AgentEvent):
    """The mailbox of an outside agent could not take a letter (A70)."""

    kind: Literal["delivery-failed"] = "delivery-failed"
    number: int
    """The letter's number."""
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


KINDS: Final = event.kinds_in(vars())
