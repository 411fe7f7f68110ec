"""What the profiles have in common whose steps are runs of named agents: whose a ticket is, and whose its result."""

from collections.abc import Callable, Mapping

from fixloop.configuration.settings import Role
from fixloop.engine.profile import AnyEvent
from fixloop.protocol.agents import ORCHESTRATOR
from fixloop.protocol.refusals import Unexpected
from fixloop.protocol.ticket import Ticket


def worker_of(ticket: Ticket) -> str:
    """The agent that a ticket asks for a run; the orchestrator for a step of its own."""
    return ticket.specialist or ORCHESTRATOR


def own_results(kind: str) -> Callable[[AnyEvent, str], None]:
    """
    A check that a result, an event of this kind, is brought by whoever did the work (C36, D54).

    The check raises Unexpected, naming both.
    """

    def check(event: AnyEvent, worker: str) -> None:
        if event.kind == kind and event.sender != worker:
            raise Unexpected(f"{event.sender} brings the result of {worker}; an agent brings its own")

    return check


def commands_of(agents: Mapping[str, Role]) -> dict[str, str]:
    """What runs an agent, for people to read; its arguments are the configuration's."""
    return {key: " ".join(role.command) for key, role in agents.items() if role.command}


def agent_seconds(agents: Mapping[str, Role]) -> dict[str, float | None]:
    """How long the runs of single agents may take, where that was configured."""
    return {
        key: seconds(role.timeout_minutes) for key, role in agents.items() if role.timeout_minutes is not None
    }


def seconds(minutes: float | None) -> float | None:
    """None for what is switched off."""
    return minutes * 60 if minutes else None
