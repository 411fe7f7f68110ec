"""The records of a handoff workflow: handoffs, locks, questions to a person, the six events and their metrics."""

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate
from typing import Annotated, Any, Final, Literal, NamedTuple
from uuid import UUID

from pydantic import Field, field_validator

from fixloop.profiles.handoff.routes import HandoffStatus, HandoffType, Kind, Priority
from fixloop.protocol.durations import iso_stamp
from fixloop.protocol.event import Value

EventName = Literal[
    "agent_started",
    "agent_completed",
    "handoff_created",
    "handoff_accepted",
    "error_occurred",
    "escalation_triggered",
]

MOST_CHARACTERS: Final = 3000
"""For the paths of one run, because every snapshot of the workflow contains them."""


class Context(Value):
    """The subject of a message (D3)."""

    workflow: Kind
    spec: str
    iteration: Annotated[int, Field(ge=1)]


class Message(Value, populate_by_name=True):
    """A message in the seed's envelope: a handoff, or a message to the orchestrator (D1)."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    message_id: str
    timestamp: datetime
    sender: Annotated[str, Field(alias="from")]
    recipient: Annotated[str, Field(alias="to")]
    type: HandoffType
    priority: Priority
    payload: dict[str, Any]
    context: Context
    status: HandoffStatus = HandoffStatus.PENDING
    reason: str = ""
    """Why it was rejected (G9)."""

    @field_validator("message_id")
    @classmethod
    def _is_v4(cls, value: str) -> str:
        try:
            version = UUID(value).version
        except ValueError:
            version = None
        if version != 4:
            raise ValueError(f"message_id {value!r} is no UUID of version 4")
        return value

    @property
    def document(self) -> dict[str, Any]:
        """The message in the seed's format (D1)."""
        document = self.model_dump(mode="json", by_alias=True, exclude={"reason"})
        document["timestamp"] = iso_stamp(self.timestamp)
        return document | ({"reason": self.reason} if self.reason else {})

    @property
    def text(self) -> str:
        """The complete text for a person."""
        return json.dumps(self.document, indent=2, ensure_ascii=False)


class Lock(Value):
    """Who may change a resource, and until when (D25)."""

    agent: str
    acquired: datetime
    expires: datetime
    token: int
    """A fencing token, which a release or an extension needs (K10)."""
    forced_from: str = ""
    """The previous owner, if its lock had expired (D28)."""


class Made(Value):
    """The changes of one run to the repository (D34)."""

    agent: str
    run: int
    kind: Literal["spec", "code", "report"]
    files: tuple[str, ...]
    """The first of the changed paths."""
    count: int
    """The number of all changed paths."""

    @property
    def line(self) -> str:
        """On one line: the number and the paths."""
        more = ", …" if self.count > len(self.files) else ""
        return f"{self.kind}: {self.count} file{'s' * (self.count != 1)} ({', '.join(self.files)}{more})"


class Takeover(Value):
    """An expired lock that another agent took (D28)."""

    resource: str
    before: str
    after: str
    at: datetime


class EventRecord(Value):
    """One of the six events (D47)."""

    event: EventName
    agent: str
    timestamp: datetime
    workflow: Kind
    spec: str
    detail: str = ""

    @property
    def document(self) -> dict[str, Any]:
        """The event in the seed's format (D47)."""
        return {
            "event": self.event,
            "agent": self.agent,
            "timestamp": iso_stamp(self.timestamp),
            "context": {"workflow": self.workflow.value, "spec": self.spec},
        }


class Question(Value):
    """An open question to a person (D41-D43)."""

    id: str
    agent: str
    reason: str
    details: str
    options: tuple[str, ...] = ()
    context: str = ""
    blocking: bool
    at: datetime
    field: str = ""
    """The critical field whose write is held (D46)."""


class HeldWrite(Value):
    """A write to a critical field that waits for a person (D46, G10)."""

    question: str
    agent: str
    field: str
    value: Any


def changed(files: Sequence[str]) -> dict[str, Any]:
    """The paths that a run changed, as event fields."""
    within = sum(size <= MOST_CHARACTERS for size in accumulate(map(len, files)))
    return {"files": tuple(files[:within]), "file_count": len(files)}


class Metrics(Value):
    """Metrics of one workflow, computed from its events alone, so that they can be recomputed (D50-D52)."""

    seconds_by_agent: dict[str, float]
    """From each start to its completion, summed; a start without a completion does not count."""
    handoffs: int
    fix_iterations: int
    """How often the fixer completed."""
    escalated: bool


def measured(events: Sequence[EventRecord]) -> Metrics:
    began: dict[str, datetime] = {}
    seconds: dict[str, float] = defaultdict(float)
    for event in events:
        if event.event == "agent_started":
            began[event.agent] = event.timestamp
        elif event.event == "agent_completed" and event.agent in began:
            seconds[event.agent] += (event.timestamp - began.pop(event.agent)).total_seconds()
    names = [event.event for event in events]
    return Metrics(
        seconds_by_agent=dict(seconds),
        handoffs=names.count("handoff_created"),
        fix_iterations=sum((e.event, e.agent) == ("agent_completed", "fixer") for e in events),
        escalated="escalation_triggered" in names,
    )


def started_at(events: Sequence[EventRecord], agent: str) -> datetime | None:
    """When the agent's last run started."""
    began = (e.timestamp for e in reversed(events) if (e.event, e.agent) == ("agent_started", agent))
    return next(began, None)


class Escalations(NamedTuple):
    """Escalations in all workflows of a project (D52)."""

    workflows: int
    """The number of workflows."""
    escalated: int
    """The number of workflows that escalated at least once."""

    @property
    def rate(self) -> float:
        """From 0 to 1; 0 without workflows."""
        return self.escalated / self.workflows if self.workflows else 0.0
