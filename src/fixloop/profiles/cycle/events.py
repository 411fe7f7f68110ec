"""The events of a cycle: the only inputs of its decisions, all of them data (C6, C20, C35, C57)."""

from typing import Annotated, Final, Literal

from pydantic import Field

from fixloop.profiles.cycle.phase_result import PhaseResult
from fixloop.profiles.cycle.plan import PlanTask
from fixloop.profiles.cycle.records import InputKind
from fixloop.profiles.cycle.state import Limits
from fixloop.protocol import agent_events
from fixloop.protocol.agent_events import AgentEvent, Restored, RunEnded
from fixloop.protocol.event import USER, Value, WorkStarted, kinds_in


class Written(Value):
    """A file that an agent left in its progress directory."""

    name: str
    """Relative to that directory."""
    digest: str
    """Of the document, or of the bytes added to a log."""
    intact: bool = True
    """Of a log: all earlier bytes are unchanged (C15)."""


class CycleStarted(AgentEvent, WorkStarted):
    """A cycle was requested (C45)."""

    kind: Literal["cycle-started"] = "cycle-started"
    cycle_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
    description: str = ""
    graph: dict[str, tuple[str, ...]] = {}
    """Empty: the default dependencies (C38)."""
    commands: dict[str, str] = {}
    """The command of each agent, by key; an agent without one runs outside."""
    limits: Limits = Limits()


class CycleRestored(Restored):
    """The cycle continues from its named files (K23)."""

    kind: Literal["cycle-restored"] = "cycle-restored"


class AgentStarted(AgentEvent):
    """An agent started its run (C46)."""

    kind: Literal["agent-started"] = "agent-started"
    agent: str


class PhaseReported(RunEnded):
    """An agent's report, with the files it wrote (C6, C33). `sender` is the agent."""

    kind: Literal["phase-reported"] = "phase-reported"
    result: PhaseResult
    documents: tuple[Written, ...] = ()
    logs: tuple[Written, ...] = ()
    plan: tuple[PlanTask, ...] | None = None
    """The content of `plan.json`, if it was written."""
    output: str = ""
    """Digest of the agent's complete output, an artifact."""

    @property
    def artifacts(self) -> tuple[str, ...]:
        """The digests of all artifacts it refers to."""
        written = (written.digest for written in (*self.documents, *self.logs))
        return tuple(filter(None, (*written, self.output)))


class AnswerInvalid(AgentEvent):
    """An agent's run ended without exactly one valid PHASE_RESULT (C35)."""

    kind: Literal["answer-invalid"] = "answer-invalid"
    agent: str
    problem: str
    artifacts: tuple[str, ...] = ()


class InputRequested(AgentEvent):
    """A request to send an input to an agent (C20, K15). Only the orchestrator may make it."""

    kind: Literal["input-requested"] = "input-requested"
    recipient: str
    input: InputKind
    summary: str
    actions: tuple[str, ...]
    criteria: tuple[str, ...] = ()
    occasion: str = ""
    """The blocker that a clarification is about; the dependency of a `ready`."""


class StateWritten(AgentEvent):
    """The named state file was changed by hand (C5)."""

    kind: Literal["state-written"] = "state-written"
    field: str = ""


class CycleFinished(AgentEvent):
    """The orchestrator completes the cycle (C50, C51)."""

    kind: Literal["cycle-finished"] = "cycle-finished"


class DecisionMade(AgentEvent):
    """A person's answer to an escalation (C57, K20)."""

    kind: Literal["decision-made"] = "decision-made"
    sender: str = USER
    by: str = ""
    """The person's name, if known."""
    decision: Literal["manual-fix", "skip", "abort", "extend"]
    text: str = ""
    """The guidance, or the reason."""
    iterations: int = 3
    minutes: float = 30.0


KINDS: Final = {**agent_events.KINDS, **kinds_in(vars())}
