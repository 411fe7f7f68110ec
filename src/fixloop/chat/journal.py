"""The journal of a chat's directory, in addition to its messages: `.journal.jsonl`, one JSON object per line.

It records who read what (E17, E22), the branch (E19, E23) and digest (E29) of each message, which messages are older
than the protocol (E45), and questions to a person (E20). Without it the chat is the same, but less can be checked.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, NamedTuple

from fixloop.chat.message import stamp
from fixloop.chat.vocabulary import Role

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
