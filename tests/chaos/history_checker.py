"""Checks a recorded history, entry by entry: each is replayed and held to the protocol's rules."""

import json
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from fixloop.protocol import events as ev
from fixloop.protocol.event import Moment
from fixloop.protocol.messages import Decision, Escalation, Message, Reason
from fixloop.protocol.outcome import Outcome
from fixloop.protocol.rendering import render_whole
from fixloop.protocol.specialists import Status
from fixloop.protocol.state import Run, State, WorkflowOutcome
from fixloop.protocol.validation import decide
from fixloop.store.entries import digest_of
from fixloop.store.records import Entry
from tests.fixtures.memory_store import MemoryStore
from tests.parsing import parse
from tests.scenarios.invariants import check_outcome, check_said

LINES: Final = {
    "failure-detected",
    "failure-report",
    "fix-completion",
    "revalidation-trigger",
    "revalidation-result",
    "success",
    "escalation",
    "timeout-reminder",
    "error-notification",
    "protocol-violation",
}
"""What is a line of the log (K39); a fix request travels with its report."""


class HistoryChecker:
    """Reads one workflow's history as it grows."""

    def __init__(self, store: MemoryStore, workflow: str) -> None:
        self.state: State | None = None
        self.version = 0
        self.lines: list[Message] = []
        self.seen: Counter[str] = Counter()
        """Kinds of messages, reasons of escalations, decisions, outcomes, and reopened phases."""
        self._store = store
        self._workflow = workflow
        self._digest = ""
        self._at = datetime.min

    def look(self) -> State:
        """
        Check everything recorded since the last check; the present state.

        Raises:
            AssertionError: what was recorded breaks a rule, or a replay leads elsewhere (R4).
        """
        found = self._store.read(self._workflow)
        assert found is not None
        if found.version > self.version:
            for entry in self._store.history(self._workflow, self.version):
                self._see(entry)
            check_said(self.lines)
        assert found.version == self.version, "the history grew by other than its entries"
        assert digest_of(found.snapshot) == self._digest, "the snapshot is not what the history leads to"
        assert self.state is not None
        return self.state

    def _see(self, entry: Entry) -> None:
        before, body = self.state, entry.body
        event = ev.event_from_json(json.dumps(body["event"]))
        over = before is not None and before.ended
        late = ev.EventRefused | ev.BranchPushed | ev.ResultNoted
        assert not over or isinstance(event, late), "an ended workflow changed"
        outcome = decide(before, event, Moment(datetime.fromisoformat(body["at"]), float(body["clock"])))
        self._digest = digest_of(outcome.state.model_dump_json(exclude_defaults=True).encode())
        assert self._digest.startswith(entry.state), f"a replay of entry {entry.seq} leads elsewhere"
        if before is not None and over:
            _check_unchanged(before, outcome.state)
        self._check_time(datetime.fromisoformat(body["at"]))
        check_outcome(before, outcome)
        if before is not None and before.held and outcome.state.held:
            assert not outcome.messages, "something was said while a person had paused it (A14)"
            self.seen["paused"] += 1
        _check_limits(before, event, outcome.state)
        _check_success(outcome.state)
        self._hear(outcome, body)
        if isinstance(event, ev.DecisionMade):
            self.seen[event.decision] += 1
            _check_hold(before, event, outcome.state)
        elif before is not None:
            _check_verdict(before, event, outcome.state)
        self.seen["reopened"] += sum(change.before is Status.COMPLETED for change in outcome.transitions)
        if outcome.state.outcome is not None and not over:
            self.seen[outcome.state.outcome] += 1
        self.state, self.version = outcome.state, entry.seq

    def _check_time(self, at: datetime) -> None:
        at = at.replace(tzinfo=None)
        assert at >= self._at, "time went backwards"
        self._at = at

    def _hear(self, outcome: Outcome, body: Mapping[str, Any]) -> None:
        recorded = body.get("messages", [])
        assert len(recorded) == len(outcome.messages)
        for told, message in zip(recorded, outcome.messages, strict=True):
            assert Message.model_validate(told) == message, "the record of a message is not the message"
            assert message.body.kind in LINES or not outcome.state.bundle_fix_request, "no line (K39)"
            _read_back(message)
            assert message.number == len(self.lines) + 1, "a gap in the lines' numbers (A78)"
            self.lines.append(message)
            self.seen[message.body.kind] += 1
            if isinstance(message.body, Escalation):
                self.seen[message.body.reason] += 1


def _check_hold(before: State | None, event: ev.DecisionMade, after: State) -> None:
    """Only an accepted hold moves what is trusted: to the work so far (I11)."""
    assert before is not None
    assert before.escalation is not None
    is_hold = before.escalation.reason is Reason.INTEGRITY_HOLD
    assert bool(before.escalation.findings) == is_hold
    if event.decision is Decision.ACCEPT:
        assert (after.trusted, after.accepted[-1]) == (before.tip, before.tree)
    else:
        assert (after.trusted, after.accepted) == (before.trusted, before.accepted)
    assert is_hold or event.decision not in (Decision.ACCEPT, Decision.REJECT)


def _check_verdict(before: State, event: ev.Event, after: State) -> None:
    """A held run passes only by a person's event, and a person may change what no agent has touched (I11)."""
    is_untouched = bool(before.trusted) and before.trusted == before.tip
    moved = event.tip if is_untouched and isinstance(event, ev.ManualFixDone) else ""
    assert after.accepted == before.accepted
    assert after.trusted == (moved or before.trusted)
    is_seen = isinstance(event, ev.RunFinished) and event.findings and event.tree not in before.accepted
    if is_seen and before.trusted and before.held is None:
        passed, earlier = (sum(run.passed for run in _runs(each)) for each in (after, before))
        assert passed == earlier, "a run passed although a rule holds it"
        assert _trees(after) == _trees(before)


def _runs(state: State) -> list[Run]:
    return [run for entry in state.specialists for run in entry.runs]


def _trees(state: State) -> list[str]:
    return [entry.passed_tree for entry in state.specialists]


def _read_back(message: Message) -> None:
    """Every fourth text is read back, to save time: each type has its own test (A22)."""
    text = render_whole(message)
    if message.uid[0] in "0123":
        assert parse(text) == message, "what was read is not what was said"


def _check_unchanged(ended: State, after: State) -> None:
    """All that may become of an ended workflow is that a person had its branch pushed."""
    free = {"pushed": "", "push_error": "", "last_at": ended.last_at}
    assert after.with_(**free) == ended.with_(**free), "an ended workflow changed"


def _check_limits(before: State | None, event: ev.Event, after: State) -> None:
    """Runs stay within the limit, and only a person's word moves the limit (A92, K20)."""
    for entry in after.specialists:
        assert len(entry.runs) <= entry.max_iterations
        if before is not None:
            grown = entry.max_iterations - before.specialist(entry.name).max_iterations
            assert grown == (_allowed(before, event) if entry.name == before.current else 0)


def _allowed(before: State, event: ev.Event) -> int:
    """By how much `event` moves the current specialist's limit."""
    if isinstance(event, ev.ManualFixDone):
        return 1
    if not isinstance(event, ev.DecisionMade) or before.escalation is None:
        return 0
    if event.decision is Decision.MANUAL_FIX:
        is_tried_again = before.escalation.reason is Reason.SPECIALIST_ERROR
        return 1 if before.kept is not None and not is_tried_again else 0
    if event.decision is Decision.EXTEND and before.escalation.reason in (
        Reason.MAX_ITERATIONS,
        Reason.DEADLOCK,
    ):
        return event.iterations or before.limits.extra_iterations
    return 0


def _check_success(state: State) -> None:
    """Success is evidence of every applicable specialist on the one final tree (K37)."""
    if state.outcome is not WorkflowOutcome.SUCCESS:
        return
    applicable = [entry for entry in state.specialists if entry.applicable]
    assert applicable
    for entry in applicable:
        assert not entry.skipped
        assert entry.passed_tree == state.tree
        assert {evidence.tree for evidence in entry.evidence} <= {state.tree}
