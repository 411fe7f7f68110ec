"""The decisions of the `validation` profile (A, B; K1-K8, K20, K34-K40). Pure: no clock, no Redis.

Reading order: this file, `results.py` (the flow of results), `fixes.py` (the main agent's side), `delivery.py` (its
mailbox), `timers.py`, `notices.py` (escalations), `decisions.py` (decisions of people), `push.py`.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from fixloop.errors import UsageError
from fixloop.protocol import decisions, delivery, events as ev, fixes, push, results, timers
from fixloop.protocol.durations import minutes_seconds
from fixloop.protocol.event import Moment, NotDue, Unexpected, Value
from fixloop.protocol.ids import called
from fixloop.protocol.outcome import Draft, Outcome
from fixloop.protocol.roles import check_party
from fixloop.protocol.specialists import NAMES, SPECIALISTS, specialist as slot
from fixloop.protocol.state import Hold, SpecialistState, State, WorkflowOutcome

_Part = TypeVar("_Part", bound=Value)

_AT_ONCE: Final = (ev.Cancelled, ev.Paused, ev.Continued, ev.PersonNotified, ev.ResultNoted)
"""Events that are applied during a pause."""
DECIDE_VERSION: Final = 4
"""Raised when the same event in the same state has another outcome; `audit verify` replays only its own version."""


def decide(state: State | None, event: ev.Event, now: Moment) -> Outcome:
    """Decide `event`; Unexpected if it does not fit the state, UsageError if there is nothing to check."""
    if isinstance(event, ev.WorkflowStarted):
        if state is not None:
            raise Unexpected(f"workflow {state.workflow} has started already")
        return _start(event, now)
    if state is None:
        raise Unexpected(f"{event.kind} came before the workflow started")
    if isinstance(event, ev.EventRefused):
        # Recorded in the log, with no other effect.
        draft = Draft(state, now)
        sender = f" from {event.sender}" if event.sender else ""
        draft.note(f"refused: {event.refused}{sender}: {event.reason}")
        return draft.outcome()
    if state.ended and not isinstance(event, ev.BranchPushed | ev.ResultNoted):
        raise Unexpected(f"{event.kind} came after workflow {state.workflow} ended ({state.outcome})")
    check_party(event, event.sender)
    draft = Draft(state, now)
    _apply_or_keep(draft, event)
    return draft.outcome()


def _pause(draft: Draft, event: ev.Paused) -> None:
    """Pause the workflow; a paused one stays as it is."""
    held = draft.state.held
    if held is not None:
        draft.note(f"paused already, by {held.by}")
        return
    draft.note(f"paused by {event.by} {event.reason}".rstrip())
    draft.update(held=Hold(by=event.by, reason=event.reason, at=draft.at, clock=draft.clock))
    draft.hold()


def _continue(draft: Draft, event: ev.Continued) -> None:
    """Continue the workflow: its clocks run on, and the kept events are applied now."""
    held = draft.state.held
    if held is None:
        draft.note("it was not paused")
        return
    stood = draft.clock - held.clock
    draft.note(f"continued by {event.by} after {minutes_seconds(stood)}")
    # Every clock that ran when the pause began is moved later by the length of the pause.
    state = _shift_clocks(draft.state, stood, "iteration_clock", "iteration_due", "reported_clock")
    operation, delivery = state.operation, state.delivery
    if operation is not None:
        operation = _shift_clocks(operation, stood, "started_clock", "reminded_clock", "escalates_clock")
    if delivery is not None:
        delivery = _shift_clocks(delivery, stood, "receipt_due")
    specialists = tuple(_shift_clocks(entry, stood, "started_clock") for entry in state.specialists)
    draft.state = state.with_(held=None, operation=operation, delivery=delivery, specialists=specialists)
    draft.release(stood)
    for event_kept in map(ev.event_from_json, held.events):
        _HANDLERS[type(event_kept)](draft, event_kept)


def _apply_or_keep(draft: Draft, event: ev.Event) -> None:
    """Apply an event, or keep it while a person has paused the workflow (A14): no work starts and clocks stand still
    until it continues. Events that would be refused then are refused now; NotDue: a deadline."""
    held = draft.state.held
    if held is None or isinstance(event, _AT_ONCE):
        _HANDLERS[type(event)](draft, event)
        return
    if isinstance(event, ev.DeadlineReached):
        raise NotDue(f"deadline {event.name} stands still while the workflow is paused")
    if isinstance(event, ev.DecisionMade | ev.ManualFixDone):
        raise Unexpected(
            f"issue {draft.state.issue} is paused by {held.by}; `fixloop continue {called(draft.state)}` first"
        )
    tried = Draft(draft.state.with_(held=None), draft.now)
    for each in (*map(ev.event_from_json, held.events), event):
        _HANDLERS[type(each)](tried, each)
    draft.update(held=held.with_(events=(*held.events, event.model_dump_json())))
    draft.note(f"{event.kind} arrived while paused and is kept")


def _shift_clocks(part: _Part, seconds: float, *clocks: str) -> _Part:
    running = {name: clock for name in clocks if (clock := getattr(part, name)) is not None}
    return part.with_(**{name: clock + seconds for name, clock in running.items()})


def _note_result(draft: Draft, event: ev.ResultNoted) -> None:
    """Only fixloop's own runs count for the verdict; this result is just noted."""
    where = f" ({event.url})" if event.url else ""
    draft.note(f"{event.by} says: {event.name} of {event.commit[:12]} ended with {event.conclusion}{where}")


_HANDLERS: Final = cast(
    dict[type, Callable[[Draft, Any], None]],
    {
        ev.RunFinished: results.run_finished,
        ev.BaselineBegun: results.baseline_begun,
        ev.ReportDelivered: fixes.report_delivered,
        ev.MessageStored: delivery.stored,
        ev.DeliveryFailed: delivery.undelivered,
        ev.ReceiptGiven: delivery.receipt_given,
        ev.FixAcknowledged: fixes.acknowledged,
        ev.FixCompleted: fixes.completed,
        ev.FixFailed: fixes.failed,
        ev.AnswerRejected: fixes.answer_rejected,
        ev.BlockerSignalled: fixes.blocked,
        ev.DeadlineReached: timers.deadline_reached,
        ev.DecisionMade: decisions.decision_made,
        ev.ManualFixDone: decisions.manual_fix_done,
        # Notifying a person of the escalation decides nothing.
        ev.PersonNotified: lambda draft, event: draft.note(f"notified: {event.detail}"),
        ev.BranchPushed: push.branch_pushed,
        ev.ResultNoted: _note_result,
        ev.Cancelled: decisions.cancelled,
        ev.Paused: _pause,
        ev.Continued: _continue,
    },
)


def _start(event: ev.WorkflowStarted, now: Moment) -> Outcome:
    applicable = {slot(name).name for name in event.specialists}
    if not applicable and not event.unverified:
        raise UsageError(f"nothing to check: none of {', '.join(NAMES)} applies")
    if event.max_iterations < 1:
        raise UsageError(f"max_iterations is {event.max_iterations}; a loop needs at least 1")
    specialists = tuple(
        SpecialistState(
            name=entry.name, applicable=entry.name in applicable, max_iterations=event.max_iterations
        )
        for entry in SPECIALISTS
    )
    taken = event.model_dump(exclude={"kind", "sender", "specialists", "max_iterations", "limits"})
    state = State(**taken, limits=event.limits, specialists=specialists, started_at=now.at, last_at=now.at)
    draft = Draft(state, now)
    if applicable:
        results.go_on(draft)
    else:
        draft.update(current=event.unverified[0].specialist)
        draft.note(f"nothing ran: {', '.join(each.name for each in event.unverified)}")
        draft.end(WorkflowOutcome.UNVERIFIED)
    return draft.outcome()
