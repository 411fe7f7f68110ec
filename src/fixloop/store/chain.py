"""Verifies that a history is what was committed, byte for byte. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from fixloop.store.entries import Fetch, Frame, Texts, content_of, digest_of, frame_of, whole_text
from fixloop.store.packing import leans_of, unpack
from fixloop.store.records import Stored
from fixloop.store.seal import Objection

HEAD_DIGITS: Final = 32
"""The least number of hex digits of a digest that verify an entry."""
MOST_NAMED: Final = 100
"""The most missing entries that are named one by one: a damaged version can imply any number."""


class RawHistory(NamedTuple):
    """A workflow as stored, read in one transaction."""

    version: int
    head: str
    snapshot: bytes
    entries: Sequence[bytes]


def problems(raw: RawHistory | Stored, fetch: Fetch, objection: Objection | None = None) -> list[str]:
    """The problems of a history, oldest first; empty if every byte is what was committed. With `objection`, each entry
    must also have been written by a holder of the key."""
    texts = Texts(raw.entries)
    found = list(_chain_problems(raw, texts))
    if raw.entries and len(raw.head) < HEAD_DIGITS:
        found.append("its head is gone, and with it what vouches for the last entry")
    found.reverse()
    state = unpack(raw.snapshot, texts)
    last = frame_of(raw.entries[-1]) if raw.entries else None
    if state is None:
        # The damaged entry that it refers to was reported already.
        if all(texts(number) is not None for number in leans_of(raw.snapshot)):
            found.append("the snapshot cannot be read")
    elif last is not None and last.seq == raw.version and not digest_of(state).startswith(last.state):
        found.append(f"the snapshot was changed: it is not the state that entry {raw.version} recorded")
    seen: set[str] = set()
    for frame in filter(None, map(frame_of, raw.entries)):
        text = whole_text(frame, texts, fetch) if objection is not None else None
        if objection is not None and text is not None:
            found += filter(None, [objection(frame.seq, frame.prev, frame.state, text)])
        for digest in _named(frame, texts):
            if digest in seen:
                continue
            seen.add(digest)
            data = fetch(digest)
            if data is None:
                found.append(f"artifact {digest}, named by entry {frame.seq}, is missing or cannot be read")
            elif digest_of(data) != digest:
                found.append(f"artifact {digest}, named by entry {frame.seq}, was changed")
    return found


def _chain_problems(raw: RawHistory | Stored, texts: Texts) -> Iterator[str]:
    """Walk back from the head: each entry is verified by the digest in the one after it."""
    seq, vouched, missing = raw.version, raw.head, raw.version - len(raw.entries)
    for stored in reversed(raw.entries):
        frame = frame_of(stored)
        if vouched and not digest_of(stored).startswith(vouched):
            gap = seq - frame.seq if frame is not None else 0
            if 0 < gap <= missing:
                yield from _missing(seq - gap + 1, seq)
                seq, missing = seq - gap, missing - gap
            else:
                yield f"entry {seq} was changed: its bytes are not those that were committed"
        elif frame is None or (not vouched and texts.of(frame) is None):
            yield f"entry {seq} cannot be read"
        vouched = frame.prev if frame is not None else ""
        seq -= 1
    if seq < 0:
        yield f"{-seq} entries were added that no commit made"
    yield from _missing(1, seq)


def _missing(first: int, last: int) -> Iterator[str]:
    if last - first >= MOST_NAMED:
        yield f"entries {first} to {last} are missing"
        return
    yield from (f"entry {seq} is missing" for seq in range(last, first - 1, -1))


def named(entries: Sequence[bytes]) -> Iterator[str]:
    """The artifacts that stored entries name, with repetitions; a damaged entry names none."""
    texts = Texts(entries)
    return (digest for frame in filter(None, map(frame_of, entries)) for digest in _named(frame, texts))


def _named(frame: Frame, texts: Texts) -> Iterator[str]:
    content = content_of(frame, texts) or {}
    listed = content.get("artifacts")
    if isinstance(listed, list):
        yield from (digest for digest in listed if isinstance(digest, str))
    if isinstance(content.get("whole"), str):
        yield content["whole"]
