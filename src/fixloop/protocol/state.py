"""The state of a validation workflow: everything a decision may depend on, complete in one snapshot.

`at` is wall time for people; `clock` is engine seconds, which stand still while the engine is away (K34). New fields
need a default, so that older snapshots still load.
"""

from datetime import datetime
from enum import StrEnum
from typing import Final, Literal

from pydantic import Field

from fixloop.protocol.checks import Evidence, Finding, Unverified
from fixloop.protocol.event import Value
from fixloop.protocol.failures import Failure, FailureRef, Severity
from fixloop.protocol.messages import Decision, ErrorType, Reason
from fixloop.protocol.specialists import SPECIALISTS, Status

SCHEMA_VERSION: Final = 2
"""Raised with the first change of state, events, messages or tickets after a release. An older fixloop would drop
unknown fields, and so leaves workflows of a newer schema to newer ones (docs/decisions/0015)."""


class WorkflowOutcome(StrEnum):
    """How a workflow ended."""

    SUCCESS = "success"
    SKIPPED = "skipped"
    ABORTED = "aborted"
    CANCELLED = "cancelled"
    UNVERIFIED = "unverified"
    """Everything that ran has passed, but a test runner or a requested check did not run."""


class OperationName(StrEnum):
    """The operations that can be late (A56, G6)."""

    VALIDATION = "specialist-validation"
    FIX = "main-agent-fix"
    REVALIDATION = "re-validation"
    ITERATION = "total-iteration"

    @property
    def reminder_deadline(self) -> str:
        """The deadline that is set when the reminder is sent (K34)."""
        return f"{self.value}.escalation"


class Limits(Value):
    """All limits, windows and numbers of attempts; None switches one off (K6)."""

    validation_seconds: float | None = 1800.0
    """For specialists that are not in `specialist_seconds`."""
    revalidation_seconds: float | None = 1800.0
    """The same for later runs."""
    specialist_seconds: dict[str, float | None] = Field(default_factory=dict)
    """A specialist's own limit, for its first and all later runs."""
    fix_seconds: float | None = 1800.0
    iteration_seconds: float | None = 1800.0
    reminder_seconds: float | None = None
    """When the reminder is sent, if before the limit; None: at the limit (K29)."""
    reminder_window_seconds: float | None = 300.0
    """From the reminder to the escalation; None: no escalation follows."""
    deadlock_window: int | None = 3
    extra_iterations: int = 3
    extend_minutes: float = 30.0
    specialist_attempts: int = 2
    fix_attempts: int = 3
    answer_attempts: int = 2
    confirm_rounds: int = 3
    delivery_attempts: int = 3
    receipt_seconds: float | None = 60.0
    """For an outside agent that has to give receipts (A70, G1)."""
    backoff_seconds: float = 2.0
    backoff_cap_seconds: float = 60.0

    def of(self, operation: OperationName, specialist: str) -> float | None:
        """The limit of an operation in seconds, or None (A56)."""
        if operation is OperationName.FIX:
            return self.fix_seconds
        if operation is OperationName.ITERATION:
            return self.iteration_seconds
        first = operation is OperationName.VALIDATION
        general = self.validation_seconds if first else self.revalidation_seconds
        return self.specialist_seconds.get(specialist, general)

    def reminds_after(self, limit_seconds: float) -> float:
        """Seconds from the start of an operation with this limit to its reminder (K29)."""
        return limit_seconds if self.reminder_seconds is None else min(self.reminder_seconds, limit_seconds)

    def backoff(self, attempt: int) -> float:
        """Seconds before attempt `attempt` (2, 3 …): min(cap, base * 2**(attempt - 2)) (G19)."""
        return min(self.backoff_cap_seconds, self.backoff_seconds * 2.0 ** (attempt - 2))


_NO_OTHER_LIMITS: Final = Limits()


class Receipt(Value):
    """Confirms that a message was received (G1)."""

    uid: str
    message_id: str
    by: str
    at: datetime


class Delivery(Value):
    """The delivery of the open failure report to the main agent (A5)."""

    uid: str
    message_id: str
    attempt: int = 1
    receipt_due: float | None = None
    """The deadline for its receipt, in engine seconds; an earlier deadline that fires is ignored (R6)."""


class Run(Value):
    """One run of a specialist that ended PASS or FAIL."""

    number: int
    passed: bool
    tree: str
    count: int = 0
    """The number of failures; exact, even if `failures` was shortened."""
    failures: tuple[FailureRef, ...] = ()
    coverage: str = ""
    at: datetime
    fixes: tuple[str, ...] = ()
    """What was done about this run's failures."""
    fix_seconds: float = 0.0
    """How long the fixes took, from the failure report on (B33, B40)."""
    diff: str = ""
    """The change, as a diff of at most 3,000 characters."""
    diff_artifacts: tuple[str, ...] = ()
    """Digests of the complete diffs, one for each fix that changed something."""
    said: str = ""
    """The agent's summary and the end of its output."""
    could_not_run: bool = False
    receipt: Receipt | None = None
    """When and by whom the report of this run's failures was received (A5)."""


class PendingError(Value):
    """An error whose recovery is still in progress (A74-A76)."""

    error_type: ErrorType
    context: str
    error: str
    stack_trace: str = ""
    attempts: int = 1
    recovery: tuple[str, ...] = ()


class SpecialistState(Value):
    """One specialist's own loop (B15)."""

    name: str
    applicable: bool = True
    status: Status = Status.PENDING
    iteration: int = 0
    """The current run, or the last one (K2)."""
    max_iterations: int = 5
    runs: tuple[Run, ...] = ()
    started_clock: float | None = None
    """When its first run was requested."""
    window_start: int = 0
    """Runs up to this number do not count for a deadlock: an extension resets the window (K7)."""
    owed: tuple[FailureRef, ...] = ()
    """Failing tests that have not passed since (K7: a vanished test is not resolved)."""
    skipped: bool = False
    """A person let the workflow continue with its known failures."""
    known_issues: tuple[str, ...] = ()
    waiver: str = ""
    """The last day on which they are accepted, and who is responsible; empty: no end."""
    passed_tree: str = ""
    """The tree of its last PASS (K37)."""
    evidence: tuple[Evidence, ...] = ()
    skipped_checks: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """The command lines that reproduce the failed checks of its last run."""
    coverage_gate: float | None = None
    """The percentage its last run had to reach; None if no check measures coverage."""
    error: PendingError | None = None
    old: dict[str, int] = Field(default_factory=dict)
    """For each check of its last run: the number of failures that the base has too, which need not be fixed."""
    uncompared: dict[str, str] = Field(default_factory=dict)
    """Checks of which all failures count although only new ones should, each with the reason."""
    cases: dict[str, str] = Field(default_factory=dict)
    """For each check, the digest of the names of the passed tests: an artifact, a JSON list."""

    @property
    def last_run(self) -> Run | None:
        return self.runs[-1] if self.runs else None

    @property
    def has_passed(self) -> bool:
        """Whether its current run has passed, so that a further run only confirms it (K37)."""
        last = self.last_run
        return last is not None and last.passed and last.number == self.iteration

    @property
    def step(self) -> Literal["validate", "recheck", "confirm"]:
        """The step that a run of its checks would be now."""
        if self.has_passed:
            return "confirm"
        return "recheck" if self.runs else "validate"


class Operation(Value):
    """Work that a party is expected to finish (A90)."""

    name: OperationName
    specialist: str
    iteration: int
    started_clock: float | None = None
    """None until the work is claimed (K34)."""
    asked_at: datetime | None = None
    """When an outside party was asked, in wall time, which does not stand still."""
    limit_seconds: float | None = None
    reminded_clock: float | None = None
    """Set once: there is exactly one reminder (A61)."""
    escalates_clock: float | None = None
    """When the lack of an answer to the reminder is escalated; None: after the window."""


class Completion(Value):
    """A fix as it arrived."""

    iteration: int
    by: str
    summary: str = ""
    fixes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    tip: str = ""
    tree: str = ""
    marks: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    """Files that its answer names and that did not change; the first of them, and the number of the others."""
    unnamed: tuple[str, ...] = ()
    """Files that changed and that its answer does not name."""
    diff: str = ""
    """The change, as a diff of at most 3,000 characters."""
    diff_artifact: str = ""
    """Digest of the complete diff; empty: nothing was changed."""
    said: str = ""
    """The end of the agent's output, at most 1,000 characters."""


class OpenEscalation(Value):
    """The one escalation of a pause (A69)."""

    message_id: str
    reason: Reason
    target: str
    detail: str = ""
    interrupted: Status
    """The interrupted status; extend after a timeout restores it (K19)."""
    operation: OperationName | None = None
    """The late operation of a timeout."""
    at: datetime
    uid: str = ""
    receipt: Receipt | None = None
    decision: Decision | None = None
    """Only manual-fix stays open until the person reports that it is done (K20)."""
    findings: tuple[Finding, ...] = ()
    """Of an integrity hold: what a person has to judge."""


class Hold(Value):
    """A person's pause: no escalation, and nothing to decide."""

    by: str
    reason: str = ""
    at: datetime
    clock: float
    """The time at which the workflow's clocks stand."""
    events: tuple[str, ...] = ()
    """Events during the pause, as JSON; they are applied in order when the workflow continues."""


class State(Value):
    """One validation workflow."""

    schema_version: int = 1
    """The schema of the last writer; snapshots of version 1 do not have it."""
    protocol_version: str = "2.0.0"
    workflow: str
    profile: Literal["validation"] = "validation"
    project: str = ""
    issue: int
    name: str
    queue: str = ""
    """Empty for the shared queues, else the queue of the `run` that started it (`run-` and twelve hex digits)."""
    fixer: Literal["command", "outside"]
    agent: str = ""
    """The declared outside agent that fixes; its mailbox gets the messages to the main agent. Empty: none."""
    acks: bool = False
    """Whether that agent has to give receipts (G1)."""
    notify: bool = False
    parent: str = ""
    """The ticket of the parent workflow (bridging)."""
    push: bool = False
    """When everything has passed, push the branch with the fixes to the repository's URL."""
    pushed: str = ""
    """The branch's name there, once it is pushed."""
    push_error: str = ""
    """Why it was not pushed."""
    bundle_fix_request: bool = True
    """The fix request is attached to the failure report; otherwise it is a separate line (K9)."""
    # A plain default would be deep-copied for every snapshot that is loaded.
    limits: Limits = Field(default_factory=lambda: _NO_OTHER_LIMITS)
    configuration: str = ""
    """Digest of the frozen configuration, an artifact."""
    snapshot: str = ""
    """The snapshot's description as JSON: opaque here, used by the workers."""
    base: str = ""
    tip: str = ""
    """The commit that holds the work so far."""
    tree: str = ""
    """The hash of the tree that is judged next."""
    specialists: tuple[SpecialistState, ...] = tuple(
        SpecialistState(name=entry.name, applicable=False) for entry in SPECIALISTS
    )
    unverified: tuple[Unverified, ...] = ()
    """Tools that were found and do not run here."""
    current: str = ""
    """The active specialist."""
    paused: bool = False
    """By an escalation; a person's pause is `held`."""
    escalation: OpenEscalation | None = None
    held: Hold | None = None
    outcome: WorkflowOutcome | None = None
    ended_at: datetime | None = None
    started_at: datetime
    last_at: datetime
    """No later timestamp may be before it (K34)."""
    operation: Operation | None = None
    iteration_clock: float | None = None
    """When the running iteration's clock started (K6)."""
    iteration_due: float | None = None
    """When the running iteration's cap falls due; an earlier deadline that fires is ignored (R6)."""
    delivery: Delivery | None = None
    """Of the last failure report."""
    reported_clock: float | None = None
    """When the open failure report was sent: the start of a fix's duration (B33)."""
    failures: tuple[Failure, ...] = ()
    """One failure of each group in the last failed run, in full within the limits of K41."""
    failures_artifact: str = ""
    """Digest of all failures in full."""
    failure_count: int = 0
    lines: int = 0
    """The number of log lines so far; the next line's number is one more (A78)."""
    sequence: int = 0
    """The number of messages so far, including attached ones; message ids are derived from it."""
    stamped: tuple[str, ...] = ()
    """Time-stamped ids of the last second that had one (G4)."""
    epoch: int = 0
    attempts: int = 0
    """Fix attempts in this iteration (K5)."""
    answers: int = 0
    """Invalid answers in this iteration (G2)."""
    confirm_rounds: int = 0
    """Failed confirmations (K37)."""
    confirm_failed: tuple[str, ...] = ()
    escalate_on_failure: bool = False
    """After a manual fix, the next FAIL escalates at once (K20)."""
    kept: Completion | None = None
    """A completion that arrived during the pause, for the request that the pause interrupted."""
    marks: tuple[str, ...] = ()
    """Tests, gates or tool configuration that a fix touched."""
    trusted: str = ""
    """The commit whose tests, gates and runner files judge; accepting a hold advances it. Empty: there are no holds, as
    in workflows of older versions."""
    accepted: tuple[str, ...] = ()
    """Trees that a person has accepted unchanged."""
    rules_off: tuple[str, ...] = ()
    """Integrity rules that are switched off here."""
    decided: tuple[str, ...] = ()
    """Decisions of people, such as `accept by ann`, on which a verdict depends besides its evidence."""
    environments: dict[str, str] = Field(default_factory=dict)
    """For each machine, the digest of the listing of interpreter, packages and tools that its runs have to find."""

    def specialist(self, name: str) -> SpecialistState:
        # A plain loop: every decision calls this a dozen times.
        for entry in self.specialists:
            if entry.name == name:
                return entry
        raise LookupError(f"workflow {self.workflow} knows no specialist {name!r}")

    @property
    def active(self) -> SpecialistState:
        return self.specialist(self.current)

    @property
    def severity(self) -> Severity:
        """The highest severity of the open failures; High if there is none, or for a failure without severity (K13)."""
        found = {failure.priority for failure in self.failures}
        return next((severity for severity in Severity if severity in found), Severity.HIGH)

    @property
    def status(self) -> Status:
        """The derived status (K28): that of the first specialist that is not done, else COMPLETED."""
        for entry in self.specialists:
            if entry.applicable and entry.status is not Status.COMPLETED:
                return entry.status
        return Status.COMPLETED

    @property
    def ended(self) -> bool:
        return self.outcome is not None

    @property
    def until(self) -> datetime:
        """When it ended; for a live workflow, when something last happened."""
        return self.ended_at or self.last_at

    @property
    def patience_seconds(self) -> float | None:
        """How long the active party may take: the limit and the window after it; None: unlimited."""
        limit = self.operation.limit_seconds if self.operation is not None else None
        window = self.limits.reminder_window_seconds
        return limit + window if limit is not None and window is not None else None

    @property
    def owner(self) -> str:
        """Who has to act: `engine`, `agent` or `person`."""
        if self.paused or self.held is not None:
            return "person"
        return "agent" if self.awaits_fix else "engine"

    @property
    def awaits_fix(self) -> bool:
        """Whether the main agent has to answer an open request, paused or not."""
        return self.operation is not None and self.operation.name is OperationName.FIX and not self.ended

    @property
    def verdict(self) -> str | None:
        """None while running, then `passed`, `passed_with_known_issues`, `not_verified` or `not_passed`."""
        if self.outcome is None:
            return None
        if self.outcome is WorkflowOutcome.UNVERIFIED:
            return "not_verified"
        if self.outcome in (WorkflowOutcome.ABORTED, WorkflowOutcome.CANCELLED):
            return "not_passed"
        return "passed_with_known_issues" if any(s.skipped for s in self.specialists) else "passed"
