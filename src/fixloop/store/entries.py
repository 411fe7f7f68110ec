"""How history entries, snapshots and artifacts are stored as bytes, and how a history's chain is checked.

Pure. An entry's stored bytes hold the digest of the bytes before it and of the state after it, the workflow's
head the digest of the last, so that no byte of a history can change unseen.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

from pydantic_core import PydanticSerializationError, to_json

from fixloop.errors import ProtocolError
from fixloop.store.records import Commit, Entry

__all__ = [
    "ARTIFACT_LIMIT_BYTES",
    "ENTRY_LIMIT_BYTES",
    "RawHistory",
    "digest_of",
    "entry_of",
    "excerpt",
    "inflate",
    "named",
    "opened",
    "pack",
    "problems",
]

ENTRY_LIMIT_BYTES: Final = 16 * 1024
"""Larger entries are kept as artifacts: a list is read as a whole."""
ARTIFACT_LIMIT_BYTES: Final = 16 * 1024 * 1024

# Level 1 costs half the time of 6 and 5 % more bytes on texts of a few KB.
_LEVEL: Final = 1

Fetch = Callable[[str], bytes | None]


class RawHistory(NamedTuple):
    """A workflow as stored, read in one transaction."""

    version: int
    head: str
    snapshot: bytes
    entries: Sequence[bytes]


def digest_of(data: bytes) -> str:
    """sha256 in hex: the one digest of the store."""
    return sha256(data).hexdigest()


def pack(data: bytes) -> bytes:
    """The stored form of a snapshot or artifact."""
    return zlib.compress(data, _LEVEL)


def inflate(stored: bytes) -> bytes | None:
    """What `pack` packed, or None when the bytes are damaged."""
    try:
        return zlib.decompress(stored)
    except zlib.error:
        return None


def entry_of(commit: Commit, head: str, put_artifact: Callable[[str, bytes], str]) -> bytes:
    """
    The stored entry of a commit after `head`; a large one is an artifact, with a stub in its place.

    Raises:
        ProtocolError: the entry is not JSON, or too large even for an artifact.
    """
    place = {"seq": commit.expected_version + 1, "prev": head, "state": digest_of(commit.snapshot)}
    entry = pack(_json({**commit.entry, **place}))
    if len(entry) <= ENTRY_LIMIT_BYTES:
        return entry
    whole = _json(commit.entry)
    if len(whole) > ARTIFACT_LIMIT_BYTES:
        raise ProtocolError(f"a history entry of {len(whole)} bytes is too large; make its parts artifacts")
    kept = {name: commit.entry[name] for name in ("at", "artifacts") if name in commit.entry}
    return pack(_json({**kept, **place, "whole": put_artifact(commit.workflow, whole)}))


def excerpt(data: bytes) -> bytes:
    """`data`, or its beginning and end around a marker when it is over the limit of an artifact."""
    if len(data) <= ARTIFACT_LIMIT_BYTES:
        return data
    marker = b"\n[fixloop left out the middle of %d bytes; the limit is %d]\n" % (
        len(data),
        ARTIFACT_LIMIT_BYTES,
    )
    half = (ARTIFACT_LIMIT_BYTES - len(marker)) // 2
    return data[:half] + marker + data[-half:]


def opened(stored: bytes, fetch: Fetch) -> Entry:
    """
    The entry in `stored`; `fetch` gets the artifact of one that was too large for the list.

    Raises:
        ProtocolError: the bytes are damaged.
    """
    content = _content(stored)
    if content is not None and "whole" in content:
        whole = _parsed(fetch(content["whole"]))
        content = None if whole is None else {**content, **whole}
    if content is None:
        raise ProtocolError("a history entry is damaged; `fixloop audit verify` names it")
    seq, prev, state = content.pop("seq"), content.pop("prev"), content.pop("state")
    content.pop("whole", None)
    return Entry(seq=seq, body=content, prev=prev, state=state, digest=digest_of(stored))


def problems(raw: RawHistory, fetch: Fetch) -> list[str]:
    """What is wrong with a history, oldest first; empty when every byte is what was committed."""
    found = list(_chain_problems(raw))
    found.reverse()
    found.extend(_state_problems(raw))
    found.extend(_artifact_problems(raw, fetch))
    return found


def _chain_problems(raw: RawHistory) -> Iterator[str]:
    """Walk back from the head: each entry is vouched for by the one after it."""
    seq, vouched, missing = raw.version, raw.head, raw.version - len(raw.entries)
    for stored in reversed(raw.entries):
        content = _content(stored)
        if vouched and digest_of(stored) != vouched:
            gap = seq - content["seq"] if content is not None else 0
            if 0 < gap <= missing:
                yield from _missing(seq - gap + 1, seq)
                seq, missing = seq - gap, missing - gap
            else:
                yield f"entry {seq} was changed: its bytes are not those that were committed"
        elif content is None:
            yield f"entry {seq} cannot be read"
        vouched = content["prev"] if content is not None else ""
        seq -= 1
    if seq < 0:
        yield f"{-seq} entries were added that no commit made"
    yield from _missing(1, seq)


def _missing(first: int, last: int) -> Iterator[str]:
    return (f"entry {seq} is missing" for seq in range(last, first - 1, -1))


def _state_problems(raw: RawHistory) -> Iterator[str]:
    state = inflate(raw.snapshot)
    last = _content(raw.entries[-1]) if raw.entries else None
    if state is None:
        yield "the snapshot cannot be read"
    elif last is not None and last["seq"] == raw.version and digest_of(state) != last["state"]:
        yield f"the snapshot was changed: it is not the state that entry {raw.version} recorded"


def _artifact_problems(raw: RawHistory, fetch: Fetch) -> Iterator[str]:
    seen: set[str] = set()
    for content in filter(None, map(_content, raw.entries)):
        for digest in _named(content):
            if digest in seen:
                continue
            seen.add(digest)
            data = fetch(digest)
            if data is None:
                yield f"artifact {digest}, named by entry {content['seq']}, is missing or cannot be read"
            elif digest_of(data) != digest:
                yield f"artifact {digest}, named by entry {content['seq']}, was changed"


def named(entries: Iterable[bytes]) -> Iterator[str]:
    """The artifacts that stored entries name, as often as they do; a damaged entry names none."""
    return (digest for content in filter(None, map(_content, entries)) for digest in _named(content))


def _named(content: Mapping[str, Any]) -> Iterator[str]:
    listed = content.get("artifacts")
    if isinstance(listed, list):
        yield from (digest for digest in listed if isinstance(digest, str))
    if isinstance(content.get("whole"), str):
        yield content["whole"]


def _content(stored: bytes) -> dict[str, Any] | None:
    """An entry's content with the store's own keys in place, or None when it is damaged."""
    content = _parsed(inflate(stored))
    if content is None or not isinstance(content.get("seq"), int):
        return None
    return content if all(isinstance(content.get(key), str) for key in ("prev", "state")) else None


def _parsed(data: bytes | None) -> dict[str, Any] | None:
    try:
        content = json.loads(data or b"")
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def _json(content: Mapping[str, Any]) -> bytes:
    try:
        return to_json(content)
    except PydanticSerializationError:
        return _slow_json(content)


def _slow_json(content: Mapping[str, Any]) -> bytes:
    """For the text of a tool that is not Unicode, and for what is no JSON at all."""
    try:
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise ProtocolError(f"a history entry has to be JSON: {error}") from None
    return text.encode(errors="replace")
