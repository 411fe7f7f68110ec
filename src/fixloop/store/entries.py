"""The stored format of history entries and snapshots.

Pure. An entry is stored as `#{number}\n`, the digests of the stored bytes before it and of the state after it, the
first 16 bytes of each, and its packed text. Older versions kept these in the text, with whole digests.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final, NamedTuple

from pydantic_core import PydanticSerializationError, to_json

from fixloop.errors import ProtocolError
from fixloop.store.packing import Context, inflate, leans_of, pack, unpack
from fixloop.store.records import Commit, Entry
from fixloop.store.seal import Sealing

ENTRY_LIMIT_BYTES: Final = 16 * 1024
"""Larger entries are stored as artifacts, because the list of entries is read as a whole."""
ARTIFACT_LIMIT_BYTES: Final = 16 * 1024 * 1024
NEWS_BYTES: Final = 240
"""An entry that takes more than this when packed with the entries before it becomes context for those after it."""
_DIGEST_BYTES: Final = 16
"""The digest bytes in a frame: 128 bits make a forged text infeasible."""
_MOST_DIGITS: Final = 15
"""The most digits of an entry's number."""
_PLACE: Final = frozenset({"seq", "prev", "state"})

Fetch = Callable[[str], bytes | None]


class Frame(NamedTuple):
    """An entry's place in its chain; readable even if other entries are damaged."""

    seq: int
    prev: str
    """Digest of the stored bytes before it, or the beginning of that digest; empty for the first entry."""
    state: str
    """Digest of the snapshot its commit wrote, or the beginning of that digest."""
    packed: bytes

    def stored(self) -> bytes:
        return b"#%d\n%s%s%s" % (self.seq, _raw(self.prev), _raw(self.state), self.packed)


class Written(NamedTuple):
    """The bytes that a commit writes."""

    entry: bytes
    snapshot: bytes
    head: str
    context: Context
    """The context the snapshot is packed with."""


class Texts:
    """The texts of a history's entries by number, which other entries are packed with."""

    def __init__(self, stored: Iterable[bytes] = ()) -> None:
        self._frames: dict[int, Frame] = {}
        self._texts: dict[int, bytes | None] = {}
        self.add(stored)

    def add(self, stored: Iterable[bytes]) -> None:
        """Add stored entries; the first of a number counts."""
        for frame in filter(None, map(frame_of, stored)):
            self._frames.setdefault(frame.seq, frame)

    @property
    def wanting(self) -> list[int]:
        """The numbers of missing entries that others are packed with."""
        leant_on = {number for frame in self._frames.values() for number in leans_of(frame.packed)}
        return sorted(leant_on - self._frames.keys())

    def __call__(self, number: int) -> bytes | None:
        """The text of entry `number`; None if it is missing or damaged."""
        if number not in self._texts:
            frame = self._frames.get(number)
            self._texts[number] = None if frame is None else self.of(frame)
        return self._texts[number]

    def of(self, frame: Frame) -> bytes | None:
        """The text of `frame`; None if it, or an entry it is packed with, is damaged."""
        if any(number >= frame.seq for number in leans_of(frame.packed)):
            return None
        return unpack(frame.packed, self)


def digest_of(data: bytes) -> str:
    """sha256 in hex: the store's only digest."""
    return sha256(data).hexdigest()


def written(
    commit: Commit,
    head: str,
    context: Context,
    put_artifact: Callable[[str, bytes], str],
    sealing: Sealing | None = None,
) -> Written:
    """The bytes that a commit writes after `head`, sealed if there is a key. A large entry is stored as an artifact,
    with a stub in its place. ProtocolError if the entry is not JSON, or too large even for an artifact."""
    text, number, state = _json(commit.entry), commit.expected_version + 1, digest_of(commit.snapshot)
    if sealing is not None:
        text = sealing.sealed(commit.workflow, number, head, state, text)
    frame = Frame(number, head, state, pack(text, context))
    if frame.seq == 1 or len(frame.packed) > NEWS_BYTES:
        frame = frame._replace(packed=pack(text, context.beginning))
        after = context.beginning.plus(frame.seq, text)
    else:
        after = context
    if len(frame.packed) > ENTRY_LIMIT_BYTES:
        if len(text) > ARTIFACT_LIMIT_BYTES:
            told = f"a history entry of {len(text)} bytes is too large; make its parts artifacts"
            raise ProtocolError(told)
        kept = {name: commit.entry[name] for name in ("at", "artifacts") if name in commit.entry}
        stub = _json({**kept, "whole": put_artifact(commit.workflow, text)})
        after, frame = context, frame._replace(packed=pack(stub, context))
    entry = frame.stored()
    return Written(entry, pack(commit.snapshot, after), digest_of(entry), after)


def excerpt(data: bytes) -> bytes:
    """`data`, or its beginning and end around a marker if it is over the artifact limit."""
    if len(data) <= ARTIFACT_LIMIT_BYTES:
        return data
    marker = b"\n[fixloop left out the middle of %d bytes; the limit is %d]\n" % (
        len(data),
        ARTIFACT_LIMIT_BYTES,
    )
    half = (ARTIFACT_LIMIT_BYTES - len(marker)) // 2
    return data[:half] + marker + data[-half:]


def frame_of(stored: bytes) -> Frame | None:
    """The frame of a stored entry, or None if the bytes are no entry."""
    if not stored.startswith(b"#"):
        content = _parsed(inflate(stored)) or {}
        seq, before, after = (content.get(name) for name in ("seq", "prev", "state"))
        if isinstance(seq, int) and isinstance(before, str) and isinstance(after, str):
            return Frame(seq, before, after, stored)
        return None
    number, _, rest = stored[1:].partition(b"\n")
    if not number.isdigit() or len(number) > _MOST_DIGITS or len(rest) < 2 * _DIGEST_BYTES:
        return None
    prev, state = rest[:_DIGEST_BYTES], rest[_DIGEST_BYTES : 2 * _DIGEST_BYTES]
    return Frame(int(number), prev.hex() if any(prev) else "", state.hex(), rest[2 * _DIGEST_BYTES :])


def content_of(frame: Frame, texts: Texts) -> dict[str, Any] | None:
    """An entry's content without its place in the chain; None if it is damaged."""
    content = _parsed(texts.of(frame))
    return None if content is None else {name: content[name] for name in content if name not in _PLACE}


def whole_text(frame: Frame, texts: Texts, fetch: Fetch) -> bytes | None:
    """An entry's text as it was committed, read from its artifact if it is large; None: it is damaged."""
    text = texts.of(frame)
    content = _parsed(text)
    return fetch(str(content["whole"])) if content is not None and "whole" in content else text


def opened(stored: bytes, texts: Texts, fetch: Fetch) -> Entry:
    """The entry in `stored`, or in the artifact that it names, read with `fetch`; ValueError if it is damaged."""
    frame = frame_of(stored)
    content = content_of(frame, texts) if frame is not None else None
    if content is not None and "whole" in content:
        whole = _parsed(fetch(content.pop("whole")))
        content = None if whole is None else {**content, **whole}
    if frame is None or content is None:
        raise ValueError("an entry of its history is damaged")
    content.pop("seal", None)
    return Entry(seq=frame.seq, body=content, prev=frame.prev, state=frame.state, digest=digest_of(stored))


def _parsed(data: bytes | None) -> dict[str, Any] | None:
    try:
        content = json.loads(data or b"")
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _json(content: Mapping[str, Any]) -> bytes:
    with suppress(PydanticSerializationError):
        return to_json(content)
    # A tool's text that is not Unicode, or a value that is no JSON.
    try:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
    except (TypeError, ValueError) as error:
        raise ProtocolError(f"a history entry has to be JSON: {error}") from None


def _raw(digest: str) -> bytes:
    """A digest's bytes; zeros if it is no digest."""
    try:
        raw = bytes.fromhex(digest)
    except ValueError:
        raw = b""
    return raw[:_DIGEST_BYTES] if len(raw) >= _DIGEST_BYTES else bytes(_DIGEST_BYTES)
