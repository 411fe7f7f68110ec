"""The events of a validation workflow: the only inputs of its decisions, in the past tense."""

from functools import partial
from typing import Final, Literal

from pydantic import Field

from fixloop.protocol.checks import Evidence, Finding, Unverified
from fixloop.protocol.declining import Kind
from fixloop.protocol.event import (
    BranchPushed as BranchPushed,
    DeadlineReached as DeadlineReached,
    Event as Event,
    EventRefused as EventRefused,
    PersonNotified as PersonNotified,
    WorkStarted,
    kinds_in,
    read_event,
)
from fixloop.protocol.failures import Failure
from fixloop.protocol.messages import Decision
from fixloop.protocol.state import Completion, Limits


class WorkflowStarted(WorkStarted):
    """A feature was handed in."""

    kind: Literal["workflow-started"] = "workflow-started"
    specialists: tuple[str, ...]
    """The applicable specialists."""
    unverified: tuple[Unverified, ...] = ()
    """Tools that were found and do not run."""
    limits: Limits = Limits()
    fixer: Literal["command", "outside"] = "outside"
    agent: str = ""
    acks: bool = False
    bundle_fix_request: bool = True
    tree: str = ""
    parent: str = ""
    """The ticket of the parent workflow; empty: a person or a program started it."""
    bundle: str = ""
    """Digest of the artifact that gives other machines `tip`, if that is not the snapshot."""
    trusted: str = ""
    """The commit whose tests and gates judge; empty: no integrity holds, as in older versions."""
    rules_off: tuple[str, ...] = ()
    """Integrity rules that this project has switched off; `all` for all of them."""


class RunFinished(Event):
    """A specialist's checks ran, or could not run."""

    kind: Literal["run-finished"] = "run-finished"
    step: Literal["validate", "recheck", "confirm"]
    specialist: str
    iteration: int
    attempt: int = 1
    outcome: Literal["passed", "failed", "error", "skipped"]
    tree: str
    failures: tuple[Failure, ...] = ()
    failures_artifact: str = ""
    """Digest of all failures in full, as a JSON list."""
    passed: tuple[str, ...] = ()
    """The names of owed tests that were seen passing (K7)."""
    lists_passes: tuple[str, ...] = ()
    """The checks whose report lists passed tests."""
    evidence: tuple[Evidence, ...] = ()
    skipped_checks: tuple[str, ...] = ()
    coverage: str = ""
    error: str = ""
    stack_trace: str = ""
    is_final: bool = False
    """The checks could not run, and a second try would end the same."""
    artifacts: tuple[str, ...] = ()
    """Digests of the reports and outputs, which are stored."""
    findings: tuple[Finding, ...] = ()
    """Why it is held although its checks passed."""
    environments: dict[str, str] = Field(default_factory=dict)
    """The environments that later runs have to find, as in the state."""
    renamed: dict[str, str] = Field(default_factory=dict)
    """Renamed tests that were recognised by their content, at most 100; `passed` has their old names."""
    cases: dict[str, str] = Field(default_factory=dict)
    """For each check whose report lists tests, the digest of the names that later runs have to show passing."""


class BaselineBegun(Event):
    """A failed check is now run on the feature's base, too."""

    kind: Literal["baseline-begun"] = "baseline-begun"
    specialist: str
    check: str
    base: str
    """The commit."""


class ReportDelivered(Event):
    """The channel took the failure report (G1)."""

    kind: Literal["report-delivered"] = "report-delivered"
    specialist: str
    iteration: int


class MessageStored(Event):
    """The outside agent's mailbox took a message (G1)."""

    kind: Literal["message-stored"] = "message-stored"
    message_id: str
    attempt: int = 1


class DeliveryFailed(Event):
    """The outside agent's mailbox could not be reached, or took nothing (A70)."""

    kind: Literal["delivery-failed"] = "delivery-failed"
    message_id: str
    attempt: int = 1
    error: str


class ReceiptGiven(Event):
    """A message that is no failure report was received (G1)."""

    kind: Literal["receipt-given"] = "receipt-given"
    uid: str
    message_id: str
    by: str


class FixAcknowledged(Event):
    """The main agent has the report: a receipt, or its command started (G1)."""

    kind: Literal["fix-acknowledged"] = "fix-acknowledged"
    specialist: str
    iteration: int
    by: str
    uid: str = ""
    """The message that was received; empty: the open report, whichever it is."""


class FixCompleted(Event):
    """The main agent says it is done (A31)."""

    kind: Literal["fix-completed"] = "fix-completed"
    specialist: str
    completion: Completion
    bundle: str = ""
    """Digest of the git bundle that gives other machines the commit; empty: nothing was changed."""
    artifacts: tuple[str, ...] = ()
    """Digests of the fixer's output and answer."""


class FixFailed(Event):
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
    """A retry cannot help."""


class AnswerRejected(Event):
    """The main agent's answer was invalid (A71)."""

    kind: Literal["answer-rejected"] = "answer-rejected"
    specialist: str
    iteration: int
    violations: tuple[str, ...]
    offending: str = ""
    """The beginning of the answer; all of it is an artifact."""
    artifacts: tuple[str, ...] = ()


class BlockerSignalled(Event):
    """The main agent says that it cannot continue (G8)."""

    kind: Literal["blocker-signalled"] = "blocker-signalled"
    by: str
    text: str
    artifacts: tuple[str, ...] = ()
    """Digests of a fixer's output and answer."""
    declined: Kind | None = None
    """The kind of refusal; None if there is only an explanation."""
    source: str = ""
    """The source of a test that is called wrong."""


class DecisionMade(Event):
    """A person answered the escalation (A13)."""

    kind: Literal["decision-made"] = "decision-made"
    decision: Decision
    escalation: str = ""
    """The report it answers, so that a repetition cannot hit a later one. Empty: the open one."""
    by: str = "User"
    reason: str = ""
    iterations: int | None = None
    minutes: float | None = None
    until: str = ""
    """skip: the last day it is valid, `YYYY-MM-DD`; empty: no end."""
    owner: str = ""
    """Who is responsible for what was skipped; empty: who decided."""
    tip: str = ""
    tree: str = ""
    configuration: str = ""
    specialists: tuple[str, ...] = ()
    """Re-read with a manual fix after a specialist error; empty if nothing was re-read."""
    unverified: tuple[Unverified, ...] = ()
    limits: Limits | None = None
    bundle: str = ""
    """As in a fix completion."""


class ManualFixDone(Event):
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
    """The digest of the person's answer."""
    diff: str = ""
    diff_artifact: str = ""
    """As in a completion."""


class Cancelled(Event):
    """The workflow was stopped, with no decision and no verdict on the work (K20)."""

    kind: Literal["cancelled"] = "cancelled"
    by: str = "User"
    reason: str = ""


class Paused(Event):
    """A person paused the workflow; no escalation, and nothing to decide."""

    kind: Literal["paused"] = "paused"
    by: str = "User"
    reason: str = ""


class Continued(Event):
    """A person continued the workflow."""

    kind: Literal["continued"] = "continued"
    by: str = "User"


class ResultNoted(Event):
    """The result of another CI for a commit; it decides nothing."""

    kind: Literal["result-noted"] = "result-noted"
    by: str
    """The source that signed it."""
    name: str
    commit: str
    conclusion: str
    url: str = ""


KINDS: Final = kinds_in(vars())
event_from_json: Final = partial(read_event, KINDS)
"""Read an event back from a history entry."""
