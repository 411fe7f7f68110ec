"""The way of a letter to an agent outside: attempts, and what exhaustion leads to (A70, K5, K12).

What the letter is about was said, and logged, by the commit that asked for it; whether it arrives is no second line.
"""

from fixloop.protocol.handoff import events as ev
from fixloop.protocol.handoff.asking import ask_person
from fixloop.protocol.handoff.outcome import Draft
from fixloop.protocol.letters import Letter

__all__ = ["stored", "undelivered"]


def stored(draft: Draft, event: ev.MessageStored) -> None:
    """The mailbox has it: that is its delivery (G1)."""
    letter = _open(draft, event.number)
    if letter is not None:
        draft.note(f"the mailbox of {letter.agent} took {letter.message_id} (attempt {letter.attempt})")
        _take_out(draft, letter)


def undelivered(draft: Draft, event: ev.DeliveryFailed) -> None:
    """The mailbox did not take it: again, with longer pauses, then a person is asked, if its agent has not begun."""
    letter, limits = _open(draft, event.number), draft.state.limits
    if letter is None:
        return
    draft.note(f"delivery of {letter.message_id} failed (attempt {letter.attempt}): {event.error}")
    if letter.attempt < limits.delivery_attempts:
        again = letter.model_copy(update={"attempt": letter.attempt + 1})
        draft.update(letters=tuple(again if kept == letter else kept for kept in draft.state.letters))
        draft.deliver(again, limits.backoff_seconds(letter.attempt))
        return
    _take_out(draft, letter)
    agent = draft.state.agent(letter.agent)
    if agent.asked and agent.status != "active":
        draft.drop(letter.agent)
        draft.record("error_occurred", letter.agent, event.error)
        ask_person(
            draft, letter.agent, "communication_error", f"{letter.agent} was not reached: {event.error}"
        )


def _open(draft: Draft, number: int) -> Letter | None:
    """None where its agent has answered meanwhile."""
    return next((letter for letter in draft.state.letters if letter.number == number), None)


def _take_out(draft: Draft, letter: Letter) -> None:
    draft.update(letters=tuple(kept for kept in draft.state.letters if kept != letter))
