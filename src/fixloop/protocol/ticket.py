"""The right to do one step once: what it is for and what limits it. Who holds it is the store's business."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

# The store joins these into keys with `|`, blanks and line ends.
_Word = Annotated[str, Field(pattern=r"^[^\s|]+$")]
_OptionalWord = Annotated[str, Field(pattern=r"^[^\s|]*$")]


class Ticket(BaseModel):
    """One piece of work that has to be done exactly once."""

    model_config = ConfigDict(frozen=True, extra="ignore")

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


def run_ticket(state: Any, agent: str, run: str, attempt: int, priority: int) -> Ticket:
    """
    The right to do a run of an agent, of a cycle or of handoffs.

    Args:
        run: the id of its present run and attempt.
    """
    limit = state.limits.seconds_of(agent)
    return Ticket(
        id=run,
        workflow=state.workflow,
        step="work",
        queue=own_queue(state),
        priority=priority,
        specialist=agent,
        iteration=state.iteration,
        attempt=attempt,
        limit_name=f"run/{agent}" if limit is not None else "",
        limit_seconds=limit,
    )
