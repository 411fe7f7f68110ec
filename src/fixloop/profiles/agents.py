"""Code shared by the profiles whose steps are runs of named agents: for the engine, the commands and time limits."""

from collections.abc import Callable, Mapping
from typing import Any

from fixloop.configuration.settings import VALIDATION_LOOP, Role
from fixloop.engine.profile import iso
from fixloop.protocol.event import ORCHESTRATOR, Event, Unexpected
from fixloop.protocol.ticket import Ticket, work_id


def worker_of(ticket: Ticket) -> str:
    """The agent whose run a ticket is for; the orchestrator for its own steps."""
    return ticket.specialist or ORCHESTRATOR


def own_results(kind: str) -> Callable[[Event, str], None]:
    """A check that a result event of this kind comes from the agent that did the work (C36, D54)."""

    def check(event: Event, worker: str) -> None:
        if event.kind == kind and event.sender != worker:
            raise Unexpected(f"{event.sender} brings the result of {worker}; an agent brings its own")

    return check


def plain_fields(state: Any, *, asks: bool, specialist: str) -> dict[str, str]:
    """Plain fields next to the snapshot, for a person with `redis-cli`; `asks`: a question to a person is open."""
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
    """The tickets of a state that a validation loop may be working for."""
    return [work_id(state, agent) for agent in state.agents if agent.command == VALIDATION_LOOP]


def commands_of(agents: Mapping[str, Role]) -> dict[str, str]:
    """The command of each agent, for display; the configuration has its arguments."""
    return {key: " ".join(role.command) for key, role in agents.items() if role.command}


def agent_seconds(agents: Mapping[str, Role]) -> dict[str, float | None]:
    """The configured time limits of individual agents' runs."""
    return {
        key: seconds(role.timeout_minutes) for key, role in agents.items() if role.timeout_minutes is not None
    }


def seconds(minutes: float | None) -> float | None:
    """A limit in seconds; None if it is switched off."""
    return minutes * 60 if minutes else None
