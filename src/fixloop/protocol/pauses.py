"""A pause by a person: nothing begins, nothing is sent, clocks stand still; what runs may finish (A14).

No escalation, and nothing to decide. What happens meanwhile is kept, and taken up in its order when the person lets
the workflow go on. What would be refused then is refused at once.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from fixloop.protocol import events as ev
from fixloop.protocol.durations import minutes_seconds
from fixloop.protocol.event import Value
from fixloop.protocol.ids import called
from fixloop.protocol.outcome import Draft
from fixloop.protocol.refusals import NotDue, Unexpected
from fixloop.protocol.state import Hold

Handle = Callable[[Draft, ev.Event], None]
_Part = TypeVar("_Part", bound=Value)

_AT_ONCE: Final = (ev.Cancelled, ev.Paused, ev.Continued, ev.PersonNotified, ev.ResultNoted)
"""What a pause does not hold up."""


def pause(draft: Draft, event: ev.Paused) -> None:
    """Hold the workflow; one that is held stays as it is."""
    held = draft.state.held
    if held is not None:
        draft.note(f"paused already, by {held.by}")
        return
    draft.note(f"paused by {event.by} {event.reason}".rstrip())
    draft.update(held=Hold(by=event.by, reason=event.reason, at=draft.at, clock=draft.clock))
    draft.hold()


def continue_(draft: Draft, event: ev.Continued, handle: Handle) -> None:
    """Let it go on: its clocks go on where they stood, and what was kept happens now."""
    held = draft.state.held
    if held is None:
        draft.note("it was not paused")
        return
    stood = draft.clock - held.clock
    draft.note(f"continued by {event.by} after {minutes_seconds(stood)}")
    # Every clock that ran when the pause began goes on as if it had begun later by the time that it stood.
    state = _later(draft.state, stood, "iteration_clock", "iteration_due", "reported_clock")
    operation, delivery = state.operation, state.delivery
    if operation is not None:
        operation = _later(operation, stood, "started_clock", "reminded_clock", "escalates_clock")
    if delivery is not None:
        delivery = _later(delivery, stood, "receipt_due")
    specialists = tuple(_later(entry, stood, "started_clock") for entry in state.specialists)
    draft.state = state.with_(held=None, operation=operation, delivery=delivery, specialists=specialists)
    draft.release(stood)
    for kept in held.events:
        handle(draft, ev.event_from_json(kept))


def while_held(draft: Draft, event: ev.Event, handle: Handle) -> None:
    """What follows from an event while the workflow is paused; NotDue for a deadline, whose clock stands still."""
    held = draft.state.held
    if held is None or isinstance(event, _AT_ONCE):
        handle(draft, event)
        return
    if isinstance(event, ev.DeadlineReached):
        raise NotDue(f"deadline {event.name} stands still while the workflow is paused")
    if isinstance(event, ev.DecisionMade | ev.ManualFixDone):
        raise Unexpected(
            f"issue {draft.state.issue} is paused by {held.by}; `fixloop continue {called(draft.state)}` first"
        )
    tried = Draft(draft.state.with_(held=None), draft.now)
    for kept in held.events:
        handle(tried, ev.event_from_json(kept))
    handle(tried, event)
    draft.update(held=held.with_(events=(*held.events, event.model_dump_json())))
    draft.note(f"{event.kind} arrived while paused and is kept")


def _later(part: _Part, seconds: float, *clocks: str) -> _Part:
    running = {name: clock for name in clocks if (clock := getattr(part, name)) is not None}
    return part.with_(**{name: clock + seconds for name, clock in running.items()})
