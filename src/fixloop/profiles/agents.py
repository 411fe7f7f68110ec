"""What the profiles have in common whose steps are runs of named agents: whose a ticket is, and whose its result."""

from collections.abc import Callable
from typing import Final

from fixloop.profiles.profile import AnyEvent
from fixloop.protocol.refusals import Unexpected
from fixloop.protocol.ticket import Ticket

ORCHESTRATOR: Final = "orchestrator"


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
