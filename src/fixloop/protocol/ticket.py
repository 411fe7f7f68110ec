"""The right to do one step once: what it is for and what limits it. Who holds it is the store's business.

And what one such step brings: letters to agents outside, of the profiles whose steps are runs of agents, kept until a
mailbox has taken them (A70). Whether one arrives is no second line of the log.
"""

from enum import StrEnum
from typing import Annotated, Any, Final, NamedTuple

from pydantic import Field

from fixloop.protocol.event import Value

DELIVER: Final = "deliver"
"""The step that brings a letter."""
PUSH: Final = "push"
"""The step that pushes the branch of a workflow of agents before it ends well."""
NOTIFY: Final = "notify"
"""The step that runs the notify command; what comes of it decides nothing."""
ATTEND: Final = "attend"
"""The step that asks whether anybody waits for a workflow that works for another one."""
LOOK_AGAIN_SECONDS: Final = 60.0
"""So late, at worst, a word between a workflow and its child is made up for where it was lost."""
LEAST_URGENT: Final = 9

# The store joins these into keys with `|`, blanks and line ends.
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
        """kombu's Redis transport pops step 0 first, so the smallest number is the most urgent (K13)."""
        return {"critical": 0, "high": 3, "medium": 6, "low": 9}[self.value]


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


def work_id(state: Any, agent: Any) -> str:
    """The ticket of an agent's present run and attempt."""
    return f"{state.workflow}.{agent.name}.{agent.run}.{agent.attempt}"


def agent_ticket(state: Any, id: str, step: str, **further: Any) -> Ticket:
    """A ticket of a cycle or of handoffs: in its own queue or its profile's, as urgent as it is, where `further` does
    not say otherwise."""
    queue = state.queue or f"fixloop.{state.profile}"
    facts = {"queue": queue, "priority": state.urgency, "iteration": state.iteration} | further
    return Ticket(id=id, workflow=state.workflow, step=step, **facts)


def work_ticket(state: Any, agent: Any) -> Ticket:
    """The right to do an agent's present run and attempt, of a cycle or of handoffs."""
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
    """The right of a workflow that works for another one to ask whether anybody still waits for it; `version` is its
    own, as the commit that makes the ticket leaves it.

    It is made with the workflow, and again where all its tickets are withdrawn, so that one that waits for a person
    learns of its parent's end by itself. Its holder looks and puts it off again; no history tells of that."""
    return Ticket(
        id=f"{state.workflow}.{ATTEND}.{version}",
        workflow=state.workflow,
        step=ATTEND,
        queue=f"{state.queue or 'fixloop'}.control",
        priority=LEAST_URGENT,
        delay_seconds=LOOK_AGAIN_SECONDS,
    )


def line_of(ticket: Ticket) -> int:
    """The number of the line that a ticket tells a person of."""
    return int(ticket.id.rpartition(".")[2])


class Letter(Value):
    """What an agent outside is told, as long as no mailbox has it: ids only, and the same however often it is sent, so
    that an agent that reads it twice knows it again."""

    number: int
    """Running number in its workflow."""
    agent: str
    message_id: str
    uid: str
    kind: str
    """Of the message, such as `cycle.input`; `cycle.work`, `handoff.work` where only the run itself is asked for."""
    attempt: int = 1


class About(NamedTuple):
    """What a letter is to be about."""

    agent: str
    message_id: str
    uid: str
    kind: str


def letter_id(state: Any, letter: Letter) -> str:
    """The ticket of a letter's present attempt."""
    return f"{state.workflow}.letter.{letter.agent}.{letter.number}.{letter.attempt}"


def number_of(ticket: Ticket) -> int:
    """The number of the letter that a ticket delivers."""
    return int(ticket.id.split(".")[-2])
