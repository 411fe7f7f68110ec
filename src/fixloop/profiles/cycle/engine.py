"""The `cycle` profile's record for the engine."""

from typing import Final

from fixloop.engine.profile import Profile, loader
from fixloop.profiles.agents import children_of, own_results, plain_fields, worker_of
from fixloop.profiles.cycle import events as ev
from fixloop.profiles.cycle.decide import DECIDE_VERSION, decide
from fixloop.profiles.cycle.messages import Message, message_text
from fixloop.profiles.cycle.phase_result import InvalidResult
from fixloop.profiles.cycle.records import AgentStatus
from fixloop.profiles.cycle.state import SCHEMA_VERSION, Cycle
from fixloop.protocol.event import ORCHESTRATOR, Event, Unexpected


def _instead(event: Event, refused: Unexpected) -> Event | None:
    """A report that violates a rule is an invalid answer (C35)."""
    if not isinstance(refused, InvalidResult) or not isinstance(event, ev.PhaseReported):
        return None
    who = event.sender
    return ev.AnswerInvalid(sender=who, agent=who, problem=str(refused), artifacts=event.artifacts)


CYCLE: Final[Profile[Cycle]] = Profile(
    name="cycle",
    orchestrator=ORCHESTRATOR,
    decide_version=DECIDE_VERSION,
    decide=decide,
    load=loader(Cycle, SCHEMA_VERSION),
    kinds=ev.KINDS,
    fields=lambda state: plain_fields(
        state,
        asks=bool(state.escalations),
        specialist=",".join(each.key for each in state.agents if each.status is AgentStatus.RUNNING),
    ),
    recorded=Message.recorded,
    check_party=own_results("phase-reported"),
    worker_of=worker_of,
    is_deadline=lambda name: name.startswith(("run/", "converge/")),
    instead=_instead,
    text=lambda kept: message_text(Message.model_validate(kept)),
    children=children_of,
)
