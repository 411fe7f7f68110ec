"""What can happen to a validation workflow: the only inputs of its decisions, in the past tense."""

from typing import Annotated, Final, Literal

from pydantic import Field, TypeAdapter

from fixloop.protocol import event as envelope
from fixloop.protocol.checks import Evidence, Finding, Unverified
from fixloop.protocol.declining import Kind
from fixloop.protocol.event import BranchPushed as BranchPushed
from fixloop.protocol.event import DeadlineReached as DeadlineReached
from fixloop.protocol.event import EventRefused as EventRefused
from fixloop.protocol.event import PersonNotified as PersonNotified
from fixloop.protocol.failures import Failure
from fixloop.protocol.messages import Decision
from fixloop.protocol.state import Completion, Limits


class WorkflowStarted(envelope.WorkStarted):
    """A feature was handed in."""

    kind: Literal["workflow-started"] = "workflow-started"
    specialists: tuple[str, ...]
    """The applicable ones."""
    unverified: tuple[Unverified, ...] = ()
    """What was found and does not run."""
    limits: Limits = Limits()
    fixer: Literal["command", "outside"] = "outside"
    agent: str = ""
    acks: bool = False
    bundle_fix_request: bool = True
    tree: str = ""
    parent: str = ""
    """The ticket of another workflow whose work this is; empty: a person's or a program's own."""
    bundle: str = ""
    """Digest of what other machines need to have `tip`, where that is not the snapshot; an artifact."""
    trusted: str = ""
    """The commit whose tests and gates judge; empty: nothing is held, as before there were holds."""
    rules_off: tuple[str, ...] = ()
    """Rules of integrity that this project has switched off; `all` of them."""


class RunFinished(envelope.Event):
    """A specialist's checks were run, or could not be."""

    kind: Literal["run-finished"] = "run-finished"
    step: Literal["validate", "recheck", "confirm"]
    specialist: str
    iteration: int
    attempt: int = 1
    outcome: Literal["passed", "failed", "error", "skipped"]
    tree: str
    failures: tuple[Failure, ...] = ()
    failures_artifact: str = ""
    """Digest of all of them in full, as a JSON list."""
    passed: tuple[str, ...] = ()
    """Of the tests still owed, the names seen passing (K7)."""
    lists_passes: tuple[str, ...] = ()
    """The checks whose report lists what passed."""
    evidence: tuple[Evidence, ...] = ()
    skipped_checks: tuple[str, ...] = ()
    coverage: str = ""
    error: str = ""
    stack_trace: str = ""
    is_final: bool = False
    """What could not run would not run the second time either."""
    artifacts: tuple[str, ...] = ()
    """Digests of the reports and outputs it rests on, kept in the store."""
    findings: tuple[Finding, ...] = ()
    """Why it is held although its checks passed."""
    environments: dict[str, str] = Field(default_factory=dict)
    """What later runs have to find: as in the state."""
    renamed: dict[str, str] = Field(default_factory=dict)
    """Tests known again under another name by what they do, at most 100; `passed` has them by their old names."""
    cases: dict[str, str] = Field(default_factory=dict)
    """For each check whose report lists tests, the digest of the names that later runs have to show passing."""


class BaselineBegun(envelope.Event):
    """A check that failed is now run on the feature's base, too."""

    kind: Literal["baseline-begun"] = "baseline-begun"
    specialist: str
    check: str
    base: str
    """The commit."""


class ReportDelivered(envelope.Event):
    """The channel took the failure report (G1)."""

    kind: Literal["report-delivered"] = "report-delivered"
    specialist: str
    iteration: int


class MessageStored(envelope.Event):
    """The outside agent's mailbox took a message (G1)."""

    kind: Literal["message-stored"] = "message-stored"
    message_id: str
    attempt: int = 1


class DeliveryFailed(envelope.Event):
    """The outside agent's mailbox could not be reached, or took nothing (A70)."""

    kind: Literal["delivery-failed"] = "delivery-failed"
    message_id: str
    attempt: int = 1
    error: str


class ReceiptGiven(envelope.Event):
    """Somebody has a message that is no failure report (G1)."""

    kind: Literal["receipt-given"] = "receipt-given"
    uid: str
    message_id: str
    by: str


class FixAcknowledged(envelope.Event):
    """The main agent has the report: a receipt, or a command that started (G1)."""

    kind: Literal["fix-acknowledged"] = "fix-acknowledged"
    specialist: str
    iteration: int
    by: str
    uid: str = ""
    """The message it is a receipt of; empty: the open report, whichever that is."""


class FixCompleted(envelope.Event):
    """The main agent says it is done (A31)."""

    kind: Literal["fix-completed"] = "fix-completed"
    specialist: str
    completion: Completion
    bundle: str = ""
    """Digest of the git bundle that brings its commit to other machines; empty: nothing was changed."""
    artifacts: tuple[str, ...] = ()
    """Digests of what the fixer printed and answered."""


class FixFailed(envelope.Event):
    """The fixer command ended without a fix."""

    kind: Literal["fix-failed"] = "fix-failed"
    specialist: str
    iteration: int
    attempt: int
    error: str
    output_tail: str = ""
    undelivered: bool = False
    """It could not even be started: a communication error (A70)."""
    fatal: bool = False
    """Trying again cannot help."""


class AnswerRejected(envelope.Event):
    """The main agent's answer did not fit (A71)."""

    kind: Literal["answer-rejected"] = "answer-rejected"
    specialist: str
    iteration: int
    violations: tuple[str, ...]
    offending: str = ""
    """How it began; the whole is an artifact."""
    artifacts: tuple[str, ...] = ()


class BlockerSignalled(envelope.Event):
    """The main agent says it cannot go on (G8)."""

    kind: Literal["blocker-signalled"] = "blocker-signalled"
    by: str
    text: str
    artifacts: tuple[str, ...] = ()
    """Digests of what a fixer printed and answered."""
    declined: Kind | None = None
    """How they decline; None where they only say why."""
    source: str = ""
    """Of a test that is called wrong: what it says."""


class DecisionMade(envelope.Event):
    """A person answered the escalation (A13)."""

    kind: Literal["decision-made"] = "decision-made"
    decision: Decision
    escalation: str = ""
    """The report it answers; a repetition then cannot hit a later one. Empty: whichever is open."""
    by: str = "User"
    reason: str = ""
    iterations: int | None = None
    minutes: float | None = None
    until: str = ""
    """skip: the last day that it is good for, `YYYY-MM-DD`; empty: it has none."""
    owner: str = ""
    """Who looks after what was skipped; empty: who decided."""
    tip: str = ""
    tree: str = ""
    configuration: str = ""
    specialists: tuple[str, ...] = ()
    """Re-read with a manual fix after a specialist error; empty where nothing was re-read."""
    unverified: tuple[Unverified, ...] = ()
    limits: Limits | None = None
    bundle: str = ""
    """As in a fix completion."""


class ManualFixDone(envelope.Event):
    """The person who chose manual-fix has finished (K20)."""

    kind: Literal["manual-fix-done"] = "manual-fix-done"
    by: str = "User"
    summary: str = ""
    files: tuple[str, ...] = ()
    tip: str
    tree: str
    marks: tuple[str, ...] = ()
    configuration: str = ""
    specialists: tuple[str, ...] = ()
    unverified: tuple[Unverified, ...] = ()
    limits: Limits | None = None
    bundle: str = ""
    """As in a fix completion."""
    artifacts: tuple[str, ...] = ()
    """The digest of the person's own answer."""
    diff: str = ""
    diff_artifact: str = ""
    """As in a completion."""


class Cancelled(envelope.Event):
    """Somebody stopped the workflow; no decision, no verdict on the work (K20)."""

    kind: Literal["cancelled"] = "cancelled"
    by: str = "User"
    reason: str = ""


class Paused(envelope.Event):
    """A person stopped the workflow for a while; no escalation, and nothing to decide."""

    kind: Literal["paused"] = "paused"
    by: str = "User"
    reason: str = ""


class Continued(envelope.Event):
    """The person let it go on."""

    kind: Literal["continued"] = "continued"
    by: str = "User"


class ResultNoted(envelope.Event):
    """What a CI elsewhere says of a commit; it decides nothing."""

    kind: Literal["result-noted"] = "result-noted"
    by: str
    """The source that has signed it."""
    name: str
    commit: str
    conclusion: str
    url: str = ""


Event = Annotated[
    WorkflowStarted
    | RunFinished
    | BaselineBegun
    | ReportDelivered
    | MessageStored
    | DeliveryFailed
    | ReceiptGiven
    | FixAcknowledged
    | FixCompleted
    | FixFailed
    | AnswerRejected
    | BlockerSignalled
    | DeadlineReached
    | DecisionMade
    | ManualFixDone
    | PersonNotified
    | BranchPushed
    | ResultNoted
    | Cancelled
    | Paused
    | Continued
    | EventRefused,
    Field(discriminator="kind"),
]

event_from_json: Final = TypeAdapter[Event](Event).validate_json
"""Read an event back from a history entry."""
