"""The `cycle` profile as the engine knows it."""

from typing import Final

from fixloop.configuration.settings import VALIDATION_LOOP
from fixloop.engine.profile import AnyEvent, Profile, iso
from fixloop.engine.snapshots import loader
from fixloop.profiles.agents import own_results, worker_of
from fixloop.profiles.cycle.decide import DECIDE_VERSION, decide
from fixloop.profiles.cycle.events import (
    AnswerInvalid,
    Cancelled,
    DeadlineReached,
    EventRefused,
    PhaseReported,
    event_from_json,
)
from fixloop.profiles.cycle.messages import Message
from fixloop.profiles.cycle.phase_result import InvalidResult
from fixloop.profiles.cycle.records import AgentStatus
from fixloop.profiles.cycle.state import SCHEMA_VERSION, Cycle
from fixloop.profiles.cycle.texts import message_text
from fixloop.protocol.agents import ORCHESTRATOR
from fixloop.protocol.refusals import Unexpected
from fixloop.protocol.ticket import work_id


def _fields(state: Cycle) -> dict[str, str]:
    """What a person would look for with `redis-cli`."""
    working = [agent.key for agent in state.agents if agent.status is AgentStatus.RUNNING]
    return {
        "project": state.project,
        "name": state.name,
        "profile": state.profile,
        "status": state.status.value,
        "outcome": state.outcome,
        "paused": "1" if state.escalations else "",
        "held": "1" if state.paused_at is not None else "",
        "owner": "person" if state.escalations else "agent",
        "specialist": ",".join(working),
        "iteration": f"{state.iteration}/{state.max_iterations}",
        "queue": state.queue,
        "updated_at": iso(state.last_at),
    }


def _instead(event: AnyEvent, refused: Unexpected) -> AnyEvent | None:
    """A report that breaks a rule is an invalid answer (C35)."""
    if not isinstance(refused, InvalidResult) or not isinstance(event, PhaseReported):
        return None
    return AnswerInvalid(
        sender=event.sender, agent=event.sender, problem=str(refused), artifacts=event.artifacts
    )


CYCLE: Final[Profile[Cycle]] = Profile(
    name="cycle",
    orchestrator=ORCHESTRATOR,
    decide_version=DECIDE_VERSION,
    decide=decide,
    load=loader(Cycle, SCHEMA_VERSION),
    read_event=event_from_json,
    fields=_fields,
    recorded=Message.recorded,
    refused=EventRefused,
    reached=DeadlineReached,
    cancelled=Cancelled,
    check_party=own_results("phase-reported"),
    worker_of=worker_of,
    is_deadline=lambda name: name.startswith(("run/", "converge/")),
    instead=_instead,
    text=lambda kept: message_text(Message.model_validate(kept)),
    children=lambda state: [
        work_id(state, agent) for agent in state.agents if agent.command == VALIDATION_LOOP
    ],
)
