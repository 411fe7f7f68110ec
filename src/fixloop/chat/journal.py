"""What a chat's directory remembers in addition to its messages: `.journal.jsonl`, one JSON object a line.

Who read what (E17, E22), on which branch a message was written (E19, E23) and with which digest (E29), what is older
than the protocol (E45), and what a person was asked (E20). Without it a chat is the same, and less can be checked.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, NamedTuple

from fixloop.chat.message import stamp
from fixloop.chat.roles import Role

JOURNAL: Final = ".journal.jsonl"


class Adopted(NamedTuple):
    """A file from before the protocol, as it was when the chat was adopted."""

    sha256: str
    size: int
    """In bytes; the migrated file ends with them."""


class Asked(NamedTuple):
    """The TO USER block that nobody has gone on after, and its time as the journal has it."""

    text: str
    at: str


class Journal(NamedTuple):
    read: Mapping[Role, int]
    """By role: the highest message it has read, 0 for the contract alone."""
    posted: Mapping[str, str]
    """By file: the digest it had when it was posted or first seen."""
    adopted: Mapping[str, Adopted]
    is_adopted: bool
    """Whether somebody said what is old here, even if nothing was."""
    is_closed: bool = False
    """Whether its end was written down, even if meta.yaml does not say so yet."""
    asked: Asked | None = None
    is_opened: bool = False
    """Whether the chat began with its contract, so that none of its messages is older than the protocol."""


def read_journal(text: str) -> Journal:
    """The journal in `text`; lines that are none, such as one that a crash cut short, say nothing."""
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
