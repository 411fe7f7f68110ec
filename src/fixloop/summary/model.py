"""The values of a report: the shape of `fixloop report --format json`.

Durations are seconds; times are aware UTC. Texts are as tools and agents wrote them, but nothing in them affects a
terminal, a browser or the direction of writing.
"""

import re
from datetime import datetime
from enum import StrEnum
from typing import Final

from pydantic import BaseModel, ConfigDict

from fixloop.machine.terminal_text import visible
from fixloop.protocol.checks import Evidence

#: A terminal's colours and cursor movements.
_SEQUENCES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def clean(text: str) -> str:
    """`text` without colours, with its own line breaks and tabs; all other hidden characters are shown."""
    return visible(_SEQUENCES.sub("", text))


def one_line(text: str, most: int = 300) -> str:
    line = " ".join(clean(text[: 4 * most]).split())
    return line if len(line) <= most and len(text) <= 4 * most else f"{line[: most - 1]}…"


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True)


class Standing(StrEnum):
    """The state of the workflow."""

    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    ABORTED = "aborted"
    CANCELLED = "cancelled"
    UNVERIFIED = "not verified"


class GateState(StrEnum):
    """The four states of a gate (U3)."""

    PASS = "pass"
    FAIL = "fail"
    PENDING = "pending"
    NOT_APPLICABLE = "N/A"


class Answer(_Value):
    """A command that continues a workflow that waits for somebody."""

    command: str
    does: str = ""
    because: str = ""
    """Why it is recommended; empty for all others."""


class Waiting(_Value):
    """What the workflow waits for, from a person or an agent that fixloop does not start."""

    what: str
    """`a decision`, `a fix by hand` or `a fix`."""
    since: datetime
    because: str = ""
    """The reason, or that no fixer is configured."""
    answers: tuple[Answer, ...] = ()
    output: str = ""
    """The last lines of output of what failed."""


class Gate(_Value):
    """One of the eleven gates (U3)."""

    name: str
    specialist: str
    state: GateState
    why: str
    """What decided it, or why nothing did."""


class Times(_Value):
    """The use of time; `total` is the sum of the others, `commands` a part of `checks`."""

    total: float = 0.0
    checks: float = 0.0
    """From the request for a run to its result."""
    agent: float = 0.0
    """Waiting for the main agent's fix."""
    person: float = 0.0
    """Waiting for a decision or a fix by hand."""
    away: float = 0.0
    """The engine was away, and no clock ran (K34)."""
    engine: float = 0.0
    """Between the steps."""
    commands: float = 0.0
    """The time of the checks' commands alone."""

    @property
    def around(self) -> float:
        """The rest of the checks' time: starting workers, creating workspaces, and runs on the base."""
        return max(self.checks - self.commands, 0.0)


class Totals(_Value):
    """Counted from the history, never copied (U18)."""

    iterations: int = 0
    specialists: int = 0
    """Specialists that ran."""
    fix_cycles: int = 0
    """Fixes of the main agent that were accepted."""
    manual_fixes: int = 0
    confirmations: int = 0
    escalations: int = 0
    decisions: int = 0
    reminders: int = 0
    errors: int = 0
    messages: int = 0
    files: int = 0


class Finding(_Value):
    """A failure in a report."""

    name: str
    location: str = ""
    error_type: str = ""
    """Empty if the headline begins with it."""
    headline: str = ""
    text: str = ""
    """The whole message, for current failures."""


class RunRow(_Value):
    """A run with a result (A93)."""

    specialist: str
    number: int
    max_iterations: int
    result: str
    """`passed`, `failed` or `could not run`."""
    at: datetime
    seconds: float
    count: int = 0
    findings: tuple[Finding, ...] = ()
    resolved: int = 0
    persisting: int = 0
    new: int = 0
    coverage: str = ""
    tree: str = ""
    fixes: tuple[str, ...] = ()
    """What was done about its failures."""
    from_confirmation: bool = False
    """It began as a confirmation and failed (K37)."""


class FixRow(_Value):
    """A fix that was accepted."""

    specialist: str
    iteration: int
    """The run it answers (K2)."""
    by: str
    at: datetime
    seconds: float
    """From the failure report, or from the escalation, to the fix."""
    summary: str = ""
    fixes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    said: str = ""
    """The end of the agent's output."""
    diff: str = ""
    further: int = 0
    """Lines of the diff that were cut off."""


class Confirmation(_Value):
    """One run on the final tree (K37)."""

    specialist: str
    result: str
    """`passed`, `failed` or `error`."""
    at: datetime
    seconds: float
    tree: str


class Phase(_Value):
    """One specialist's part."""

    name: str
    title: str
    applicable: bool
    status: str
    result: str
    """One or a few words: `passed`, `not reached`, `failed, skipped by a person` …"""
    iterations: int
    max_iterations: int
    history: tuple[int, ...] = ()
    """The failure count of each run."""
    times: Times = Times()
    runs: tuple[RunRow, ...] = ()
    fixes: tuple[FixRow, ...] = ()
    confirmations: tuple[Confirmation, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    """The evidence of its last pass."""
    coverage: str = ""
    known_issues: tuple[str, ...] = ()
    skipped_checks: tuple[str, ...] = ()
    pattern: str = ""
    """What the runs have in common (A94); empty if the last one passed."""


class OldRow(_Value):
    """The failures in one check's last run that the base has too, which need not be fixed."""

    specialist: str
    check: str
    base: str
    count: int
    by_name: tuple[tuple[str, int], ...] = ()
    """The most frequent rules or tests."""
    by_file: tuple[tuple[str, int], ...] = ()
    """The files with the most of them."""
    first: tuple[Finding, ...] = ()


class EscalationRow(_Value):
    """One pause, and a person's decision."""

    message_id: str
    specialist: str
    phase: str
    reason: str
    detail: str
    to: str
    at: datetime
    pattern: str = ""
    decision: str = ""
    """Empty while it is open."""
    by: str = ""
    because: str = ""
    decided_at: datetime | None = None
    waited_seconds: float = 0.0
    """Until the decision; until now while it is open."""


class ErrorRow(_Value):
    """A reminder, an error or a violation of the protocol, with its context (A91)."""

    kind: str
    message_id: str
    specialist: str
    iteration: int
    at: datetime
    summary: str
    output: str = ""
    """The last lines of a failed fixer's output."""


class AtWork(_Value):
    """Work that a party is expected to finish (A90)."""

    operation: str
    specialist: str
    iteration: int
    elapsed_seconds: float
    limit_seconds: float | None


class Bar(_Value):
    """A stretch of the timeline with one activity."""

    kind: str
    """`run`, `confirmation`, `fix`, `person` or `engine`."""
    specialist: str
    number: int
    """The run that it is, or that it answers."""
    result: str
    """Its result: `passed`, `failed`, `error`, `fixed`, `rejected`, `unfinished`, `running` …"""
    count: int = 0
    start: datetime
    end: datetime
    seconds: float
    """Engine time, without the time the engine was away."""
    away_seconds: float = 0.0


class Mark(_Value):
    """A moment of the timeline."""

    kind: str
    """`escalation`, `decision`, `reminder`, `error` or `violation`."""
    specialist: str
    at: datetime
    bar: int
    """The bar that contains it, or starts with it."""
    text: str


class Line(_Value):
    """One line of the conversation with its text (A85)."""

    number: int
    at: datetime
    sender: str
    recipient: str
    title: str
    message_id: str
    summary: str
    text: str
    further: int = 0
    """Characters that were cut off."""


class Summary(_Value):
    issue: int
    name: str
    title: str = ""
    """The commit's subject, if the feature was given no name."""
    branch: str = ""
    author: str = ""
    """The author of the last commit."""
    workflow: str
    project: str
    protocol_version: str
    standing: Standing
    sentence: str
    """The verdict or the current state, in one sentence."""
    verdict: str | None
    outcome: str | None
    status: str
    owner: str
    tree: str
    started_at: datetime
    as_of: datetime
    """The end of an ended workflow, else the time of the report."""
    ended: bool
    times: Times
    totals: Totals
    gates: tuple[Gate, ...]
    phases: tuple[Phase, ...]
    old: tuple[OldRow, ...] = ()
    escalations: tuple[EscalationRow, ...] = ()
    errors: tuple[ErrorRow, ...] = ()
    at_work: AtWork | None = None
    waiting: Waiting | None = None
    next_command: str = ""
    diff: str = ""
    """The changes of all fixes together; empty if there was one fix, or no change."""
    further: int = 0
    """Lines of it that were cut off."""
    marks: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    bars: tuple[Bar, ...] = ()
    moments: tuple[Mark, ...] = ()
    lines: tuple[Line, ...] = ()
