"""The `handoff` profile as the engine knows it."""

from typing import Any, Final

from fixloop.profiles.profile import Profile, iso
from fixloop.profiles.reading import loader
from fixloop.protocol.handoff.decide import DECIDE_VERSION, decide
from fixloop.protocol.handoff.events import AgentReturned, DeadlineReached, Event, EventRefused
from fixloop.protocol.handoff.outcome import Said
from fixloop.protocol.handoff.routes import ORCHESTRATOR
from fixloop.protocol.handoff.state import SCHEMA_VERSION, Handoffs
from fixloop.protocol.refusals import Unexpected
from fixloop.protocol.ticket import Ticket

__all__ = ["HANDOFF"]


def _fields(state: Handoffs) -> dict[str, str]:
    """What a person would look for with `redis-cli`, beside the snapshot (DESIGN, Redis)."""
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
        "queue": state.queue,
        "updated_at": iso(state.last_at),
    }


def _recorded(said: Said) -> dict[str, Any]:
    return {"number": said.number} | said.message.model_dump(mode="json", by_alias=True)


def _check_party(event: Event, worker: str) -> None:
    """
    Refuse a result that is not for whoever did the work to bring (D54).

    Raises:
        Unexpected: naming both.
    """
    if isinstance(event, AgentReturned) and event.sender != worker:
        raise Unexpected(f"{event.sender} returns on the ticket of {worker}; an agent returns its own result")


def _worker_of(ticket: Ticket) -> str:
    return ticket.specialist or ORCHESTRATOR


def _is_deadline(name: str) -> bool:
    return name.startswith("run/")


HANDOFF: Final[Profile[Handoffs]] = Profile(
    name="handoff",
    orchestrator=ORCHESTRATOR,
    decide_version=DECIDE_VERSION,
    decide=decide,
    load=loader(Handoffs, SCHEMA_VERSION),
    fields=_fields,
    recorded=_recorded,
    refused=EventRefused,
    reached=DeadlineReached,
    check_party=_check_party,
    worker_of=_worker_of,
    is_deadline=_is_deadline,
)
