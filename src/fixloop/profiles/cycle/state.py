"""The state of one cycle: everything a decision may depend on, complete in one snapshot (C2-C10, C30, C41, U10)."""

from datetime import datetime, timedelta, timezone
from typing import Final, Literal

from fixloop.errors import UsageError
from fixloop.profiles.cycle import records as rec
from fixloop.profiles.cycle.plan import PlanTask
from fixloop.profiles.cycle.records import AgentStatus, BlockerStatus, CycleStatus
from fixloop.profiles.cycle.workers import worker
from fixloop.protocol.event import Value
from fixloop.protocol.ticket import Letter

SCHEMA_VERSION: Final = 1
"""Of snapshots; raised when an older fixloop could not read a newer one."""


class Limits(Value):
    """The configurable limits (G11, G15, K5, U13)."""

    run_seconds: float | None = 1800.0
    """The time limit of an agent's run; None: no limit."""
    agent_seconds: dict[str, float | None] = {}
    """The same for individual agents, by key."""
    converge_seconds: float = 900.0
    """The extra time after the request to converge."""
    attempts: int = 3
    """Starts of one run, including the first."""
    responses: int = 2
    """Answers without a valid PHASE_RESULT before a person is asked."""
    delivery_attempts: int = 3
    """Attempts to deliver a letter to an outside agent, including the first (A70)."""
    base_seconds: float = 2.0
    cap_seconds: float = 60.0
    pass_rate_percent: float = 90.0
    coverage_percent: float = 80.0
    utc_offset_minutes: int = 480
    """For all times in the named files (K14)."""

    @property
    def zone(self) -> timezone:
        """The time zone of all times in the named files."""
        return timezone(timedelta(minutes=self.utc_offset_minutes))

    def seconds_of(self, key: str) -> float | None:
        """The time limit of this agent's run."""
        return self.agent_seconds.get(key, self.run_seconds)

    def backoff_seconds(self, attempt: int) -> float:
        """The pause before `attempt` + 1 (G19)."""
        return float(min(self.cap_seconds, self.base_seconds * 2 ** (attempt - 1)))


class Agent(Value):
    """One agent in one cycle (C30, C41)."""

    key: str
    depends_on: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()
    """The agents it waits for besides its dependencies: to clear its blocker, or to fix something first."""
    command: str = ""
    """The command that runs it; empty: it runs outside."""
    status: AgentStatus = AgentStatus.IDLE
    started_at: datetime | None = None
    completed_at: datetime | None = None
    output_files: tuple[str, ...] = ()
    completed_in: tuple[int, ...] = ()
    """The iterations in which it completed."""
    runs: int = 0
    """The number of requests for work."""
    attempt: int = 1
    invalid: int = 0
    """Answers in this run that were no PHASE_RESULT."""
    begun: bool = False
    """Whether it has started the last request; after a refused answer the same request is repeated."""
    asked_at: datetime | None = None
    """When it was last asked for work."""
    asked: bool = False
    """Whether it was asked for work and has not reported yet (C23)."""
    converging: bool = False
    message: str = ""
    """The last `send_input` (C48)."""

    @property
    def name(self) -> str:
        return self.key

    @property
    def run(self) -> int:
        return self.runs


class Cycle(Value):
    profile: Literal["cycle"]
    """Always in a snapshot, because it identifies the profile."""
    schema_version: int
    """Always in a snapshot, to show whether a newer fixloop wrote it."""
    workflow: str
    project: str = ""
    issue: int
    name: str
    cycle_id: str
    description: str = ""
    status: CycleStatus = CycleStatus.RUNNING
    started_at: datetime
    last_at: datetime
    ended_at: datetime | None = None
    outcome: str = ""
    """`success`, `skipped`, `aborted` or `cancelled` after its end."""
    max_iterations: int = 5
    iteration: int = 1
    base: str = "1.0.0"
    """The version at which this iteration's documents were issued (K11)."""
    agents: tuple[Agent, ...]
    documents: tuple[rec.Document, ...] = ()
    archive: tuple[rec.Document, ...] = ()
    logs: tuple[rec.LogPart, ...] = ()
    fields: tuple[rec.FieldValue, ...] = ()
    plan: tuple[PlanTask, ...] = ()
    iterations: tuple[rec.IterationRecord, ...] = ()
    feedback_log: tuple[rec.FeedbackEntry, ...] = ()
    blockers: tuple[rec.Blocker, ...] = ()
    decisions: tuple[rec.DecisionRecord, ...] = ()
    conflicts: tuple[rec.Conflict, ...] = ()
    timeline: tuple[rec.TimelineEntry, ...] = ()
    inputs: tuple[rec.SentInput, ...] = ()
    escalations: tuple[rec.OpenEscalation, ...] = ()
    """The first waits for a person; the others follow it (K8)."""
    remaining_issues: tuple[str, ...] = ()
    """Issues that were known and not fixed at its end or escalation (G11)."""
    letters: tuple[Letter, ...] = ()
    """Letters to outside agents that no mailbox has taken yet."""
    posted: int = 0
    """The number of letters so far."""
    paused_at: datetime | None = None
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
    lines: int = 0
    sequence: int = 0
    rebuilt: int = 0
    """How often it was rebuilt from its named files (K23); each time its versions start again."""

    @property
    def urgency(self) -> int:
        """The broker priority of all its steps and messages: high."""
        return 3

    @property
    def ended(self) -> bool:
        return self.status in (CycleStatus.COMPLETED, CycleStatus.FAILED)

    @property
    def version(self) -> str:
        """The highest version of any document; without documents, the version at which this iteration started."""
        return str(rec.iteration_version(self.iteration, (*self.versions, rec.version_of(self.base))))

    @property
    def versions(self) -> tuple[rec.Version, ...]:
        return tuple(rec.version_of(document.version) for document in self.documents)

    @property
    def escalation(self) -> rec.OpenEscalation | None:
        """The escalation that a person has to decide now."""
        return self.escalations[0] if self.escalations else None

    def agent(self, key: str) -> Agent:
        """One agent. UsageError: it takes no part in this cycle."""
        found = next((agent for agent in self.agents if agent.key == key), None)
        if found is not None:
            return found
        taking = ", ".join(agent.key for agent in self.agents)
        raise UsageError(f"{key!r} is no agent of cycle {self.cycle_id}; there are {taking}")

    def document(self, agent: str, name: str) -> rec.Document | None:
        """The current issue of a main document."""
        return next((d for d in self.documents if (d.agent, d.name) == (agent, name)), None)

    def documents_of(self, agent: str) -> tuple[rec.Document, ...]:
        return tuple(document for document in self.documents if document.agent == agent)

    def primary(self, agent: str) -> tuple[str, str]:
        """The first of an agent's documents that exists, as a path from the cycle's folder, and its version."""
        for name in worker(agent).documents:
            found = self.document(agent, name)
            if found is not None:
                return f"{agent}/{name}", found.version
        return "", self.version

    def value(self, field: str) -> str | tuple[str, ...] | None:
        """The current value of a state field."""
        return next((kept.value for kept in reversed(self.fields) if kept.name == field), None)

    def completed(self, key: str) -> bool:
        return self.agent(key).status is AgentStatus.COMPLETED

    @property
    def all_completed(self) -> bool:
        return all(agent.status is AgentStatus.COMPLETED for agent in self.agents)

    def ready(self, key: str) -> bool:
        """Whether all of its dependencies are completed (C41)."""
        return all(map(self.completed, self.agent(key).depends_on))

    def can_start(self, key: str) -> bool:
        """Whether it may work now (C41)."""
        return self.ready(key) and not any(not self.completed(other) for other in self.agent(key).waits_for)

    def open_blockers(self, key: str | None = None) -> tuple[rec.Blocker, ...]:
        """The open blockers, of one agent or of all."""
        return tuple(
            blocker
            for blocker in self.blockers
            if blocker.status is BlockerStatus.OPEN and key in (None, blocker.reported_by)
        )
