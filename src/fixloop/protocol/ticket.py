"""The ticket: the right to do one step once, what it is for and what limits it. The store knows its holder.

Also letters to outside agents, of the profiles whose steps are runs of agents; they are kept until a mailbox has taken
them (A70). Delivering one is no second line of the log.
"""

from enum import StrEnum
from typing import Annotated, Any, Final, NamedTuple

from pydantic import Field

from fixloop.protocol.event import Value

DELIVER: Final = "deliver"
"""The step that delivers a letter."""
PUSH: Final = "push"
"""The step that pushes the branch of a workflow of agents before its successful end."""
NOTIFY: Final = "notify"
"""The step that runs the notify command; its result decides nothing."""
ATTEND: Final = "attend"
"""The step that checks whether a workflow's parent still waits for it."""
LOOK_AGAIN_SECONDS: Final = 60.0
"""The longest time until a lost notice between a workflow and its child is made up for."""
LEAST_URGENT: Final = 9

# The store joins these into keys with `|`, spaces and line ends.
_Word = Annotated[str, Field(pattern=r"^[^\s|]+$")]
_OptionalWord = Annotated[str, Field(pattern=r"^[^\s|]*$")]


class Priority(StrEnum):
    """How urgent a message is (A17, K13)."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def broker(self) -> int:
        """The broker's number: kombu's Redis transport pops step 0 first, so the smallest is the most urgent (K13)."""
        return {"critical": 0, "high": 3, "medium": 6, "low": 9}[self.value]


class Ticket(Value):
    """One piece of work that has to be done exactly once."""

    id: _Word
    """`{workflow}.{...}`: begins with the workflow's id; also the id of the Celery task."""
    workflow: _Word
    step: str
    queue: _Word
    priority: Annotated[int, Field(ge=0, le=9)] = 3
    """0 is served first (the Redis transport's order)."""
    specialist: str = ""
    iteration: int = 0
    attempt: int = 1
    delay_seconds: float = 0.0
    """It can be hinted or claimed only this long after the commit that made it, in engine time."""
    limit_name: _OptionalWord = ""
    limit_seconds: float | None = None
    """Each new claim sets the deadline `limit_name` this long after it: clocks start with the work (K34)."""


def work_id(state: Any, agent: Any) -> str:
    """The id of the ticket for an agent's current run and attempt."""
    return f"{state.workflow}.{agent.name}.{agent.run}.{agent.attempt}"


def agent_ticket(state: Any, id: str, step: str, **further: Any) -> Ticket:
    """A ticket of a cycle or of handoffs; unless `further` says otherwise, in the workflow's or profile's queue and
    with the workflow's priority."""
    queue = state.queue or f"fixloop.{state.profile}"
    facts = {"queue": queue, "priority": state.urgency, "iteration": state.iteration} | further
    return Ticket(id=id, workflow=state.workflow, step=step, **facts)


def work_ticket(state: Any, agent: Any) -> Ticket:
    """The ticket for an agent's current run and attempt, in a cycle or handoffs."""
    limit = state.limits.seconds_of(agent.name)
    return agent_ticket(
        state,
        work_id(state, agent),
        "work",
        specialist=agent.name,
        attempt=agent.attempt,
        limit_name=f"run/{agent.name}" if limit is not None else "",
        limit_seconds=limit,
    )


def attend_ticket(state: Any, version: int) -> Ticket:
    """The ticket of a child workflow that checks whether its parent still waits; `version` is the child's own.

    It is made with the workflow, and again when all its tickets are withdrawn, so that a child that waits for a person
    notices its parent's end. Its holder checks and delays it again; the history does not record that.
    """
    return Ticket(
        id=f"{state.workflow}.{ATTEND}.{version}",
        workflow=state.workflow,
        step=ATTEND,
        queue=f"{state.queue or 'fixloop'}.control",
        priority=LEAST_URGENT,
        delay_seconds=LOOK_AGAIN_SECONDS,
    )


def line_of(ticket: Ticket) -> int:
    """The number of the line about which a ticket notifies a person."""
    return int(ticket.id.rpartition(".")[2])


class Letter(Value):
    """A message to an outside agent that no mailbox has yet: only ids, and identical each time it is sent, so that an
    agent recognises a repetition."""

    number: int
    """Running number in its workflow."""
    agent: str
    message_id: str
    uid: str
    kind: str
    """Of the message, such as `cycle.input`; `cycle.work` or `handoff.work` if only the run is requested."""
    attempt: int = 1


class About(NamedTuple):
    """The subject of a letter."""

    agent: str
    message_id: str
    uid: str
    kind: str


def letter_id(state: Any, letter: Letter) -> str:
    """The id of the ticket for a letter's current attempt."""
    return f"{state.workflow}.letter.{letter.agent}.{letter.number}.{letter.attempt}"


def number_of(ticket: Ticket) -> int:
    """The number of the letter that a ticket delivers."""
    return int(ticket.id.split(".")[-2])
