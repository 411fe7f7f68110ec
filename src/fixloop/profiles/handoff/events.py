"""The events of a handoff workflow: the only inputs of its decisions, all of them data."""

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from fixloop.profiles.handoff.returns import Returned
from fixloop.profiles.handoff.routes import Kind, Priority
from fixloop.profiles.handoff.state import Limits
from fixloop.protocol import agent_events
from fixloop.protocol.agent_events import AgentEvent, Restored, RunEnded
from fixloop.protocol.event import USER, WorkStarted, kinds_in


class HandoffsStarted(AgentEvent, WorkStarted):
    """A workflow was requested (D53)."""

    kind: Literal["handoffs-started"] = "handoffs-started"
    type: Kind = Kind.FEATURE
    priority: Priority = Priority.HIGH
    commands: dict[str, str] = {}
    """The command of each agent, by name; an agent without one runs outside."""
    limits: Limits = Limits()
    request: str = ""
    """The task, if the name does not describe it fully."""
    parent: str = ""
    """The ticket of the parent workflow; empty: a person or a program started it."""
    bundle: str = ""
    """Digest of the artifact that gives other machines `tip`, if that is not the snapshot."""


class HandoffsRestored(Restored):
    """The workflow continues from its named files (K23)."""

    kind: Literal["handoffs-restored"] = "handoffs-restored"


class AgentActivated(AgentEvent):
    """An agent starts: it reads the state and accepts its pending handoff (D32, D33)."""

    kind: Literal["agent-activated"] = "agent-activated"
    agent: str


class HandoffAccepted(AgentEvent):
    """An agent accepts a handoff (D17, D18). `sender` is the agent."""

    kind: Literal["handoff-accepted"] = "handoff-accepted"
    message_id: str


class HandoffRejected(AgentEvent):
    """An agent refuses to do what a handoff asks (G9)."""

    kind: Literal["handoff-rejected"] = "handoff-rejected"
    message_id: str
    reason: Annotated[str, Field(min_length=1)]


class HandoffSent(AgentEvent):
    """An agent sends a handoff by itself (D12)."""

    kind: Literal["handoff-sent"] = "handoff-sent"
    to: str
    type: str
    payload: dict[str, Any] = {}


class _AtEnd(RunEnded):
    """An agent's changes to the repository when its run ended or it asked a person."""

    artifacts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """The first of the changed paths."""
    file_count: int = 0
    """The number of all changed paths."""


class AgentReturned(_AtEnd):
    """An agent's result (D54). `sender` is the agent."""

    kind: Literal["agent-returned"] = "agent-returned"
    result: Returned


class AgentEscalated(_AtEnd):
    """An agent asks a person (D41). `sender` is the agent."""

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
    """Its id; empty: the oldest open question."""
    answer: str


class DecisionMade(AgentEvent):
    """A person's decision about something that retries or reviews could not settle (K20)."""

    kind: Literal["decision-made"] = "decision-made"
    sender: str = USER
    by: str = ""
    """The person's name, if known."""
    decision: Literal["manual-fix", "skip", "abort", "extend"]
    question: str = ""
    """The id of the question it settles; empty: the oldest open one."""
    text: str = ""
    iterations: int = 3


class LockAcquired(AgentEvent):
    """An agent wants to lock a resource (D24, D26). `sender` is the agent."""

    kind: Literal["lock-acquired"] = "lock-acquired"
    resource: Annotated[str, Field(min_length=1, max_length=500)]


class LockReleased(AgentEvent):
    """An agent releases a resource (D27)."""

    kind: Literal["lock-released"] = "lock-released"
    resource: str
    token: int | None = None


class LockExtended(AgentEvent):
    """An agent needs a resource for longer (G18)."""

    kind: Literal["lock-extended"] = "lock-extended"
    resource: str
    token: int | None = None


class Heartbeat(AgentEvent):
    """An agent is still working (D34, G18)."""

    kind: Literal["heartbeat"] = "heartbeat"


class StateWritten(AgentEvent):
    """An agent writes into the shared state (D19, D45, D46)."""

    kind: Literal["state-written"] = "state-written"
    field: Annotated[str, Field(min_length=1, max_length=200)]
    value: Any
    seen: int = 0
    """How often the field had been written when the agent read it."""
    at_once: bool = False
    """The same commit takes and releases the lock: the agent wrote this into its copy of the file."""


KINDS: Final = {**agent_events.KINDS, **kinds_in(vars())}
