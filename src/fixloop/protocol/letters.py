"""Letters to agents outside, of the profiles whose steps are runs of agents: kept until a mailbox has taken them (A70).

It carries ids only, and the same ones however often it is sent, so that an agent that reads it twice knows it again.
What it is about was said, and logged, by the commit that asked for it; whether it arrives is no second line.
"""

from typing import Any, Final, NamedTuple

from fixloop.protocol.event import Value
from fixloop.protocol.ticket import Ticket

DELIVER: Final = "deliver"
"""The step that brings a letter."""


class Letter(Value):
    """What an agent outside is told, as long as no mailbox has it."""

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
