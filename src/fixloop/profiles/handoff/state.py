"""The state of a handoff workflow: everything a decision may depend on (D20-D23, D36, K10)."""

from datetime import datetime
from typing import Any, Final, Literal

from fixloop.errors import RefusedError
from fixloop.profiles.handoff import records as rec
from fixloop.profiles.handoff.routes import HandoffStatus, Kind, Priority, check_agent
from fixloop.protocol.event import Value
from fixloop.protocol.ticket import Letter

SCHEMA_VERSION: Final = 1
"""Of snapshots; raised when an older fixloop could not read a newer one."""


class Limits(Value):
    """The configurable limits (D25, D37, G11, G15, G18, G19)."""

    lease_seconds: float = 1800.0
    """Of a lock, and of an agent's task."""
    agent_seconds: dict[str, float | None] = {}
    """Time limits of individual agents' tasks, by name; None: no limit."""
    attempts: int = 3
    delivery_attempts: int = 3
    """Attempts to deliver a letter to an outside agent, including the first (A70)."""
    base_seconds: float = 2.0
    cap_seconds: float = 60.0

    def seconds_of(self, name: str) -> float | None:
        """The time limit of this agent's task."""
        return self.agent_seconds.get(name, self.lease_seconds)

    def backoff_seconds(self, attempt: int) -> float:
        """The pause after failed attempt `attempt` (D37)."""
        return float(min(self.cap_seconds, self.base_seconds * 2 ** (attempt - 1)))


class Agent(Value):
    """One agent (D20, D21)."""

    name: str
    command: str = ""
    """The command that runs it; empty: it runs outside."""
    status: str = "idle"
    """`idle`, `active`, `completed`."""
    last_active: datetime | None = None
    handoff: str = ""
    """The handoff it has accepted and not completed (D36)."""
    asked_at: datetime | None = None
    """When it was last asked for work."""
    asked: bool = False
    activations: int = 0
    attempt: int = 1
    started: bool = False
    """Whether its start was recorded for this activation (D49)."""
    answer: str = ""
    """A person's answer to its question, for its next run (D43)."""

    @property
    def run(self) -> int:
        return self.activations


class Handoffs(Value):
    profile: Literal["handoff"]
    """Always in a snapshot, because it identifies the profile."""
    schema_version: int
    """Always in a snapshot, to show whether a newer fixloop wrote it."""
    workflow: str
    project: str = ""
    issue: int
    name: str
    kind: Kind = Kind.FEATURE
    spec: str = ""
    priority: Priority = Priority.HIGH
    status: str = "running"
    """`running`, `paused`, `completed`, `failed`."""
    started_at: datetime
    last_at: datetime
    ended_at: datetime | None = None
    outcome: str = ""
    iteration: int = 1
    max_iterations: int = 5
    current_agent: str = ""
    agents: tuple[Agent, ...]
    messages: tuple[rec.Message, ...] = ()
    """Every handoff with its current status, in order of creation (D14-D16)."""
    locks: dict[str, rec.Lock] = {}
    takeovers: tuple[rec.Takeover, ...] = ()
    tokens: int = 0
    events: tuple[rec.EventRecord, ...] = ()
    questions: tuple[rec.Question, ...] = ()
    held_writes: tuple[rec.HeldWrite, ...] = ()
    metadata: dict[str, Any] = {}
    """Fields that agents wrote in addition to those of the protocol (D45)."""
    written: dict[str, int] = {}
    """How often each of these was written, to detect a writer that has not seen the last value."""
    letters: tuple[Letter, ...] = ()
    """Letters to outside agents that no mailbox has taken yet."""
    posted: int = 0
    """The number of letters so far."""
    commit: str = ""
    made: tuple[rec.Made, ...] = ()
    """The changes of each run, in order; a run without changes has none (D34)."""
    remaining_issues: tuple[str, ...] = ()
    paused_clock: float | None = None
    limits: Limits = Limits()
    queue: str = ""
    configuration: str = ""
    """Digest of the frozen configuration, an artifact."""
    snapshot: str = ""
    """The snapshot's description as JSON: opaque here, used by the workers."""
    tip: str = ""
    """The commit that holds the work so far."""
    push: bool = False
    """Push its branch before a successful end."""
    notify: bool = False
    """A command notifies a person of open questions."""
    closing: str = ""
    """The outcome of its end, once its branch is pushed or refused."""
    pushed: str = ""
    """The name of the pushed branch; empty: none."""
    push_error: str = ""
    request: str = ""
    """The task, if the name does not describe it fully."""
    parent: str = ""
    """The ticket of the parent workflow (bridging)."""
    lines: int = 0
    sequence: int = 0
    rebuilt: int = 0
    """How often it was rebuilt from its named files (K23); each time its versions start again."""

    @property
    def urgency(self) -> int:
        """The broker priority of all its steps and messages."""
        return self.priority.broker

    @property
    def question_id(self) -> str:
        """The id of the next question."""
        return f"ESC-{self.issue}-{self.sequence + 1}"

    @property
    def ended(self) -> bool:
        return self.status in ("completed", "failed")

    def agent(self, name: str) -> Agent:
        """One agent. RefusedError: it takes no part."""
        check_agent(name)
        return next(found for found in self.agents if found.name == name)

    def message(self, message_id: str) -> rec.Message:
        """One handoff. RefusedError: there is none with this id."""
        for found in self.messages:
            if found.message_id == message_id.removeprefix("handoff-"):
                return found
        raise RefusedError(f"there is no handoff {message_id} in workflow {self.workflow}")

    def pending_for(self, name: str) -> rec.Message | None:
        """The oldest pending handoff for this agent (D32)."""
        waiting = (m for m in self.messages if m.recipient == name and m.status is HandoffStatus.PENDING)
        return next(waiting, None)

    def blocking(self) -> rec.Question | None:
        """The question that the whole workflow waits for (D42)."""
        return next((question for question in self.questions if question.blocking), None)
