"""The records of a cycle: documents and versions, feedback, blockers, decisions, conflicts (C16, C27-C33, U10-U12).

Versions are `X.Y.Z`, compared as numbers.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal, NamedTuple

from fixloop.errors import UsageError
from fixloop.protocol.event import Value

_FORM: Final = re.compile(r"v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})", re.ASCII)
EscalationReason = Literal[
    "max_iterations",
    "timeout",
    "blocker",
    "invalid_response",
    "retries_exhausted",
    "fatal_error",
    "communication_error",
]
"""The codes of K12 that a cycle uses."""


class CycleStatus(StrEnum):
    """The status of a cycle (U10); `failed` is an end without success."""

    CREATED = "created"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"


class AgentStatus(StrEnum):
    """The status of an agent; `waiting`: blocked, or between a failed validation and its repetition (G22)."""

    IDLE = "idle"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"


class ResultStatus(StrEnum):
    """The status in a PHASE_RESULT (C33); `partial` keeps dependent agents blocked (G27)."""

    SUCCESS = "success"
    FAILED = "failed"
    PARTIAL = "partial"


class BlockerStatus(StrEnum):
    """The status of a blocker (C28, U11)."""

    OPEN = "open"
    RESOLVED = "resolved"
    WORKAROUND = "workaround"


class DecisionStatus(StrEnum):
    """The status of a question that needed a decision (U11)."""

    PENDING = "pending"
    MADE = "made"
    IMPLEMENTED = "implemented"


class TaskStatus(StrEnum):
    """The status of a task in the plan (U11)."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    BLOCKED = "blocked"


class Severity(StrEnum):
    """The severity of an issue in a result (G23): only blockers re-open work."""

    BLOCKER = "blocker"
    MAJOR = "major"
    MINOR = "minor"


class ConflictKind(StrEnum):
    """The three kinds that a cycle resolves by itself, and the one that a person has to (C52-C54, C57)."""

    UNCLEAR_REQUIREMENT = "unclear-requirement"
    TEST_FAILURE = "test-failure"
    PLAN_MISMATCH = "plan-mismatch"
    OTHER = "other"


class InputKind(StrEnum):
    """The kinds of `send_input` (K15)."""

    READY = "ready"
    CLARIFICATION = "clarification"
    FEEDBACK = "feedback"
    CONVERGENCE = "convergence"
    """The only request to converge, sent when a run is late (G15)."""


class Document(Value):
    """One issue of a main document."""

    agent: str
    name: str
    version: str
    digest: str
    at: datetime
    iteration: int
    restamped: bool = False
    """Reissued because an iteration started; its agent has not written it since (K11)."""


class LogPart(Value):
    """Bytes appended to a log: an agent's as an artifact, the orchestrator's as text."""

    agent: str
    name: str
    digest: str = ""
    text: str = ""


class FieldValue(Value):
    """A value of a state field since `at`; the last one of a name is the current value (C9)."""

    name: str
    agent: str
    value: str | tuple[str, ...]
    at: datetime
    iteration: int


class FeedbackEntry(Value):
    """A failed validation, or a request because of it (C47, U11)."""

    at: datetime
    source: str
    target: str
    content: str
    type: Literal["requirement_update", "bug_report", "issue_fix", "clarification"]
    iteration: int
    blocking: bool = True


class Blocker(Value):
    """An obstacle that blocks an agent (C28, U11)."""

    id: str
    at: datetime
    description: str
    reported_by: str
    kind: ConflictKind
    status: BlockerStatus = BlockerStatus.OPEN
    resolution: str = ""
    resolved_at: datetime | None = None
    before: tuple[str, ...] | None = None
    """The content of the resolver's documents and plan when it was asked; None: unknown, or no agent was asked."""

    @property
    def blocked(self) -> bool:
        """False for an issue that came with a success."""
        return self.status is not BlockerStatus.WORKAROUND or self.resolved_at is not None


class DecisionRecord(Value):
    """A decision, who made it and why (C27, C65)."""

    id: str
    at: datetime
    made_by: str
    description: str
    chosen_option: str
    rationale: str
    impact: str
    options: tuple[str, ...] = ()
    status: DecisionStatus = DecisionStatus.MADE


class Conflict(Value):
    """A conflict, with the steps taken in its flow (C52-C55)."""

    id: str
    kind: ConflictKind
    reporter: str
    description: str
    steps: tuple[str, ...] = ()
    resolution: str = ""


class TimelineEntry(Value):
    """One line of the coordination log's timeline (C26)."""

    at: datetime
    actor: str
    text: str


class SentInput(Value):
    """A `send_input` that was sent: one per kind, recipient and occasion (C22, K15)."""

    kind: InputKind
    recipient: str
    occasion: str


class IterationRecord(Value):
    """One round (U11)."""

    number: int
    version: str
    started_at: datetime
    completed_at: datetime | None = None
    issues_found: tuple[str, ...] = ()
    blocking: tuple[str, ...] = ()
    """The failures that re-open work."""


class OpenEscalation(Value):
    """An open question to a person (C57)."""

    id: str
    reason: EscalationReason
    detail: str
    agents: tuple[str, ...]
    """The agents that are stopped until the decision; all others continue (S22)."""
    blockers: tuple[str, ...] = ()
    at: datetime


class Version(NamedTuple):
    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


def version_of(text: str) -> Version:
    """A version from a document, with or without a leading `v`. UsageError: it is malformed."""
    found = _FORM.fullmatch(text.strip())
    if not found:
        raise UsageError(f"{text!r} is no version; it is written 1.0.0 or v1.0.0")
    return Version(*map(int, found.groups()))


def iteration_version(iteration: int, present: Iterable[Version] = ()) -> Version:
    """The version of all main documents at the start of an iteration: never lower than an existing one (K11)."""
    return max((Version(1, iteration - 1, 0), *present))


def next_revision(base: Version, present: Version) -> Version:
    """A further revision within an iteration that started at `base`: the next minor, then patches (K11)."""
    if present[:2] == base[:2]:
        return Version(base.major, base.minor + 1, 0)
    return present._replace(patch=present.patch + 1)


def check_together(base: Version, version: Version) -> None:
    """Refuse (UsageError) a document more than one minor ahead of its iteration's base, or behind it (K11)."""
    if version < base or version[:2] > (base.major, base.minor + 1):
        raise UsageError(f"a document has version {version} in an iteration that began at {base}")


def archive_name(document: str, version: Version) -> str:
    """`requirements-v1.0.0.md` for `requirements.md` (U12)."""
    stem, dot, suffix = document.rpartition(".")
    return f"{stem}-v{version}.{suffix}" if dot else f"{document}-v{version}"
