"""What a handoff workflow keeps: handoffs, locks, the six events, questions to a person (D1, D14, D25, D41, D47)."""

import json
from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, field_validator

from fixloop.profiles.handoff.routes import HandoffStatus, HandoffType, Kind, Priority
from fixloop.protocol.durations import iso_stamp

EventName = Literal[
    "agent_started",
    "agent_completed",
    "handoff_created",
    "handoff_accepted",
    "error_occurred",
    "escalation_triggered",
]

MOST_CHARACTERS: Final = 3000
"""Of the paths of one run: every snapshot of the workflow carries them."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class Context(_Record):
    """What a message is about (D3)."""

    workflow: Kind
    spec: str
    iteration: Annotated[int, Field(ge=1)]


class Message(_Record):
    """One message with the seed's envelope; a handoff, or what goes to the orchestrator (D1)."""

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
        """As the seed writes it (D1)."""
        document = self.model_dump(mode="json", by_alias=True, exclude={"reason"})
        document["timestamp"] = iso_stamp(self.timestamp)
        return document | ({"reason": self.reason} if self.reason else {})

    @property
    def text(self) -> str:
        """In full, as a person reads it."""
        return json.dumps(self.document, indent=2, ensure_ascii=False)


class Lock(_Record):
    """Who may change a resource, and until when (D25)."""

    agent: str
    acquired: datetime
    expires: datetime
    token: int
    """A fencing token: a release or an extension needs it (K10)."""
    forced_from: str = ""
    """Whose expired lock this one replaced (D28)."""


class Made(_Record):
    """What one run of an agent left in the repository (D34)."""

    agent: str
    run: int
    kind: Literal["spec", "code", "report"]
    files: tuple[str, ...]
    """The first of the paths that it changed."""
    count: int
    """How many there are in all."""

    @property
    def line(self) -> str:
        """On one line: how many, and which."""
        more = ", …" if self.count > len(self.files) else ""
        return f"{self.kind}: {self.count} file{'s' * (self.count != 1)} ({', '.join(self.files)}{more})"


class Takeover(_Record):
    """An expired lock that somebody else took (D28)."""

    resource: str
    before: str
    after: str
    at: datetime


class EventRecord(_Record):
    """One of the six events (D47)."""

    event: EventName
    agent: str
    timestamp: datetime
    workflow: Kind
    spec: str
    detail: str = ""

    @property
    def document(self) -> dict[str, Any]:
        """As the seed writes it (D47)."""
        return {
            "event": self.event,
            "agent": self.agent,
            "timestamp": iso_stamp(self.timestamp),
            "context": {"workflow": self.workflow.value, "spec": self.spec},
        }


class Question(_Record):
    """What waits for a person (D41-D43)."""

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


class HeldWrite(_Record):
    """A write to critical state that waits for a person (D46, G10)."""

    question: str
    agent: str
    field: str
    value: Any


def changed(files: Sequence[str]) -> dict[str, Any]:
    """The paths that a run changed, as the events of its end carry them."""
    within = sum(size <= MOST_CHARACTERS for size in accumulate(map(len, files)))
    return {"files": tuple(files[:within]), "file_count": len(files)}
