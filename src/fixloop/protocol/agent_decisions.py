"""What follows from an event in every profile whose steps are runs of named agents; its own rules each profile gives.

Pure: no clock, no Redis, no files.
"""

from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from fixloop.protocol.agent_events import (
    BranchPushed,
    Cancelled,
    Continued,
    DeadlineReached,
    EventRefused,
    MessageStored,
    Paused,
    PersonNotified,
)
from fixloop.protocol.closing import branch_pushed, check_closing
from fixloop.protocol.draft import AgentDraft, Outcome
from fixloop.protocol.letters import stored
from fixloop.protocol.moment import Moment
from fixloop.protocol.notifying import notified
from fixloop.protocol.refusals import NotDue, Repeated, Unexpected

S = TypeVar("S", bound=Any)
D = TypeVar("D", bound=AgentDraft[Any, Any])


class Rules(NamedTuple, Generic[S, D]):
    """A profile's side of its decisions."""

    noun: str
    """What its workflows are called."""
    called: Callable[[S], str]
    """One of them as refusals name it."""
    draft: Callable[[S, Moment], D]
    starts: Mapping[type, Callable[[Any, Moment], D]]
    """The events that a workflow begins with."""
    end: Callable[[D, str, str], None]
    """Ends a workflow with a status, `completed` or `failed`, and an outcome."""
    handlers: Mapping[type, Callable[[D, Any], None]]
    """All other events; those that each profile treats alike are left out."""


def decide(rules: Rules[S, D], state: S | None, event: Any, now: Moment) -> Outcome[S, Any]:
    """
    What follows from `event`.

    Raises:
        Unexpected: the event does not fit the state; nothing was changed.
    """
    start = rules.starts.get(type(event))
    if start is not None:
        if state is not None:
            raise Unexpected(f"{rules.called(state)} has started already")
        return start(event, now).outcome()
    if state is None:
        raise Unexpected(f"{event.kind} came before the {rules.noun} started")
    draft = rules.draft(state, now)
    if isinstance(event, EventRefused):
        draft.note(f"refused: {event.refused} from {event.sender}: {event.reason}")
    elif isinstance(event, BranchPushed):
        branch_pushed(draft, event, lambda outcome: rules.end(draft, "completed", outcome))
    elif state.ended:
        raise Unexpected(f"{event.kind} came after {rules.called(state)} ended ({state.outcome})")
    else:
        check_closing(state, event.kind)
        _apply(rules, draft, event)
    return draft.outcome()


def _apply(rules: Rules[S, D], draft: D, event: Any) -> None:
    match event:
        case Cancelled():
            if draft.state.paused_clock is not None:
                draft.release(0.0)
            rules.end(draft, "failed", "cancelled")
        case Paused():
            if draft.state.paused_clock is not None:
                raise Repeated(f"{rules.called(draft.state)} is paused already")
            draft.pause(event)
        case Continued():
            if draft.state.paused_clock is None:
                raise Repeated(f"{rules.called(draft.state)} is not paused")
            draft.go_on(event)
        case MessageStored():
            stored(draft, event)
        case PersonNotified():
            notified(draft, event)
        case DeadlineReached(name=name, due=due) if draft.clock <= due:
            raise NotDue(f"{name} falls due in {due - draft.clock:.1f} s")
        case _:
            rules.handlers[type(event)](draft, event)


def restored(rules: Rules[S, D], before: S, now: Moment) -> D:
    """
    A workflow whose Redis was lost goes on from what its named files hold (K23).

    The state is as it was; what was asked of an agent is asked again, and its time begins again.

    Raises:
        Unexpected: it ended; there is nothing to go on with.
    """
    if before.ended:
        raise Unexpected(f"{rules.called(before)} ended ({before.outcome}); there is nothing to go on with")
    draft = rules.draft(before.with_(rebuilt=before.rebuilt + 1), now)
    draft.ask_again()
    return draft
