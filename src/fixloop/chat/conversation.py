"""A chat as stored in its directory: the contract, the messages in order, the closing documents, the journal.

The journal is `.journal.jsonl`, one JSON object per line. It records who read what (E17, E22), the branch (E19, E23)
and digest (E29) of each message, which messages are older than the protocol (E45), and questions to a person (E20).
Without it the chat is the same, but less can be checked.
"""

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import takewhile
from typing import Any, Final, NamedTuple

from fixloop.chat.message import FileName, Front, Message, stamp
from fixloop.chat.meta import Contract, Meta
from fixloop.chat.vocabulary import ChatState, Finding, Role

JOURNAL: Final = ".journal.jsonl"


class Adopted(NamedTuple):
    """A file from before the protocol, as it was when the chat was adopted."""

    sha256: str
    size: int
    """In bytes; the migrated file ends with them."""


class Asked(NamedTuple):
    """The open TO USER block, and its time in the journal."""

    text: str
    at: str


class Journal(NamedTuple):
    read: Mapping[Role, int]
    """By role: the highest message that it has read, 0 for only the contract."""
    posted: Mapping[str, str]
    """By file: its digest when it was posted or first seen."""
    adopted: Mapping[str, Adopted]
    is_adopted: bool
    """Whether the chat was adopted, even if nothing in it is old."""
    is_closed: bool = False
    """Whether its end was recorded, even if meta.yaml does not have it yet."""
    asked: Asked | None = None
    is_opened: bool = False
    """Whether fixloop opened the chat, so that none of its messages is older than the protocol."""


def read_journal(text: str) -> Journal:
    """The journal in `text`; invalid lines, such as one that a crash cut short, are ignored."""
    found: list[dict[str, Any]] = []
    for line in text.split("\n"):
        with suppress(ValueError, RecursionError):
            document = json.loads(line)
            if isinstance(document, dict):
                found.append(document)
    read: dict[Role, int] = {}
    posted: dict[str, str] = {}
    adopted: dict[str, Adopted] = {}
    asked: Asked | None = None
    for document in found:
        match document:
            case {"did": "read", "by": str(by), "seq": int(seq)} if by in tuple(Role):
                read[Role(by)] = max(seq, read.get(Role(by), 0))
            case {"did": "posted", "file": str(file), "sha256": str(sha256)}:
                posted.setdefault(file, sha256)
                asked = None
            case {"did": "adopted", "files": dict(files)}:
                for name, facts in files.items():
                    match facts:
                        case {"sha256": str(sha256), "size": int(size)}:
                            adopted.setdefault(name, Adopted(sha256, size))
            case {"did": "asked", "text": str(text), "at": str(at)}:
                asked = Asked(text, at)
            case {"did": "closed"}:
                asked = None
    did = [document.get("did") for document in found]
    return Journal(read, posted, adopted, "adopted" in did, "closed" in did, asked, "opened" in did)


def entry(did: str, at: datetime, **facts: Any) -> str:
    """One line of a journal."""
    return json.dumps({"at": stamp(at), "did": did, **facts}, ensure_ascii=False) + "\n"


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Source(NamedTuple):
    """A file as it was read."""

    name: str
    content: bytes | None
    """None if it could not be read."""
    text: str | None
    """None if it could not be read or is no text."""
    modified: datetime
    findings: tuple[Finding, ...] = ()
    """Why not."""


class Posted(NamedTuple):
    """A message's file and its parsed content."""

    name: FileName
    source: Source
    message: Message | None
    """None if the file is no text."""

    @property
    def file(self) -> str:
        return self.source.name

    @property
    def front(self) -> Front | None:
        return self.message.front if self.message is not None else None

    @property
    def is_old(self) -> bool:
        """Whether it has no front matter: it is from before the protocol, or wrong."""
        return self.message is None or not self.message.has_front


@dataclass(frozen=True)
class Conversation:
    """Everything in a directory; decisions and checks see nothing else."""

    name: str
    """The directory's."""
    path: str
    """The directory's path, as shown in findings."""
    contract: Contract | None
    """None without a meta.yaml that is text."""
    messages: Sequence[Posted]
    """By number, then by name."""
    documents: dict[str, str]
    """SUMMARY.md and DECISION.md, if they exist and are not empty."""
    strangers: Sequence[str]
    """Names of the other files."""
    journal: Journal
    findings: Sequence[Finding]
    """Errors of reading."""

    @property
    def meta(self) -> Meta | None:
        return self.contract.meta if self.contract is not None else None

    @property
    def acceptance(self) -> tuple[str, ...]:
        """The criteria of the contract; none if it is invalid."""
        return self.meta.acceptance if self.meta is not None else ()

    @property
    def is_closed(self) -> bool:
        return self.contract is not None and self.contract.value("state") == ChatState.CLOSED

    @cached_property
    def last(self) -> Posted | None:
        return self.messages[-1] if self.messages else None

    @property
    def last_front(self) -> Front | None:
        return self.last.front if self.last is not None else None

    def turn(self, meta: Meta) -> Role:
        """Whose turn it is: the recipient of the last message (E31, G12)."""
        return self.last_front.recipient if self.last_front is not None else meta.owner

    @property
    def next_seq(self) -> int:
        return self.last.name.seq + 1 if self.last is not None else 1

    @property
    def called(self) -> str:
        """The CHAT argument of commands for this chat, quoted for a shell, if findings show its path."""
        return shlex.quote(self.path)

    @cached_property
    def old_until(self) -> int:
        """The number up to which messages count as older than the protocol without being adopted (E45): those before
        the first one with front matter, in a chat that fixloop has not opened."""
        if self.journal.is_opened or self.journal.is_adopted:
            return 0
        old = takewhile(lambda each: each.is_old, self.messages)
        return max((posted.name.seq for posted in old), default=0)

    def place(self, name: str) -> str:
        """The path of a file in the directory, as shown in findings."""
        return f"{self.path}/{name}"

    @property
    def unmarked(self) -> list[Posted]:
        """The messages without front matter that were not adopted."""
        return [posted for posted in self.messages if posted.is_old and not self.is_grandfathered(posted)]

    def is_grandfathered(self, posted: Posted) -> bool:
        """Whether it is from before the protocol (E45)."""
        return posted.file in self.journal.adopted
