"""The `handoff` profile as the engine knows it."""

from typing import Any, Final

from fixloop.profiles.agents import ORCHESTRATOR, own_results, worker_of
from fixloop.profiles.profile import Profile, iso
from fixloop.profiles.reading import loader
from fixloop.protocol.handoff.decide import DECIDE_VERSION, decide
from fixloop.protocol.handoff.events import DeadlineReached, EventRefused
from fixloop.protocol.handoff.outcome import Said
from fixloop.protocol.handoff.state import SCHEMA_VERSION, Handoffs

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
    check_party=own_results("agent-returned"),
    worker_of=worker_of,
    is_deadline=_is_deadline,
)
