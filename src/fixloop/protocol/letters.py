"""Letters to agents outside, of the profiles whose steps are runs of agents: kept until a mailbox has taken them (A70).

Pure: what a letter is about, and the right to deliver it once. It carries ids only, and the same ones however often it
is sent: whoever reads it twice knows it again.
"""

from typing import Final, NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict

from fixloop.protocol.ticket import Ticket

__all__ = ["DELIVER", "About", "Letter", "letter_ticket", "letters_about", "number_of", "numbered"]

DELIVER: Final = "deliver"
"""The step that brings a letter."""


class Letter(BaseModel):
    """What an agent outside is told, as long as no mailbox has it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

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


class _Posting(Protocol):
    """A workflow that has letters to send."""

    @property
    def workflow(self) -> str: ...

    @property
    def queue(self) -> str: ...

    @property
    def iteration(self) -> int: ...

    @property
    def letters(self) -> tuple[Letter, ...]: ...


def letters_about(said: list[About], asked: dict[str, About]) -> list[About]:
    """
    One for each message, and one for each run that no message asks for.

    Args:
        said: the messages to agents outside.
        asked: by agent, the run that is asked of it.
    """
    told = {about.agent for about in said}
    return [*said, *(about for agent, about in asked.items() if agent not in told)]


def numbered(abouts: list[About], after: int) -> tuple[Letter, ...]:
    """Letters with the numbers that follow on `after`."""
    return tuple(Letter(number=number, **about._asdict()) for number, about in enumerate(abouts, after + 1))


def letter_ticket(state: _Posting, letter: Letter, priority: int, delay_seconds: float = 0.0) -> Ticket:
    """The right to deliver a letter once more."""
    return Ticket(
        id=f"{state.workflow}.letter.{letter.agent}.{letter.number}.{letter.attempt}",
        workflow=state.workflow,
        step=DELIVER,
        queue=f"{state.queue or 'fixloop'}.control",
        priority=priority,
        specialist=letter.agent,
        iteration=state.iteration,
        attempt=letter.attempt,
        delay_seconds=delay_seconds,
    )


def number_of(ticket: Ticket) -> int:
    """The number of the letter that a ticket delivers."""
    return int(ticket.id.split(".")[-2])
