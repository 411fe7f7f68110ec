"""What happens to a chat: the only input of a decision apart from the chat itself, and what comes of it."""

from typing import NamedTuple, TypeAlias

from fixloop.chat.roles import Role
from fixloop.chat.sections import Result


class ChatRead(NamedTuple):
    """A role was shown the contract and every message so far."""

    by: Role


class Adopted(NamedTuple):
    """The messages without front matter that are here now are from before the protocol (E45)."""


class MessageWritten(NamedTuple):
    """A role has a message for another one."""

    by: Role
    to: Role
    purpose: str
    body: str
    """Below the header line."""
    seq: int | None = None
    """The number it has to get; None: the next one."""
    branch: str | None = None
    """Where its sender works; None: nobody can tell."""
    results: tuple[Result, ...] = ()
    """What is to be added under GATES."""


class ChatClosed(NamedTuple):
    """A role ends the chat."""

    by: Role
    status: str
    """Of the decision: Completed, Deferred or Rejected (U8)."""
    summary: str
    """The text of SUMMARY.md; empty: the file is there already."""
    decision: str
    """The text of DECISION.md; empty: the file is there already."""


class UserAsked(NamedTuple):
    """The architect turns to a person with a TO USER block (E20)."""

    text: str


ChatEvent: TypeAlias = ChatRead | Adopted | MessageWritten | ChatClosed | UserAsked


class Written(NamedTuple):
    """A file with a new text."""

    file: str
    text: str
    is_new: bool = True
    """It must not be there yet."""


class Prepended(NamedTuple):
    """A file that gets a text before the bytes it has, which stay as they are (K22)."""

    file: str
    text: str
    sha256: str
    """Of the bytes it has."""


class Outcome(NamedTuple):
    """What follows from an event, in this order; a crash between two leaves what the next event repairs."""

    files: tuple[Written | Prepended, ...] = ()
    journal: tuple[str, ...] = ()
    """Lines to append, after the files."""
    contract: str | None = None
    """The new text of meta.yaml, last of all."""
    seq: int = 0
    """The number of the message that was posted, or was there already."""
    file: str = ""
