"""What the profiles share whose steps are runs of named agents: parts of their engine, commands and time limits."""

from collections.abc import Callable, Mapping
from typing import Any

from fixloop.configuration.settings import VALIDATION_LOOP, Role
from fixloop.engine.profile import iso
from fixloop.protocol.agents import ORCHESTRATOR
from fixloop.protocol.event import Event
from fixloop.protocol.refusals import Unexpected
from fixloop.protocol.ticket import Ticket, work_id


def worker_of(ticket: Ticket) -> str:
    """The agent that a ticket asks for a run; the orchestrator for its own steps."""
    return ticket.specialist or ORCHESTRATOR


def own_results(kind: str) -> Callable[[Event, str], None]:
    """A check that a result, an event of this kind, is brought by the agent that did the work (C36, D54)."""

    def check(event: Event, worker: str) -> None:
        if event.kind == kind and event.sender != worker:
            raise Unexpected(f"{event.sender} brings the result of {worker}; an agent brings its own")

    return check


def plain_fields(state: Any, *, asks: bool, specialist: str) -> dict[str, str]:
    """What a person would look for with `redis-cli` next to the snapshot; `asks`: a person is asked something."""
    return {
        "project": state.project,
        "name": state.name,
        "profile": state.profile,
        "status": str(state.status),
        "outcome": state.outcome,
        "paused": "1" if asks else "",
        "held": "1" if state.paused_clock is not None else "",
        "owner": "person" if asks else "agent",
        "specialist": specialist,
        "iteration": f"{state.iteration}/{state.max_iterations}",
        "queue": state.queue,
        "updated_at": iso(state.last_at),
    }


def children_of(state: Any) -> list[str]:
    """The tickets of a state for which a validation loop may work."""
    return [work_id(state, agent) for agent in state.agents if agent.command == VALIDATION_LOOP]


def commands_of(agents: Mapping[str, Role]) -> dict[str, str]:
    """The command of each agent, for people to read; the configuration has its arguments."""
    return {key: " ".join(role.command) for key, role in agents.items() if role.command}


def agent_seconds(agents: Mapping[str, Role]) -> dict[str, float | None]:
    """How long the runs of single agents may take, where that is configured."""
    return {
        key: seconds(role.timeout_minutes) for key, role in agents.items() if role.timeout_minutes is not None
    }


def seconds(minutes: float | None) -> float | None:
    """None where a limit is switched off."""
    return minutes * 60 if minutes else None
