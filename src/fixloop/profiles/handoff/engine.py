"""The `handoff` profile as the engine knows it."""

from typing import Final

from fixloop.configuration.settings import VALIDATION_LOOP
from fixloop.engine.profile import AnyEvent, Profile, iso
from fixloop.engine.snapshots import loader
from fixloop.profiles.agents import own_results, worker_of
from fixloop.profiles.handoff.decide import DECIDE_VERSION, decide
from fixloop.profiles.handoff.events import (
    AgentFailed,
    AgentReturned,
    Cancelled,
    Continued,
    DeadlineReached,
    EventRefused,
    Paused,
    event_from_json,
)
from fixloop.profiles.handoff.metrics import measured
from fixloop.profiles.handoff.records import Message
from fixloop.profiles.handoff.returns import InvalidReturn
from fixloop.profiles.handoff.state import SCHEMA_VERSION, Handoffs
from fixloop.protocol.agents import ORCHESTRATOR
from fixloop.protocol.refusals import Unexpected
from fixloop.protocol.ticket import work_id


def plain_fields(state: Handoffs) -> dict[str, str]:
    """What a person would look for with `redis-cli` next to the snapshot."""
    return {
        "project": state.project,
        "name": state.name,
        "profile": state.profile,
        "status": state.status,
        "outcome": state.outcome,
        "paused": "1" if state.questions else "",
        "held": "1" if state.paused_clock is not None else "",
        "owner": "person" if state.questions else "agent",
        "specialist": state.current_agent,
        "iteration": f"{state.iteration}/{state.max_iterations}",
        "escalated": "yes" if measured(state.events).escalated else "no",
        "queue": state.queue,
        "parent": state.parent,
        "updated_at": iso(state.last_at),
    }


def _instead(event: AnyEvent, refused: Unexpected) -> AnyEvent | None:
    """A result that does not fit its contract is an attempt that failed (D37, D56)."""
    if not isinstance(refused, InvalidReturn) or not isinstance(event, AgentReturned):
        return None
    return AgentFailed(
        sender=event.sender, agent=event.sender, reason=str(refused), artifacts=event.artifacts
    )


HANDOFF: Final[Profile[Handoffs]] = Profile(
    name="handoff",
    orchestrator=ORCHESTRATOR,
    decide_version=DECIDE_VERSION,
    decide=decide,
    load=loader(Handoffs, SCHEMA_VERSION),
    read_event=event_from_json,
    fields=plain_fields,
    recorded=lambda said: {"number": said.number} | said.message.model_dump(mode="json", by_alias=True),
    refused=EventRefused,
    reached=DeadlineReached,
    cancelled=Cancelled,
    check_party=own_results("agent-returned"),
    worker_of=worker_of,
    is_deadline=lambda name: name.startswith("run/"),
    instead=_instead,
    text=lambda kept: Message.model_validate(kept).text,
    children=lambda state: [
        work_id(state, agent) for agent in state.agents if agent.command == VALIDATION_LOOP
    ],
    from_parent={
        "cancelled": lambda why: Cancelled(reason=why),
        "paused": lambda why: Paused(reason=why),
        "continued": lambda why: Continued(),
    },
)
