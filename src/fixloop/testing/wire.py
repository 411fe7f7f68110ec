"""Reads the traffic between a worker and Redis that a chaos run must understand: claims, commits and hints.

Parses requests as RESP, whole commands only; everything else passes unread. Identifies scripts by their digests and
messages by kombu's JSON, without interpreting steps.
"""

import json
import re
import uuid
from collections.abc import Container
from hashlib import sha1
from typing import Any, Final, Literal, NamedTuple, get_args

import hiredis

from fixloop.store.scripts import source

PUSHED: Final = b":1\r\n"
NOTHING_TAKEN: Final = b"*-1\r\n"
"""Redis's reply to a client that waited without getting a message."""
NO_ROOM: Final = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"

BEGUN: Final = "bare:begun"
EFFECTS: Final = "bare:effects"
"""The keys in which the steps of a bare chain count starts and effects: its claims and commits."""

_COUNTS: Final[dict[bytes, Literal["claim", "commit"]]] = {
    BEGUN.encode(): "claim",
    EFFECTS.encode(): "commit",
}
_Scripted = Literal["claim", "commit", "sweep"]
_SCRIPTS: Final[dict[bytes, _Scripted]] = {
    sha1(source(name).encode(), usedforsecurity=False).hexdigest().encode(): name
    for name in get_args(_Scripted)
}
_ARTIFACTS: Final = re.compile(rb"fixloop:\{?\w+\}?:artifacts?:")
_STEP: Final = re.compile(
    r"[0-9a-f]{8}-\d+-\d+\.(?:[a-z0-9-]+\.(?P<step>[a-z]+)\.\d+\.\d+(?:\.e\d+)?|(?P<end>finish)\.\d+|(?P<run>[a-z0-9-]+\.\d+\.\d+))"
)
"""Steps of the validation loop; the end of a cycle; runs of agents, for the tickets of other profiles."""
_ID: Final = re.compile(rb'"id": ?"([\w.-]+)"')
"""Celery writes JSON with spaces and without."""
_STATUS: Final = re.compile(rb"\*\d+\r\n\$\d+\r\n([a-z]+)\r\n")


class Request(NamedTuple):
    kind: Literal["claim", "commit", "sweep", "hint", "pop", "unacked", "artifact"]
    ticket: str = ""
    """The ticket it is about; for a sweep, the key of the shard."""
    words: tuple[bytes, ...] = ()
    """The command itself."""
    claims: str = ""
    """The ticket that a commit also claims."""


class Requests:
    def __init__(self) -> None:
        self._reader = hiredis.Reader()

    def read(self, data: bytes) -> list[Request]:
        """The relevant requests completed by `data`, in order."""
        self._reader.feed(data)
        found = []
        while (words := self._reader.gets()) is not False:
            request = _request(words)
            if request is not None:
                found.append(request)
        return found


def _request(words: Any) -> Request | None:
    if not isinstance(words, list) or not words:
        return None
    name = words[0]
    if name == b"EVALSHA" and words[1] in _SCRIPTS:
        kind = _SCRIPTS[words[1]]
        first = words[3] if kind == "sweep" else words[3 + int(words[2])]
        if kind == "commit":
            change = json.loads(first)
            return Request(kind, change["ticket"], claims=change["claim"])
        return Request(kind, first.decode())
    if name == b"LPUSH":
        return Request("hint", _offered_ticket(words[2]), tuple(words))
    if name == b"HINCRBY" and words[1] in _COUNTS:
        return Request(_COUNTS[words[1]], words[2].decode())
    if name == b"BRPOP":
        return Request("pop")
    if name == b"HSET" and words[1] == b"unacked":
        return Request("unacked", _offered_ticket(words[3]))
    if name in (b"SET", b"HSET") and _ARTIFACTS.match(words[1]):
        return Request("artifact", "", tuple(words))
    return None


def _offered_ticket(data: bytes) -> str:
    """The ticket that a message offers; in `unacked`, the message is in a list with its origin."""
    message = json.loads(data)
    if isinstance(message, list):
        message = message[0]
    headers = message.get("headers", {}) if isinstance(message, dict) else {}
    return str(headers.get("id", ""))


def answer_to(reply: bytes) -> str:
    """The status in the reply to a claim or a commit; `ok` for a count, empty for an error."""
    if reply.startswith(b":"):
        return "ok"
    found = _STATUS.match(reply)
    return found[1].decode() if found else ""


def has_claimed(reply: bytes) -> bool:
    """Whether a commit got the ticket that it claimed."""
    answer = _first_reply(reply)
    return isinstance(answer, list) and bool(answer[-1])


def is_whole(replies: bytes) -> bool:
    return _first_reply(replies) is not False


def _first_reply(replies: bytes) -> Any:
    reader = hiredis.Reader()
    reader.feed(replies)
    return reader.gets()


def has_swept(reply: bytes) -> bool:
    return reply.startswith(b"*") and reply.partition(b"\r\n")[2].startswith(b":1\r\n")


def step_of(ticket: str) -> str:
    """The step in a ticket's id; empty for another text."""
    found = _STEP.fullmatch(ticket)
    if found is None:
        return ""
    return "work" if found["run"] else found["step"] or found["end"]


def ticket_in(data: bytes, tickets: Container[str]) -> str:
    """The one of `tickets` that a message in `data` offers; empty if none does."""
    return next((each.decode() for each in _ID.findall(data) if each.decode() in tickets), "")


def twice(request: Request) -> tuple[bytes, ...]:
    name, queue, data = request.words
    message = json.loads(data)
    message["properties"]["delivery_tag"] = str(uuid.uuid4())
    return name, queue, json.dumps(message).encode()


def encoded(words: tuple[bytes, ...]) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
