"""The events of a chat, which are the only input of a decision apart from the chat itself, and their outcome."""

from typing import NamedTuple, TypeAlias

from fixloop.chat.sections import Result
from fixloop.chat.vocabulary import Role


class ChatRead(NamedTuple):
    """A role was shown the contract and every message so far."""

    by: Role


class Adopted(NamedTuple):
    """The present messages without front matter are from before the protocol (E45)."""


class MessageWritten(NamedTuple):
    """A role sends a message to another one."""

    by: Role
    to: Role
    purpose: str
    body: str
    """The text below the header line."""
    seq: int | None = None
    """The number that it must get; None: the next one."""
    branch: str | None = None
    """The sender's branch; None: unknown."""
    results: tuple[Result, ...] = ()
    """Results to add under GATES."""


class ChatClosed(NamedTuple):
    """A role ends the chat."""

    by: Role
    status: str
    """The decision's status: Completed, Deferred or Rejected (U8)."""
    summary: str
    """The text of SUMMARY.md; empty: the file exists already."""
    decision: str
    """The text of DECISION.md; empty: the file exists already."""


class UserAsked(NamedTuple):
    """The architect asks a person with a TO USER block (E20)."""

    text: str


ChatEvent: TypeAlias = ChatRead | Adopted | MessageWritten | ChatClosed | UserAsked


class Written(NamedTuple):
    """A file with a new text."""

    file: str
    text: str
    is_new: bool = True
    """It must not exist yet."""


class Prepended(NamedTuple):
    """A file that gets a text before its bytes, which do not change (K22)."""

    file: str
    text: str
    sha256: str
    """The digest of its bytes."""


class Outcome(NamedTuple):
    """The writes that follow from an event, in this order; after a crash between two, the next event completes them."""

    files: tuple[Written | Prepended, ...] = ()
    journal: tuple[str, ...] = ()
    """Lines to append, after the files."""
    contract: str | None = None
    """The new text of meta.yaml, written last."""
    seq: int = 0
    """The number of the message, whether posted now or before."""
    file: str = ""
