"""The `handoff` profile's record for the engine."""

from typing import Final

from fixloop.engine.profile import Profile, loader
from fixloop.profiles.agents import children_of, own_results, plain_fields, worker_of
from fixloop.profiles.handoff import events as ev
from fixloop.profiles.handoff.decide import DECIDE_VERSION, decide
from fixloop.profiles.handoff.records import Message, measured
from fixloop.profiles.handoff.returns import InvalidReturn
from fixloop.profiles.handoff.state import SCHEMA_VERSION, Handoffs
from fixloop.protocol.agent_events import AgentFailed, Cancelled, Continued, Paused
from fixloop.protocol.event import ORCHESTRATOR, Event, Unexpected


def _instead(event: Event, refused: Unexpected) -> Event | None:
    """A result that violates its contract is a failed attempt (D37, D56)."""
    if not isinstance(refused, InvalidReturn) or not isinstance(event, ev.AgentReturned):
        return None
    who = event.sender
    return AgentFailed(sender=who, agent=who, reason=str(refused), artifacts=event.artifacts)


HANDOFF: Final[Profile[Handoffs]] = Profile(
    name="handoff",
    orchestrator=ORCHESTRATOR,
    decide_version=DECIDE_VERSION,
    decide=decide,
    load=loader(Handoffs, SCHEMA_VERSION),
    kinds=ev.KINDS,
    fields=lambda state: (
        plain_fields(state, asks=bool(state.questions), specialist=state.current_agent)
        | {"escalated": "yes" if measured(state.events).escalated else "no", "parent": state.parent}
    ),
    recorded=lambda said: {"number": said.number} | said.message.model_dump(mode="json", by_alias=True),
    check_party=own_results("agent-returned"),
    worker_of=worker_of,
    is_deadline=lambda name: name.startswith("run/"),
    instead=_instead,
    text=lambda kept: Message.model_validate(kept).text,
    children=children_of,
    from_parent={
        "cancelled": lambda why: Cancelled(reason=why),
        "paused": lambda why: Paused(reason=why),
        "continued": lambda why: Continued(),
    },
)
