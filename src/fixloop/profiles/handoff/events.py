"""What can happen to a handoff workflow. The only input of a decision; all of it is data."""

from typing import Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter

from fixloop.profiles.handoff.returns import Returned
from fixloop.profiles.handoff.routes import Kind, Priority
from fixloop.profiles.handoff.state import Limits
from fixloop.protocol.agent_events import (
    AgentEvent,
    AgentFailed,
    BranchPushed,
    Cancelled,
    Continued,
    DeadlineReached,
    DeliveryFailed,
    EventRefused,
    MessageStored,
    Paused,
    PersonNotified,
    Restored,
    RunEnded,
)
from fixloop.protocol.agents import USER
from fixloop.protocol.event import WorkStarted


class HandoffsStarted(AgentEvent, WorkStarted):
    """Somebody wants a workflow (D53)."""

    kind: Literal["handoffs-started"] = "handoffs-started"
    type: Kind = Kind.FEATURE
    priority: Priority = Priority.HIGH
    commands: dict[str, str] = {}
    """What runs an agent, by name; one without is somebody outside."""
    limits: Limits = Limits()
    request: str = ""
    """What is wanted, where the name does not say all of it."""
    parent: str = ""
    """The ticket of another workflow whose work this is; empty: a person's or a program's own."""
    bundle: str = ""
    """Digest of what other machines need to have `tip`, where that is not the snapshot; an artifact."""


class HandoffsRestored(Restored):
    """It goes on from its named files (K23)."""

    kind: Literal["handoffs-restored"] = "handoffs-restored"


class AgentActivated(AgentEvent):
    """An agent begins: it reads the state and accepts what waits for it (D32, D33)."""

    kind: Literal["agent-activated"] = "agent-activated"
    agent: str


class HandoffAccepted(AgentEvent):
    """An agent takes a handoff (D17, D18). `sender` is who."""

    kind: Literal["handoff-accepted"] = "handoff-accepted"
    message_id: str


class HandoffRejected(AgentEvent):
    """An agent will not do what a handoff asks (G9)."""

    kind: Literal["handoff-rejected"] = "handoff-rejected"
    message_id: str
    reason: Annotated[str, Field(min_length=1)]


class HandoffSent(AgentEvent):
    """An agent passes something on by itself (D12)."""

    kind: Literal["handoff-sent"] = "handoff-sent"
    to: str
    type: str
    payload: dict[str, Any] = {}


class _AtEnd(RunEnded):
    """What an agent left in the repository when its run ended, or when it asked a person."""

    artifacts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """The first of the paths that it changed."""
    file_count: int = 0
    """How many it changed in all."""


class AgentReturned(_AtEnd):
    """An agent's result (D54). `sender` is the agent."""

    kind: Literal["agent-returned"] = "agent-returned"
    result: Returned


class AgentEscalated(_AtEnd):
    """An agent needs a person (D41). `sender` is the agent."""

    kind: Literal["agent-escalated"] = "agent-escalated"
    reason: Annotated[str, Field(min_length=1)]
    details: str
    options: tuple[str, ...] = ()
    context: str = ""
    blocking: bool = True


class Answered(AgentEvent):
    """A person's answer to a question (D43)."""

    kind: Literal["answered"] = "answered"
    sender: str = USER
    by: str = ""
    question: str = ""
    """Its id; empty: the one that is open longest."""
    answer: str


class DecisionMade(AgentEvent):
    """A person's decision on what retries or reviews could not settle (K20)."""

    kind: Literal["decision-made"] = "decision-made"
    sender: str = USER
    by: str = ""
    """The person's name, where it is known."""
    decision: Literal["manual-fix", "skip", "abort", "extend"]
    question: str = ""
    """The id of what it settles; empty: what is open longest."""
    text: str = ""
    iterations: int = 3


class LockAcquired(AgentEvent):
    """An agent wants a resource for itself (D24, D26). `sender` is who."""

    kind: Literal["lock-acquired"] = "lock-acquired"
    resource: Annotated[str, Field(min_length=1, max_length=500)]


class LockReleased(AgentEvent):
    """An agent gives a resource back (D27)."""

    kind: Literal["lock-released"] = "lock-released"
    resource: str
    token: int | None = None


class LockExtended(AgentEvent):
    """An agent needs a resource for longer (G18)."""

    kind: Literal["lock-extended"] = "lock-extended"
    resource: str
    token: int | None = None


class Heartbeat(AgentEvent):
    """An agent is still at it (D34, G18)."""

    kind: Literal["heartbeat"] = "heartbeat"


class StateWritten(AgentEvent):
    """An agent writes into the shared state (D19, D45, D46)."""

    kind: Literal["state-written"] = "state-written"
    field: Annotated[str, Field(min_length=1, max_length=200)]
    value: Any
    seen: int = 0
    """How often the field had been written when the agent read it."""
    at_once: bool = False
    """The lock is taken and given back by the same commit: what an agent wrote into the file that it was given."""


Event = (
    HandoffsStarted
    | HandoffsRestored
    | AgentActivated
    | HandoffAccepted
    | HandoffRejected
    | HandoffSent
    | AgentReturned
    | AgentFailed
    | AgentEscalated
    | Answered
    | DecisionMade
    | LockAcquired
    | LockReleased
    | LockExtended
    | Heartbeat
    | StateWritten
    | MessageStored
    | DeliveryFailed
    | PersonNotified
    | DeadlineReached
    | BranchPushed
    | Cancelled
    | Paused
    | Continued
    | EventRefused
)

event_from_json: Final = TypeAdapter[Event](Annotated[Event, Field(discriminator="kind")]).validate_json
"""Read an event back from a history entry."""
