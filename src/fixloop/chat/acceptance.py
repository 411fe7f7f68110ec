"""How the acceptance criteria of a contract went, as the engineer's messages say under GATES (E24)."""

from fixloop.chat.conversation import Conversation
from fixloop.chat.roles import Role
from fixloop.chat.sections import Result, results


def declared(text: str, by: Role, file: str = "") -> str:
    """A result with who gave it: fixloop has not run the criterion itself."""
    own = text.removesuffix(f" (declared by {by})")
    return f"{own} (declared by {by}{f' in {file}' if file else ''})"


def proofs(chat: Conversation) -> dict[str, Result]:
    """By acceptance criterion: the last result that was given for it, with who gave it and where."""
    criteria = chat.meta.acceptance if chat.meta is not None else ()
    # The longest first: `make test` is not what a line about `make test-all` is about.
    by_length = sorted(criteria, key=len, reverse=True)
    found: dict[str, Result] = {}
    for posted in chat.messages:
        front = posted.message.front if posted.message is not None else None
        if posted.message is None or front is None or front.sender is not Role.ENGINEER:
            continue
        for result in results(posted.message.body):
            said = _folded(result.text)
            meant = next((each for each in by_length if said.startswith(_folded(each))), None)
            if meant is not None:
                found[meant] = result._replace(text=declared(result.text, front.sender, posted.file))
    return found


def unproven(chat: Conversation) -> list[str]:
    """The criteria without a result."""
    found = proofs(chat)
    return [each for each in (chat.meta.acceptance if chat.meta is not None else ()) if each not in found]


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
