"""The right to do one step once: what it is for and what limits it. Who holds it is the store's business."""

from typing import Annotated, Any, Final

from pydantic import Field

from fixloop.protocol.event import Value

PUSH: Final = "push"
"""The step that pushes the branch of a workflow of agents before it ends well."""
NOTIFY: Final = "notify"
"""The step that runs the notify command; what comes of it decides nothing."""

# The store joins these into keys with `|`, blanks and line ends.
_Word = Annotated[str, Field(pattern=r"^[^\s|]+$")]
_OptionalWord = Annotated[str, Field(pattern=r"^[^\s|]*$")]


class Ticket(Value):
    """One piece of work that has to be done exactly once."""

    id: _Word
    """`{workflow}.{...}`: begins with the workflow's id, and is the id of the Celery task."""
    workflow: _Word
    step: str
    queue: _Word
    priority: Annotated[int, Field(ge=0, le=9)] = 3
    """0 is served first (the Redis transport's order)."""
    specialist: str = ""
    iteration: int = 0
    attempt: int = 1
    delay_seconds: float = 0.0
    """Neither hinted nor claimed earlier than this after the commit that made it, in engine time."""
    limit_name: _OptionalWord = ""
    limit_seconds: float | None = None
    """Each new claim sets the deadline `limit_name` this long after it: clocks start with the work (K34)."""


def own_queue(state: Any) -> str:
    """Where the work of a cycle or of handoffs waits: in the workflow's own queue, else in its profile's."""
    return state.queue or f"fixloop.{state.profile}"


def work_id(state: Any, agent: Any) -> str:
    """The ticket of an agent's present run and attempt."""
    return f"{state.workflow}.{agent.name}.{agent.run}.{agent.attempt}"


def work_ticket(state: Any, agent: Any) -> Ticket:
    """The right to do an agent's present run and attempt, of a cycle or of handoffs."""
    limit = state.limits.seconds_of(agent.name)
    return Ticket(
        id=work_id(state, agent),
        workflow=state.workflow,
        step="work",
        queue=own_queue(state),
        priority=state.urgency,
        specialist=agent.name,
        iteration=state.iteration,
        attempt=agent.attempt,
        limit_name=f"run/{agent.name}" if limit is not None else "",
        limit_seconds=limit,
    )


def push_ticket(state: Any, attempt: int, delay_seconds: float) -> Ticket:
    """The right to push a workflow's branch once more."""
    return Ticket(
        id=f"{state.workflow}.push.{attempt}",
        workflow=state.workflow,
        step=PUSH,
        queue=own_queue(state),
        priority=state.urgency,
        iteration=state.iteration,
        attempt=attempt,
        delay_seconds=delay_seconds,
    )


def notify_ticket(state: Any) -> Ticket:
    """The right to tell a person, once, of the line that was said last."""
    return Ticket(
        id=f"{state.workflow}.{NOTIFY}.{state.lines}",
        workflow=state.workflow,
        step=NOTIFY,
        queue=own_queue(state),
        priority=0,  # an escalation is critical (K13)
        iteration=state.iteration,
    )


def line_of(ticket: Ticket) -> int:
    """The number of the line that a ticket tells a person of."""
    return int(ticket.id.rpartition(".")[2])
