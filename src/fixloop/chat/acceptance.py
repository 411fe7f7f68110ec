"""How the acceptance criteria of a contract went, as the engineer's messages say under GATES (E24)."""

from collections.abc import Iterator

from fixloop.chat.conversation import Conversation
from fixloop.chat.roles import Role
from fixloop.chat.sections import Result, results

__all__ = ["proofs", "unproven"]


def proofs(chat: Conversation) -> dict[str, Result]:
    """By acceptance criterion: the last result that was given for it."""
    criteria = chat.meta.acceptance if chat.meta is not None else ()
    # The longest first: `make test` is not what a line about `make test-all` is about.
    by_length = sorted(criteria, key=len, reverse=True)
    found: dict[str, Result] = {}
    for result in _told(chat):
        said = _folded(result.text)
        meant = next((each for each in by_length if said.startswith(_folded(each))), None)
        if meant is not None:
            found[meant] = result
    return found


def unproven(chat: Conversation) -> list[str]:
    """The criteria without a result."""
    found = proofs(chat)
    return [each for each in (chat.meta.acceptance if chat.meta is not None else ()) if each not in found]


def _told(chat: Conversation) -> Iterator[Result]:
    for posted in chat.messages:
        front = posted.message.front if posted.message is not None else None
        if posted.message is not None and front is not None and front.sender is Role.ENGINEER:
            yield from results(posted.message.body)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
