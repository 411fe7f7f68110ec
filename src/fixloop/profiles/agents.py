"""What the profiles share whose steps are runs of named agents: the worker of a ticket, commands and time limits."""

from collections.abc import Callable, Mapping

from fixloop.configuration.settings import Role
from fixloop.engine.profile import AnyEvent
from fixloop.protocol.agents import ORCHESTRATOR
from fixloop.protocol.refusals import Unexpected
from fixloop.protocol.ticket import Ticket


def worker_of(ticket: Ticket) -> str:
    """The agent that a ticket asks for a run; the orchestrator for its own steps."""
    return ticket.specialist or ORCHESTRATOR


def own_results(kind: str) -> Callable[[AnyEvent, str], None]:
    """A check that a result, an event of this kind, is brought by the agent that did the work (C36, D54)."""

    def check(event: AnyEvent, worker: str) -> None:
        if event.kind == kind and event.sender != worker:
            raise Unexpected(f"{event.sender} brings the result of {worker}; an agent brings its own")

    return check


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
