"""Letters to agents outside, of the profiles whose steps are runs of agents: kept until a mailbox has taken them (A70).

Pure: what a letter is about, the right to deliver it once, and what follows from its delivery. It carries ids only, and
the same ones however often it is sent: whoever reads it twice knows it again. What it is about was said, and logged, by
the commit that asked for it; whether it arrives is no second line.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict

from fixloop.protocol.ticket import Ticket

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


class _Draft(Protocol):
    """What is written on, of either profile."""

    state: Any

    def update(self, **changes: Any) -> None: ...

    def note(self, text: str) -> None: ...

    def deliver(self, letter: Letter, delay_seconds: float = 0.0) -> None: ...


class _Stored(Protocol):
    """The event that tells that a mailbox has a letter, of either profile."""

    @property
    def number(self) -> int: ...


def post(draft: _Draft, before: Any, said: list[About], runs: Mapping[str, str]) -> list[str]:
    """
    Write a letter for each message to an agent outside, and for each run that no message asks for.

    Args:
        before: the state that the decision began with; letters that an answer came before are void.
        said: the messages to agents outside.
        runs: by agent outside, the id of the run that was asked of it.

    Returns:
        The tickets of the void letters.
    """
    state = draft.state
    is_over = state.ended or bool(state.closing)
    void = [
        letter
        for letter in state.letters
        if is_over or (before.agent(letter.agent).asked and not state.agent(letter.agent).asked)
    ]
    told = {about.agent for about in said}
    work = [About(name, run, run, f"{state.profile}.work") for name, run in runs.items() if name not in told]
    new = tuple(
        Letter(number=number, **about._asdict())
        for number, about in enumerate([] if is_over else [*said, *work], state.posted + 1)
    )
    kept = tuple(letter for letter in state.letters if letter not in void)
    draft.update(letters=(*kept, *new), posted=state.posted + len(new))
    for letter in new:
        draft.deliver(letter)
    return [letter_id(state, letter) for letter in void]


def letter_id(state: Any, letter: Letter) -> str:
    """The ticket of a letter's present attempt."""
    return f"{state.workflow}.letter.{letter.agent}.{letter.number}.{letter.attempt}"


def letter_ticket(state: Any, letter: Letter, priority: int, delay_seconds: float = 0.0) -> Ticket:
    """The right to deliver a letter once more."""
    return Ticket(
        id=letter_id(state, letter),
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


def stored(draft: _Draft, event: _Stored) -> None:
    """The mailbox has it: that is its delivery (G1)."""
    letter = _open(draft, event.number)
    if letter is not None:
        draft.note(f"the mailbox of {letter.agent} took {letter.message_id} (attempt {letter.attempt})")
        _replace(draft, letter)


def given_up(draft: _Draft, number: int, error: str) -> Letter | None:
    """
    No mailbox took it: again, with longer pauses, as often as it may be tried (A70, K5).

    Returns:
        The letter whose attempts are spent, taken out; None where it is tried again, or no longer needed.
    """
    letter, limits = _open(draft, number), draft.state.limits
    if letter is None:
        return None
    draft.note(f"delivery of {letter.message_id} failed (attempt {letter.attempt}): {error}")
    if letter.attempt >= limits.delivery_attempts:
        _replace(draft, letter)
        return letter
    again = letter.model_copy(update={"attempt": letter.attempt + 1})
    _replace(draft, letter, again)
    draft.deliver(again, limits.backoff_seconds(letter.attempt))
    return None


def _open(draft: _Draft, number: int) -> Letter | None:
    """None where its agent has answered meanwhile."""
    return next((letter for letter in draft.state.letters if letter.number == number), None)


def _replace(draft: _Draft, letter: Letter, *by: Letter) -> None:
    letters = draft.state.letters
    at = letters.index(letter)
    draft.update(letters=(*letters[:at], *by, *letters[at + 1 :]))
