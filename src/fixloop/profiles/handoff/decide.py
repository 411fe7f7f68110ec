"""The decisions of the `handoff` profile (D1-D56; K5, K10, K20, K27, K33, G9-G21)."""

from typing import Final

from fixloop.errors import UsageError
from fixloop.profiles.handoff import events as ev, questions, runs, shared_state
from fixloop.profiles.handoff.outcome import Draft, Outcome
from fixloop.profiles.handoff.routes import AGENTS
from fixloop.profiles.handoff.state import SCHEMA_VERSION, Agent, Handoffs
from fixloop.protocol import agent_decisions
from fixloop.protocol.agent_events import AgentFailed, DeadlineReached, DeliveryFailed
from fixloop.protocol.event import Event, Moment

DECIDE_VERSION: Final = 2
"""Raised when the same event in the same state has another outcome; `audit verify` replays only its own version."""


def decide(state: Handoffs | None, event: Event, now: Moment) -> Outcome:
    """Decide `event`. Unexpected: it does not fit the state; UsageError: an impossible workflow."""
    return agent_decisions.decide(_RULES, state, event, now)


def _started(event: ev.HandoffsStarted, now: Moment) -> Draft:
    unknown = sorted(event.commands.keys() - set(AGENTS))
    if unknown:
        raise UsageError(f"there is a command for {', '.join(unknown)}; the agents are {', '.join(AGENTS)}")
    if event.max_iterations < 1:
        raise UsageError(f"max_iterations is {event.max_iterations}; a workflow needs at least 1")
    agents = tuple(Agent(name=name, command=event.commands.get(name, "")) for name in AGENTS)
    state = Handoffs(
        profile="handoff",
        schema_version=SCHEMA_VERSION,
        **event.model_dump(exclude={"kind", "type", "sender", "commands", "limits"}),
        kind=event.type,
        limits=event.limits,
        agents=agents,
        started_at=now.at,
        last_at=now.at,
    )
    draft = Draft(state, now)
    draft.activate("planner")
    return draft


def _restored(event: ev.HandoffsRestored, now: Moment) -> Draft:
    draft = agent_decisions.restored(_RULES, Handoffs.model_validate(event.state), now)
    draft.note("rebuilt from the named files")
    return draft


_RULES: Final[agent_decisions.Rules[Handoffs, Draft]] = agent_decisions.Rules(
    noun="workflow",
    called=lambda state: f"workflow {state.workflow}",
    draft=Draft,
    starts={ev.HandoffsStarted: _started, ev.HandoffsRestored: _restored},
    end=Draft.end,
    handlers={
        ev.AgentActivated: runs.activated,
        ev.HandoffAccepted: runs.accept,
        ev.HandoffRejected: runs.reject,
        ev.HandoffSent: runs.sent,
        ev.AgentReturned: runs.returned,
        AgentFailed: runs.failed,
        ev.AgentEscalated: questions.escalated,
        ev.Answered: questions.answered,
        ev.DecisionMade: questions.decided,
        ev.LockAcquired: shared_state.acquire,
        ev.LockReleased: shared_state.release,
        ev.LockExtended: shared_state.extend,
        ev.Heartbeat: runs.heartbeat,
        ev.StateWritten: shared_state.write,
        DeliveryFailed: questions.undelivered,
        DeadlineReached: runs.overdue,
    },
)
