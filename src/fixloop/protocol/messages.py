"""Messages between agents: the envelope, and one body for each message type (A15-A48, A59, A74).

A body holds facts; the templates add the words. Bodies are values: JSON in, JSON out. A message with an empty header or
required section is refused before it is sent (A21).
"""

from enum import StrEnum
from math import ceil, floor
from typing import Annotated, Final, Literal, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from fixloop.protocol.checks import Finding
from fixloop.protocol.event import Value
from fixloop.protocol.failures import Comparison, Failure, Severity
from fixloop.protocol.specialists import Status
from fixloop.protocol.ticket import Priority

ORCHESTRATOR: Final = "@validation-orchestrator"
MAIN_AGENT: Final = "@feature-implementer-main"
USER: Final = "User"


def priority_of(severity: Severity | None) -> Priority:
    """The priority of a failure report (K13): critical and high are High, none is High."""
    return Priority(severity) if severity in (Severity.MEDIUM, Severity.LOW) else Priority.HIGH


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
    INTEGRITY_HOLD = "integrity_hold"

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
            Reason.UNRESPONSIVE: "No fix was made",
        }.get(self, self.value.replace("_", " ").capitalize())

    @property
    def target(self) -> str:
        """The recipient of the escalation (K27)."""
        to_orchestrator = (Reason.SPECIALIST_ERROR, Reason.COMMUNICATION_ERROR, Reason.INVALID_RESPONSE)
        return MAIN_AGENT if self in to_orchestrator else USER

    @property
    def decisions(self) -> "tuple[Decision, ...]":
        """The decisions that can answer it: the usual four, and for a hold first its own two."""
        return (*ON_A_HOLD, *FOUR) if self is Reason.INTEGRITY_HOLD else FOUR


class Decision(StrEnum):
    """The four answers to an escalation (A13), and the two that only an integrity hold has."""

    MANUAL_FIX = "manual-fix"
    SKIP = "skip"
    ABORT = "abort"
    EXTEND = "extend"
    ACCEPT = "accept"
    REJECT = "reject"

    @property
    def option(self) -> str:
        """`Option 1: User Manual Fix`, as reports number them (B51)."""
        return {
            "manual-fix": "Option 1: User Manual Fix",
            "skip": "Option 2: Skip Validation",
            "abort": "Option 3: Abort Feature",
            "extend": "Option 4: Extend Max Iterations",
            "accept": "Option 5: Accept the Changes",
            "reject": "Option 6: Reject the Changes",
        }[self.value]


FOUR: Final = (Decision.MANUAL_FIX, Decision.SKIP, Decision.ABORT, Decision.EXTEND)
ON_A_HOLD: Final = (Decision.ACCEPT, Decision.REJECT)


class ErrorType(StrEnum):
    """The four error types (A70-A74), by their slugs in ids (G6)."""

    COMMUNICATION = "communication"
    INVALID_RESPONSE = "invalid-response"
    SPECIALIST_FAILURE = "specialist-failure"
    UNRESPONSIVE = "unresponsive"

    @property
    def label(self) -> str:
        return self.value.replace("-", " ").title()


# A thousandth compensates for rounding of clock differences: 300 s must not be shown as 299.
Seconds = Annotated[
    float, Field(allow_inf_nan=False), AfterValidator(lambda seconds: float(max(0, floor(seconds + 0.001))))
]
"""A duration in messages, in whole seconds, so that a reader gets back what `MM:SS` shows (A22, G5)."""
Lateness = Annotated[
    float, Field(allow_inf_nan=False), AfterValidator(lambda seconds: float(max(0, ceil(seconds - 0.001))))
]
"""A duration that exceeds its limit, rounded up so that the excess is visible (A58)."""
Text = Annotated[str, Field(min_length=1)]
"""A required section or header field, which must not be empty (A21)."""


class FailureDetected(Value):
    """The specialist's first report to the orchestrator (G3, B5)."""

    kind: Literal["failure-detected"] = "failure-detected"
    phase: Text
    statement: Text
    """Short, such as `3 failures`."""
    details: tuple[str, ...] = Field(min_length=1)
    """`test id - error type` each."""
    coverage: str = ""
    """`73.2% (target: ≥80%)`; empty if none was measured."""


class FailureReport(Value):
    """VFR: exactly what failed (A23-A26, B19-B25)."""

    kind: Literal["failure-report"] = "failure-report"
    feature: str
    phase: Text
    specialist_handle: Text
    failure_type: Text
    severity: Severity
    next_phase: Text
    failures: tuple[Failure, ...] = Field(min_length=1)
    """One per group of failures with the same error at the same place, largest group first."""
    further: int = 0
    """Failures of groups that are not listed (K41); counts stay exact."""
    coverage: str = ""
    fix_limit_seconds: Seconds | None = None
    """The time limit for the fix (A56), the basis of the expected timeline; None: no limit."""
    reminder_window_seconds: Annotated[Seconds | None, Field(validate_default=True)] = 300.0
    """From the reminder to the escalation (A62); None: there is no automatic escalation, or no limit."""
    marks: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return sum(failure.alike for failure in self.failures) + self.further

    @field_validator("reminder_window_seconds")
    @classmethod
    def _without_a_limit(cls, window: float | None, info: ValidationInfo) -> float | None:
        return window if info.data.get("fix_limit_seconds") is not None else None


class FixItem(Value):
    """One thing to fix, with what is needed to begin (A28, B10)."""

    name: Text
    file: str = ""
    line: int | None = None
    error: str = ""
    """Error type and first line of the message; the failure report has all of it."""
    suggestion: str = ""
    priority: Severity = Severity.HIGH


# Older messages have one sentence for each item.
_Item = Annotated[
    FixItem, BeforeValidator(lambda value: FixItem(name=value) if isinstance(value, str) else value)
]


class Attempt(Value):
    """An earlier fix, and what came of it."""

    iteration: int
    """The run it answered."""
    fixes: tuple[str, ...] = ()
    said: str = ""
    """The agent's summary and the end of its output."""
    diff: str = ""
    """Its beginning."""
    resolved: int = Field(default=0, ge=0)
    left: int = Field(default=0, ge=0)
    new: tuple[str, ...] = ()
    """The first of the failures after it that were not there before."""
    new_count: int = Field(default=0, ge=0)


class FixRequest(Value):
    """FIXREQ: what to do (A27-A30); sent attached to its failure report (K9)."""

    kind: Literal["fix-request"] = "fix-request"
    goal: str = ""
    """The goal in one sentence; empty in older messages."""
    items: tuple[_Item, ...] = Field(min_length=1)
    """One per failure that the report lists (A7)."""
    further: int = 0
    """Failures beyond those listed (K41)."""
    commands: tuple[str, ...] = ()
    """The command lines of the checks that failed, to run in the working directory."""
    tried: tuple[Attempt, ...] = ()
    """Earlier fixes, oldest first."""
    older: int = Field(default=0, ge=0)
    """Findings older than the feature, which need not be fixed."""
    approach: tuple[str, ...] = ()
    expected: Text
    remaining_iterations: int


class FixCompletion(Value):
    """FIXDONE: what was done (A31-A34)."""

    kind: Literal["fix-completion"] = "fix-completion"
    specialist: Text
    summary: str = ""
    fixes: tuple[str, ...]
    files: tuple[str, ...]
    ready: bool = True
    duration_seconds: Seconds = 0.0
    """From the failure report to this completion (B33)."""
    marks: tuple[str, ...] = ()
    """Tests, gates or tool configuration the fix touched."""
    unchanged: tuple[str, ...] = ()
    """Files that the agent named and that did not change: `files` is the real change, not the agent's claim."""
    unnamed: tuple[str, ...] = ()
    """Files that changed and that the agent did not name."""


class RevalidationTrigger(Value):
    """REVAL: run the checks again (A35-A37, B36-B37)."""

    kind: Literal["revalidation-trigger"] = "revalidation-trigger"
    phase: Text
    confirms: bool = False
    """The phase has already passed, on a tree other than the final one (K37)."""
    previous_failures: tuple[str, ...]
    fixes: tuple[str, ...]


class RevalidationResult(Value):
    """REVALRES: passed or failed (A38-A41, B40-B43). Iteration 1 is titled Validation Result (G16)."""

    kind: Literal["revalidation-result"] = "revalidation-result"
    passed: bool
    failures: tuple[str, ...] = ()
    """One line each; required for FAIL, absent for PASS."""
    failure_count: int = 0
    """Exact, even if `failures` was shortened (K41)."""
    comparison: Comparison = Comparison()
    history: tuple[int, ...] = ()
    """The failure count of each run so far, including this one."""
    likely_cause: str = ""
    """The origin of new failures, as far as the runs show it."""
    escalates: Reason | None = None
    """Why the loop does not continue after this FAIL (B45)."""
    fix_seconds: Seconds = 0.0
    """The time spent on all fixes so far (B40)."""
    next_phase: str = ""
    coverage: str = ""
    evidence: tuple[str, ...] = ()
    """One line per check that ran."""
    marks: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        compared = self.comparison
        if self.passed and (self.failures or self.failure_count or compared.persisting or compared.new):
            raise ValueError("a PASS has no failures")
        if self.passed and (self.likely_cause or self.escalates):
            raise ValueError("a PASS has no cause of failures and does not escalate")
        if not self.passed and (not self.failures or self.failure_count < len(self.failures)):
            raise ValueError("a FAIL lists its failures, and counts no fewer than it lists")
        if not self.passed and self.next_phase:
            raise ValueError("a FAIL leads to no next phase")
        return self

    @property
    def progress(self) -> str:
        """`improved`, `regressed` or `no change`, by the number of failures."""
        gained = self.comparison.previous_count - self.failure_count
        return "no change" if gained == 0 else "improved" if gained > 0 else "regressed"


class Success(Value):
    """SUCCESS: the phase is done (A42-A43)."""

    kind: Literal["success"] = "success"
    phase: Text
    iterations: int
    history: tuple[int, ...] = ()
    total_seconds: Seconds
    next_phase: Text
    phases_done: int = 0
    phases_total: int = 0
    """The number of applicable phases; 0 in older messages."""
    marks: tuple[str, ...] = ()


class HistoryRow(Value):
    """One row of an escalation's iteration history (A47, B49)."""

    iteration: int
    failures: int
    fixes: str
    """Summary of the fixes made for this run's failures."""
    result: str = "FAIL"


class PersistentFailure(Value):
    """A failure that persisted to the end (B50)."""

    name: str
    file: str = ""
    line: int | None = None
    error: str = ""
    iterations: tuple[int, ...] = ()
    fixes: tuple[str, ...] = ()
    """`Iteration n: …` each."""
    why: str = ""


class Escalation(Value):
    """ESC: a person has to decide (A44-A48, B47-B52)."""

    kind: Literal["escalation"] = "escalation"
    feature: str
    phase: Text
    reason: Reason
    detail: str = ""
    flags: tuple[str, ...] = ()
    """`unresponsive` if the late party is the main agent (K12)."""
    iterations: int
    total_seconds: Seconds
    history: tuple[HistoryRow, ...] = ()
    pattern: str = ""
    persistent: tuple[PersistentFailure, ...] = ()
    persistent_count: int = 0
    recommended: Decision | None = None
    """The option that the runs suggest; a person may choose another."""
    rationale: str = ""
    """Why that option."""
    findings: tuple[Finding, ...] = ()
    """Of an integrity hold: why the passed run is no verdict."""
    source: str = ""
    """The source of a test that the main agent calls wrong."""

    @property
    def all_failed(self) -> bool:
        """Whether every run failed, so that none of them had passed before (A46, K37)."""
        return not self.findings and bool(self.history) and all(row.result == "FAIL" for row in self.history)

    def without(self, rule: str) -> str:
        """The verdict if this rule did not exist."""
        others = dict.fromkeys(found.rule for found in self.findings if found.rule != rule)
        return f"held all the same, by {', '.join(others)}" if others else "passed"


class TimeoutReminder(Value):
    """TIMEOUT: an operation is late (A59-A60)."""

    kind: Literal["timeout-reminder"] = "timeout-reminder"
    operation: Text
    elapsed_seconds: Lateness
    threshold_seconds: Seconds
    window_seconds: Seconds | None
    """The time until the escalation; None: there is no automatic one."""
    status: Status


class ErrorNotification(Value):
    """ERR: an operation failed (A74-A76)."""

    kind: Literal["error-notification"] = "error-notification"
    error_type: ErrorType
    operation: str = ""
    """The operation's name in G6."""
    agent: str = ""
    """The agent whose work it was (A91)."""
    regarding: str = ""
    """The message that the work answered (A91); empty if there was none."""
    context: Text
    """What was happening."""
    error: Text
    stack_trace: str = ""
    recovery: tuple[str, ...] = Field(min_length=1)
    recovered: bool


class ProtocolViolation(Value):
    """PVN: an answer was invalid (G2)."""

    kind: Literal["protocol-violation"] = "protocol-violation"
    offending: str
    violations: tuple[str, ...] = Field(min_length=1)
    expected: Text


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


class Message(Value):
    """One message with its envelope (A15, K3, K9)."""

    uid: str
    """A UUID derived from workflow and sequence, so that a replay gives the same."""
    message_id: Text
    sender: Text
    recipient: Text
    at: AwareDatetime
    priority: Priority
    issue: int
    specialist: str
    iteration: int
    max_iterations: int
    number: int = 0
    """The line's number in its workflow (A78); 0 if it is attached to another message."""
    summary: str
    status_before: Status
    status_after: Status
    body: Body
    attached: "Message | None" = None

    @field_validator("attached")
    @classmethod
    def _one_deep(cls, attached: "Message | None") -> "Message | None":
        if attached is not None and attached.attached is not None:
            raise ValueError("what is attached has nothing attached itself (K9)")
        return attached

    @property
    def entry_id(self) -> str:
        """`LOG-{issue}-{iteration}-{number}` (A77)."""
        return f"LOG-{self.issue}-{self.iteration}-{self.number}"
