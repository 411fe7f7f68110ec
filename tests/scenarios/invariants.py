"""What holds after every decision (A14, A22, A51, A52, A69, A78, A84, A87, A92, B42, K21)."""

from itertools import pairwise

from fixloop.protocol.messages import (
    MAIN_AGENT,
    ORCHESTRATOR,
    USER,
    Escalation,
    FixRequest,
    Message,
    RevalidationResult,
)
from fixloop.protocol.outcome import Outcome
from fixloop.protocol.rendering import render_whole
from fixloop.protocol.specialists import Status, check_transition
from fixloop.protocol.state import State
from tests.parsing import parse

_READ: set[str] = set()


def check_outcome(before: State | None, outcome: Outcome) -> None:
    """Check what one decision did."""
    _check_transitions(before, outcome)
    _check_tickets(outcome)
    escalations = [m for m in outcome.messages if isinstance(m.body, Escalation)]
    # What a person rejects may use up the last run: one decision then ends an escalation and opens the next.
    opened, earlier = outcome.state.escalation, before.escalation if before is not None else None
    is_new = opened is not None and (earlier is None or earlier.message_id != opened.message_id)
    assert len(escalations) == is_new
    for message in outcome.messages:
        _check_message(message)
    check_state(outcome.state)


def check_readable(message: Message) -> None:
    """Check that a message's text says all of it (A22); one message, however often it is said, is read once."""
    told = message.model_dump_json()
    if told not in _READ:
        assert parse(render_whole(message)) == message
        _READ.add(told)


def check_state(state: State) -> None:
    """Check one snapshot by itself."""
    assert state.paused == (state.escalation is not None)
    assert not (state.paused and state.ended)
    if state.paused:
        assert state.active.status is Status.ESCALATED
        assert state.operation is None
    for entry in state.specialists:
        assert entry.status in set(Status)
        assert entry.iteration <= entry.max_iterations, "a run beyond the limit (A92)"
        numbers = [run.number for run in entry.runs]
        assert numbers == sorted(set(numbers)), "a run counted twice"
        assert not numbers or numbers[-1] <= entry.iteration


def check_said(messages: list[Message]) -> None:
    """Check all lines of a workflow together."""
    assert [m.number for m in messages] == list(range(1, len(messages) + 1))
    assert all(one.at <= two.at for one, two in pairwise(messages))
    known: dict[tuple[str, str], Message] = {}
    uids = set()
    for message in [*messages, *(m.attached for m in messages if m.attached is not None)]:
        assert message.uid not in uids
        uids.add(message.uid)
        first = known.setdefault((message.specialist, message.message_id), message)
        assert first.body == message.body, f"{message.message_id} names two messages (A87)"


def _check_transitions(before: State | None, outcome: Outcome) -> None:
    statuses = {entry.name: entry.status for entry in before.specialists} if before is not None else {}
    for change in outcome.transitions:
        assert statuses.get(change.specialist, Status.PENDING) is change.before
        check_transition(change.before, change.after, change.role)
        statuses[change.specialist] = change.after
    for entry in outcome.state.specialists:
        was_applicable = before is None or before.specialist(entry.name).applicable
        # A phase that turns out not to apply is as if it had never begun (K38): no transition says so.
        if entry.applicable and was_applicable:
            assert statuses.get(entry.name, Status.PENDING) is entry.status, "a silent change (A54)"


def _check_tickets(outcome: Outcome) -> None:
    steps = [ticket.step for ticket in outcome.steps]
    assert len(steps) == len({ticket.id for ticket in outcome.steps})
    if outcome.state.ended:
        assert not steps
        assert not outcome.deadlines
    if outcome.state.held is not None:
        assert not steps, "work while held (A14)"
        assert not outcome.deadlines
        assert not outcome.messages, "something was said while held (A14)"
    if outcome.state.paused:
        assert set(steps) <= {"notify", "escalate"}, "work while paused (A14)"
        assert not outcome.deadlines
    if outcome.state.paused or outcome.state.ended:
        assert outcome.withdraws_tickets or not outcome.transitions


def _check_message(message: Message) -> None:
    ends = {message.sender, message.recipient}
    assert ends & {ORCHESTRATOR} or message.sender == MAIN_AGENT
    assert ends <= {ORCHESTRATOR, MAIN_AGENT, USER} or ORCHESTRATOR in ends, "past the orchestrator (A3)"
    if isinstance(message.body, FixRequest):
        assert message.body.items
    if message.attached is not None:
        assert isinstance(message.attached.body, FixRequest)
        assert message.attached.body.items
    if isinstance(message.body, RevalidationResult):
        _check_result(message.body)


def _check_result(body: RevalidationResult) -> None:
    assert body.failure_count == len(body.comparison.persisting) + len(body.comparison.new)
    assert body.history[-1] == body.failure_count
    assert body.passed == (body.failure_count == 0)
    if len(body.history) > 1:
        assert body.history[-2] == body.comparison.previous_count
