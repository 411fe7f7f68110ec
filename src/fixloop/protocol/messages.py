"""What one agent says to another: the envelope and one body for each message type (A15-A48, A59, A74).

A body holds facts; the words around them are the templates'. Bodies are values: JSON in, JSON out.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from fixloop.protocol.failures import Comparison, Failure, Severity
from fixloop.protocol.statuses import Status

__all__ = [
    "MAIN_AGENT",
    "ORCHESTRATOR",
    "USER",
    "Body",
    "Decision",
    "ErrorNotification",
    "ErrorType",
    "Escalation",
    "FailureDetected",
    "FailureReport",
    "FixCompletion",
    "FixRequest",
    "HistoryRow",
    "Message",
    "PersistentFailure",
    "Priority",
    "ProtocolViolation",
    "Reason",
    "RevalidationResult",
    "RevalidationTrigger",
    "Success",
    "TimeoutReminder",
    "priority_of",
]

ORCHESTRATOR: Final = "@validation-orchestrator"
MAIN_AGENT: Final = "@feature-implementer-main"
USER: Final = "User"


class Priority(StrEnum):
    """How urgent a message is (A17, K13)."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def broker(self) -> int:
        """kombu's Redis transport pops step 0 first, so the smallest number is the most urgent (K13)."""
        return {"critical": 0, "high": 3, "medium": 6, "low": 9}[self.value]


def priority_of(severity: Severity | None) -> Priority:
    """The priority of a failure report (K13): critical and high are High, none is High."""
    if severity in (Severity.MEDIUM, Severity.LOW):
        return Priority(severity)
    return Priority.HIGH


class Reason(StrEnum):
    """Why a workflow was escalated (K12)."""

    MAX_ITERATIONS = "max_iterations"
    TIMEOUT = "timeout"
    DEADLOCK = "deadlock"
    SPECIALIST_ERROR = "specialist_error"
    COMMUNICATION_ERROR = "communication_error"
    INVALID_RESPONSE = "invalid_response"
    UNRESPONSIVE = "unresponsive"
    BLOCKER = "blocker"

    @property
    def label(self) -> str:
        """The reason as reports show it (A46, B47)."""
        return {
            Reason.MAX_ITERATIONS: "Max Iterations Exceeded",
            Reason.TIMEOUT: "Timeout",
            Reason.DEADLOCK: "Deadlock",
        }.get(self, "Other")

    @property
    def text(self) -> str:
        """The condition's own words (A65-A68), else the code."""
        return {
            Reason.MAX_ITERATIONS: "Max iterations exceeded",
            Reason.TIMEOUT: "Timeout exceeded",
            Reason.DEADLOCK: "Deadlock - no progress",
            Reason.SPECIALIST_ERROR: "Specialist error",
        }.get(self, self.value.replace("_", " ").capitalize())

    @property
    def target(self) -> str:
        """Whom it goes to (K27)."""
        to_orchestrator = (Reason.SPECIALIST_ERROR, Reason.COMMUNICATION_ERROR, Reason.INVALID_RESPONSE)
        return MAIN_AGENT if self in to_orchestrator else USER


class Decision(StrEnum):
    """The four answers to an escalation (A13)."""

    MANUAL_FIX = "manual-fix"
    SKIP = "skip"
    ABORT = "abort"
    EXTEND = "extend"


class ErrorType(StrEnum):
    """The four error types (A70-A74), by their slugs in ids (G6)."""

    COMMUNICATION = "communication"
    INVALID_RESPONSE = "invalid-response"
    SPECIALIST_FAILURE = "specialist-failure"
    UNRESPONSIVE = "unresponsive"

    @property
    def label(self) -> str:
        return self.value.replace("-", " ").title()


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class FailureDetected(_Body):
    """The specialist's first report to the orchestrator (G3, B5)."""

    kind: Literal["failure-detected"] = "failure-detected"
    phase: str
    statement: str
    """Short, such as `3 failures`."""
    details: tuple[str, ...]
    """`test id - error type` each."""
    coverage: str = ""
    """`73.2% (target: ≥80%)`; empty where none was measured."""


class FailureReport(_Body):
    """VFR: exactly what failed (A23-A26, B19-B25)."""

    kind: Literal["failure-report"] = "failure-report"
    feature: str
    phase: str
    specialist_handle: str
    failure_type: str
    severity: Severity
    next_phase: str
    failures: tuple[Failure, ...]
    further: int = 0
    """Failures beyond those listed (K41); counts stay exact."""
    coverage: str = ""
    marks: tuple[str, ...] = ()


class FixRequest(_Body):
    """FIXREQ: what to do (A27-A30); sent attached to its failure report (K9)."""

    kind: Literal["fix-request"] = "fix-request"
    items: tuple[str, ...] = Field(min_length=1)
    """One actionable item each (A7)."""
    approach: tuple[str, ...] = ()
    expected: str
    remaining_iterations: int


class FixCompletion(_Body):
    """FIXDONE: what was done (A31-A34)."""

    kind: Literal["fix-completion"] = "fix-completion"
    specialist: str
    summary: str = ""
    fixes: tuple[str, ...]
    files: tuple[str, ...]
    ready: bool = True
    duration_seconds: float = 0.0
    """From the failure report to this completion (B33)."""
    marks: tuple[str, ...] = ()
    """Tests, gates or tool configuration the fix touched."""


class RevalidationTrigger(_Body):
    """REVAL: run the checks again (A35-A37, B36-B37)."""

    kind: Literal["revalidation-trigger"] = "revalidation-trigger"
    phase: str
    previous_failures: tuple[str, ...]
    fixes: tuple[str, ...]


class RevalidationResult(_Body):
    """REVALRES: passed or failed (A38-A41, B40-B43). Iteration 1 is titled Validation Result (G16)."""

    kind: Literal["revalidation-result"] = "revalidation-result"
    passed: bool
    failures: tuple[str, ...] = ()
    """One line each; required for FAIL, absent for PASS."""
    failure_count: int = 0
    comparison: Comparison = Comparison()
    history: tuple[int, ...] = ()
    """The failure count of each run so far, this one included."""
    next_phase: str = ""
    coverage: str = ""
    evidence: tuple[str, ...] = ()
    """One line for each check that ran."""
    marks: tuple[str, ...] = ()


class Success(_Body):
    """SUCCESS: the phase is done (A42-A43)."""

    kind: Literal["success"] = "success"
    phase: str
    iterations: int
    history: tuple[int, ...] = ()
    total_seconds: float
    next_phase: str
    marks: tuple[str, ...] = ()


class HistoryRow(_Body):
    """One row of an escalation's iteration history (A47, B49)."""

    iteration: int
    failures: int
    fixes: str
    """Summary of the fixes made in answer to this run's failures."""
    result: str = "FAIL"


class PersistentFailure(_Body):
    """A failure that stood to the end (B50)."""

    name: str
    file: str = ""
    line: int | None = None
    error: str = ""
    iterations: tuple[int, ...] = ()
    fixes: tuple[str, ...] = ()
    """`Iteration n: …` each."""
    why: str = ""


class Escalation(_Body):
    """ESC: a person has to decide (A44-A48, B47-B52)."""

    kind: Literal["escalation"] = "escalation"
    feature: str
    phase: str
    reason: Reason
    detail: str = ""
    flags: tuple[str, ...] = ()
    """`unresponsive` when the late party is the main agent (K12)."""
    iterations: int
    total_seconds: float
    history: tuple[HistoryRow, ...] = ()
    pattern: str = ""
    persistent: tuple[PersistentFailure, ...] = ()
    persistent_count: int = 0


class TimeoutReminder(_Body):
    """TIMEOUT: an operation is late (A59-A60)."""

    kind: Literal["timeout-reminder"] = "timeout-reminder"
    operation: str
    elapsed_seconds: float
    threshold_seconds: float
    window_seconds: float | None
    """Until the escalation; None: none follows by itself."""
    status: Status


class ErrorNotification(_Body):
    """ERR: something did not work as such (A74-A76)."""

    kind: Literal["error-notification"] = "error-notification"
    error_type: ErrorType
    context: str
    error: str
    stack_trace: str = ""
    recovery: tuple[str, ...]
    recovered: bool


class ProtocolViolation(_Body):
    """PVN: an answer did not fit (G2)."""

    kind: Literal["protocol-violation"] = "protocol-violation"
    offending: str
    violations: tuple[str, ...]
    expected: str


Body = Annotated[
    FailureDetected
    | FailureReport
    | FixRequest
    | FixCompletion
    | RevalidationTrigger
    | RevalidationResult
    | Success
    | Escalation
    | TimeoutReminder
    | ErrorNotification
    | ProtocolViolation,
    Field(discriminator="kind"),
]


class Message(BaseModel):
    """One message with its envelope (A15, K3, K9)."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    uid: str
    """A UUID derived from workflow and sequence, so that a replay gives the same."""
    message_id: str
    sender: str
    recipient: str
    at: datetime
    priority: Priority
    issue: int
    specialist: str
    iteration: int
    max_iterations: int
    number: int = 0
    """Running number of the line in its workflow (A78); 0 when it is attached to another message."""
    summary: str
    status_before: Status
    status_after: Status
    body: Body
    attached: "Message | None" = None

    @property
    def entry_id(self) -> str:
        """`LOG-{issue}-{iteration}-{number}` (A77)."""
        return f"LOG-{self.issue}-{self.iteration}-{self.number}"
