"""What can happen to a handoff workflow. The only input of a decision; all of it is data."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from fixloop.profiles.handoff.returns import Returned
from fixloop.profiles.handoff.routes import Kind, Priority
from fixloop.profiles.handoff.state import Limits
from fixloop.protocol.agents import ORCHESTRATOR, USER


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    sender: str = ORCHESTRATOR


class HandoffsStarted(_Event):
    """Somebody wants a workflow (D53)."""

    kind: Literal["handoffs-started"] = "handoffs-started"
    workflow: str
    project: str = ""
    issue: int
    name: str
    type: Kind = Kind.FEATURE
    priority: Priority = Priority.HIGH
    commands: dict[str, str] = {}
    """What runs an agent, by name; one without is somebody outside."""
    max_iterations: int = 5
    limits: Limits = Limits()
    queue: str = ""
    configuration: str = ""
    snapshot: str = ""
    tip: str = ""
    push: bool = False
    """When it ends well, its branch goes to the URL that the repository was given by."""
    notify: bool = False
    """A command tells a person of each escalation."""
    request: str = ""
    """What is wanted, where the name does not say all of it."""
    parent: str = ""
    """The ticket of another workflow whose work this is; empty: a person's or a program's own."""
    bundle: str = ""
    """Digest of what other machines need to have `tip`, where that is not the snapshot; an artifact."""


class HandoffsRestored(_Event):
    """A workflow that Redis lost goes on from its named files (K23)."""

    kind: Literal["handoffs-restored"] = "handoffs-restored"
    workflow: str
    state: dict[str, Any]
    """The snapshot that the files were drawn from."""
    bundle: str = ""
    """Digest of what other machines need to have the work so far, an artifact."""


class AgentActivated(_Event):
    """An agent begins: it reads the state and accepts what waits for it (D32, D33)."""

    kind: Literal["agent-activated"] = "agent-activated"
    agent: str


class HandoffAccepted(_Event):
    """An agent takes a handoff (D17, D18). `sender` is who."""

    kind: Literal["handoff-accepted"] = "handoff-accepted"
    message_id: str


class HandoffRejected(_Event):
    """An agent will not do what a handoff asks (G9)."""

    kind: Literal["handoff-rejected"] = "handoff-rejected"
    message_id: str
    reason: Annotated[str, Field(min_length=1)]


class HandoffSent(_Event):
    """An agent passes something on by itself (D12)."""

    kind: Literal["handoff-sent"] = "handoff-sent"
    to: str
    type: str
    payload: dict[str, Any] = {}


class AgentReturned(_Event):
    """An agent's result (D54). `sender` is the agent."""

    kind: Literal["agent-returned"] = "agent-returned"
    result: Returned
    artifacts: tuple[str, ...] = ()
    base: str = ""
    """The commit that its agent began from."""
    tip: str = ""
    """The commit with what it changed; `base`, or empty, where that is nothing."""
    bundle: str = ""
    """Digest of what other machines need to have `tip`, an artifact."""
    files: tuple[str, ...] = ()
    """The first of the paths that it changed."""
    file_count: int = 0
    """How many it changed in all."""


class AgentFailed(_Event):
    """An agent ended in an error (D37, D38)."""

    kind: Literal["agent-failed"] = "agent-failed"
    agent: str
    reason: str
    fatal: bool = False
    artifacts: tuple[str, ...] = ()


class AgentEscalated(_Event):
    """An agent needs a person (D41). `sender` is the agent."""

    kind: Literal["agent-escalated"] = "agent-escalated"
    reason: Annotated[str, Field(min_length=1)]
    details: str
    options: tuple[str, ...] = ()
    context: str = ""
    blocking: bool = True
    artifacts: tuple[str, ...] = ()
    base: str = ""
    """The commit that its agent began from."""
    tip: str = ""
    """The commit with what it changed; `base`, or empty, where that is nothing."""
    bundle: str = ""
    """Digest of what other machines need to have `tip`, an artifact."""
    files: tuple[str, ...] = ()
    """The first of the paths that it changed."""
    file_count: int = 0
    """How many it changed in all."""


class Answered(_Event):
    """A person's answer to a question (D43)."""

    kind: Literal["answered"] = "answered"
    sender: str = USER
    question: str = ""
    """Its id; empty: the one that is open longest."""
    answer: str


class DecisionMade(_Event):
    """A person's decision on what retries or reviews could not settle (K20)."""

    kind: Literal["decision-made"] = "decision-made"
    sender: str = USER
    decision: Literal["manual-fix", "skip", "abort", "extend"]
    question: str = ""
    """The id of what it settles; empty: what is open longest."""
    text: str = ""
    iterations: int = 3


class LockAcquired(_Event):
    """An agent wants a resource for itself (D24, D26). `sender` is who."""

    kind: Literal["lock-acquired"] = "lock-acquired"
    resource: Annotated[str, Field(min_length=1, max_length=500)]


class LockReleased(_Event):
    """An agent gives a resource back (D27)."""

    kind: Literal["lock-released"] = "lock-released"
    resource: str
    token: int | None = None


class LockExtended(_Event):
    """An agent needs a resource for longer (G18)."""

    kind: Literal["lock-extended"] = "lock-extended"
    resource: str
    token: int | None = None


class Heartbeat(_Event):
    """An agent is still at it (D34, G18)."""

    kind: Literal["heartbeat"] = "heartbeat"


class StateWritten(_Event):
    """An agent writes into the shared state (D19, D45, D46)."""

    kind: Literal["state-written"] = "state-written"
    field: Annotated[str, Field(min_length=1, max_length=200)]
    value: Any
    seen: int = 0
    """How often the field had been written when the agent read it."""
    at_once: bool = False
    """The lock is taken and given back by the same commit: what an agent wrote into the file that it was given."""


class MessageStored(_Event):
    """The mailbox of an agent outside took a letter (A70)."""

    kind: Literal["message-stored"] = "message-stored"
    number: int
    """The letter's."""


class DeliveryFailed(_Event):
    """The mailbox of an agent outside could not take a letter (A70)."""

    kind: Literal["delivery-failed"] = "delivery-failed"
    number: int
    """The letter's."""
    error: str


class PersonNotified(_Event):
    """The notify command was run, whatever came of it."""

    kind: Literal["person-notified"] = "person-notified"
    detail: str = ""


class DeadlineReached(_Event):
    kind: Literal["deadline-reached"] = "deadline-reached"
    name: str
    due: float


class BranchPushed(_Event):
    """The branch was pushed to the repository's URL, or was not."""

    kind: Literal["branch-pushed"] = "branch-pushed"
    branch: str = ""
    """Empty: there was nothing to push, or `error` says why it was not."""
    attempt: int = 1
    error: str = ""
    fatal: bool = False
    """Trying again is of no use."""


class Cancelled(_Event):
    kind: Literal["cancelled"] = "cancelled"
    sender: str = USER
    reason: str = ""


class Paused(_Event):
    kind: Literal["paused"] = "paused"
    sender: str = USER
    reason: str = ""


class Continued(_Event):
    kind: Literal["continued"] = "continued"
    sender: str = USER


class EventRefused(_Event):
    """Something that was not allowed was tried; kept for the log and nothing else."""

    kind: Literal["event-refused"] = "event-refused"
    refused: str
    reason: str
    artifacts: tuple[str, ...] = ()


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


_ADAPTER: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="kind")])


def event_from_json(text: str | bytes) -> Event:
    """Read an event back from a history entry."""
    return _ADAPTER.validate_json(text)
