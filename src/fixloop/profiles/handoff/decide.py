"""The `handoff` profile: what follows from an event (D1-D56; K5, K10, K20, K27, K33, G9-G21).

    decide(state, event, now) -> Outcome

Pure: no clock, no Redis, no files.
"""

from collections.abc import Callable
from typing import Any, Final, cast

from fixloop.errors import UsageError
from fixloop.profiles.handoff import events as ev
from fixloop.profiles.handoff import locks, questions, runs, writes
from fixloop.profiles.handoff.outcome import Draft, Outcome
from fixloop.profiles.handoff.routes import AGENTS
from fixloop.profiles.handoff.state import SCHEMA_VERSION, Agent, Handoffs
from fixloop.protocol.closing import branch_pushed, check_closing
from fixloop.protocol.letters import stored
from fixloop.protocol.moment import Moment
from fixloop.protocol.notifying import notified
from fixloop.protocol.refusals import Repeated, Unexpected

DECIDE_VERSION: Final = 2
"""Raised when the same event in the same state would lead elsewhere; `audit verify` replays its own only."""


def decide(state: Handoffs | None, event: ev.Event, now: Moment) -> Outcome:
    """
    What follows from `event`.

    Raises:
        Unexpected: the event does not fit the state; nothing was changed.
        UsageError: a workflow that cannot be.
    """
    if isinstance(event, ev.HandoffsStarted | ev.HandoffsRestored):
        if state is not None:
            raise Unexpected(f"workflow {state.workflow} has started already")
        return _started(event, now) if isinstance(event, ev.HandoffsStarted) else _restored(event, now)
    if state is None:
        raise Unexpected(f"{event.kind} came before the workflow started")
    draft = Draft(state, now)
    if isinstance(event, ev.EventRefused):
        draft.note(f"refused: {event.refused} from {event.sender}: {event.reason}")
        return draft.outcome()
    if isinstance(event, ev.BranchPushed):
        branch_pushed(draft, event, lambda outcome: draft.end("completed", outcome))
        return draft.outcome()
    if state.ended:
        raise Unexpected(f"{event.kind} came after workflow {state.workflow} ended ({state.outcome})")
    check_closing(state, event.kind)
    _HANDLERS[type(event)](draft, event)
    return draft.outcome()


def _started(event: ev.HandoffsStarted, now: Moment) -> Outcome:
    unknown = sorted(event.commands.keys() - set(AGENTS))
    if unknown:
        raise UsageError(f"there is a command for {', '.join(unknown)}; the agents are {', '.join(AGENTS)}")
    if event.max_iterations < 1:
        raise UsageError(f"max_iterations is {event.max_iterations}; a workflow needs at least 1")
    agents = tuple(Agent(name=name, command=event.commands.get(name, "")) for name in AGENTS)
    taken = event.model_dump(exclude={"kind", "type", "sender", "commands", "limits"})
    state = Handoffs(
        profile="handoff",
        schema_version=SCHEMA_VERSION,
        **taken,
        kind=event.type,
        limits=event.limits,
        agents=agents,
        started_at=now.at,
        last_at=now.at,
    )
    draft = Draft(state, now)
    runs.activate(draft, "planner")
    return draft.outcome()


def _restored(event: ev.HandoffsRestored, now: Moment) -> Outcome:
    """What was asked of an agent is asked again, and its time begins again (K23)."""
    before = Handoffs.model_validate(event.state)
    if before.ended:
        raise Unexpected(
            f"workflow {before.workflow} ended ({before.outcome}); there is nothing to go on with"
        )
    draft = Draft(before.with_(rebuilt=before.rebuilt + 1), now)
    draft.note("rebuilt from the named files")
    draft.ask_again()
    return draft.outcome()


def _cancelled(draft: Draft, event: ev.Cancelled) -> None:
    if draft.state.paused_clock is not None:
        draft.release(0.0)
    draft.end("failed", "cancelled")


def _paused(draft: Draft, event: ev.Paused) -> None:
    if draft.state.paused_clock is not None:
        raise Repeated(f"workflow {draft.state.workflow} is paused already")
    draft.update(status="paused", paused_clock=draft.clock)
    draft.hold()


def _continued(draft: Draft, event: ev.Continued) -> None:
    if draft.state.paused_clock is None:
        raise Repeated(f"workflow {draft.state.workflow} is not paused")
    draft.release(draft.clock - draft.state.paused_clock)
    waits = draft.state.blocking() is not None
    draft.update(status="paused" if waits else "running", paused_clock=None)


_HANDLERS: Final = cast(
    dict[type, Callable[[Draft, Any], None]],
    {
        ev.AgentActivated: runs.activated,
        ev.HandoffAccepted: runs.accept,
        ev.HandoffRejected: runs.reject,
        ev.HandoffSent: runs.sent,
        ev.AgentReturned: runs.returned,
        ev.AgentFailed: runs.failed,
        ev.AgentEscalated: questions.escalated,
        ev.Answered: questions.answered,
        ev.DecisionMade: questions.decided,
        ev.LockAcquired: locks.acquire,
        ev.LockReleased: locks.release,
        ev.LockExtended: locks.extend,
        ev.Heartbeat: runs.heartbeat,
        ev.StateWritten: writes.write,
        ev.MessageStored: stored,
        ev.DeliveryFailed: questions.undelivered,
        ev.PersonNotified: notified,
        ev.DeadlineReached: runs.overdue,
        ev.Cancelled: _cancelled,
        ev.Paused: _paused,
        ev.Continued: _continued,
    },
)
