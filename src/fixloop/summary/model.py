"""What a report says, as values: the shape of `fixloop report --format json`.

Durations are seconds; times are aware UTC. Texts are as tools and agents wrote them, but nothing in them acts on a
terminal, a browser or the order of letters.
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
    """How far the workflow is."""

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
    """A command that goes on from where somebody is waited for."""

    command: str
    does: str = ""
    because: str = ""
    """Why it is the one to think of first; empty for all others."""


class Waiting(_Value):
    """What a person, or an agent that fixloop does not start, is waited for."""

    what: str
    """`a decision`, `a fix by hand` or `a fix`."""
    since: datetime
    because: str = ""
    """The reason, or that no fixer is configured."""
    answers: tuple[Answer, ...] = ()
    output: str = ""
    """The last lines of what failed."""


class Gate(_Value):
    """One of the eleven gates (U3)."""

    name: str
    specialist: str
    state: GateState
    why: str
    """What decided it, or why nothing did."""


class Times(_Value):
    """Where the time went; `total` is the sum of the others, `commands` a part of `checks`."""

    total: float = 0.0
    checks: float = 0.0
    """From asking for a run to its result."""
    agent: float = 0.0
    """Waiting for the main agent's fix."""
    person: float = 0.0
    """Waiting for a decision or a fix by hand."""
    away: float = 0.0
    """The engine was away, and no clock ran (K34)."""
    engine: float = 0.0
    """Between the steps."""
    commands: float = 0.0
    """What the checks' commands took by themselves."""

    @property
    def around(self) -> float:
        """The rest of the checks' time: starting workers, making workspaces, and what runs on the base."""
        return max(self.checks - self.commands, 0.0)


class Totals(_Value):
    """Counted from the history, never copied (U18)."""

    iterations: int = 0
    specialists: int = 0
    """Specialists that were invoked."""
    fix_cycles: int = 0
    """Fixes of the main agent that were taken."""
    manual_fixes: int = 0
    confirmations: int = 0
    escalations: int = 0
    decisions: int = 0
    reminders: int = 0
    errors: int = 0
    messages: int = 0
    files: int = 0


class Finding(_Value):
    """One failure as a report names it."""

    name: str
    location: str = ""
    error_type: str = ""
    """Empty where the headline begins with it."""
    headline: str = ""
    text: str = ""
    """The whole message, of failures that stand."""


class RunRow(_Value):
    """One run that came to a result (A93)."""

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
    """What was done in answer to it."""
    from_confirmation: bool = False
    """It began as a confirmation and failed (K37)."""


class FixRow(_Value):
    """One fix that was taken."""

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
    """The end of what the agent printed."""
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
    """What its last pass rests on."""
    coverage: str = ""
    known_issues: tuple[str, ...] = ()
    skipped_checks: tuple[str, ...] = ()
    pattern: str = ""
    """What the runs have in common (A94); empty where the last one passed."""


class OldRow(_Value):
    """The failures of one check's last run that the base has too; nobody is asked to fix them."""

    specialist: str
    check: str
    base: str
    count: int
    by_name: tuple[tuple[str, int], ...] = ()
    """The most frequent rules or tests."""
    by_file: tuple[tuple[str, int], ...] = ()
    """The files that have most of them."""
    first: tuple[Finding, ...] = ()


class EscalationRow(_Value):
    """One pause, and what a person decided."""

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
    """The last lines of a fixer that failed."""


class AtWork(_Value):
    """What somebody is expected to finish (A90)."""

    operation: str
    specialist: str
    iteration: int
    elapsed_seconds: float
    limit_seconds: float | None


class Bar(_Value):
    """A stretch of the timeline: one thing that somebody did."""

    kind: str
    """`run`, `confirmation`, `fix`, `person` or `engine`."""
    specialist: str
    number: int
    """The run it is, or answers."""
    result: str
    """How it ended: `passed`, `failed`, `error`, `fixed`, `rejected`, `unfinished`, `running` …"""
    count: int = 0
    start: datetime
    end: datetime
    seconds: float
    """Engine time: without what the engine was away."""
    away_seconds: float = 0.0


class Mark(_Value):
    """A moment of the timeline."""

    kind: str
    """`escalation`, `decision`, `reminder`, `error` or `violation`."""
    specialist: str
    at: datetime
    bar: int
    """The bar it lies in or at the start of."""
    text: str


class Line(_Value):
    """One line of the conversation with what was said (A85)."""

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
    """The commit's subject, where the feature was given no name."""
    branch: str = ""
    author: str = ""
    """Who wrote the last commit."""
    workflow: str
    project: str
    protocol_version: str
    standing: Standing
    sentence: str
    """The verdict or the present, in one sentence."""
    verdict: str | None
    outcome: str | None
    status: str
    owner: str
    tree: str
    started_at: datetime
    as_of: datetime
    """The end of an ended workflow, else when the report was made."""
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
    """What all fixes together changed; empty where one did it all, or nothing was changed."""
    further: int = 0
    """Lines of it that were cut off."""
    marks: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    bars: tuple[Bar, ...] = ()
    moments: tuple[Mark, ...] = ()
    lines: tuple[Line, ...] = ()
