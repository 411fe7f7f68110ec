"""An archive record: one workflow as a line of JSON, in a gzip member whose header holds its length.

The line holds the workflow's readable fields, and all its stored bytes for `audit verify`; `zcat` prints all lines. A
search reads only headers, and a record that a crash cut short is detected. Nothing here locks.
"""

import base64
import json
import os
import struct
import zlib
from collections.abc import Iterator
from datetime import datetime
from typing import Final, NamedTuple

from fixloop.errors import ProtocolError
from fixloop.store.records import Stored

FORMAT: Final = 1
MOST_BYTES: Final = 1024 * 1024 * 1024
"""Of one record: a file that was tampered with can be made to unpack to any number."""
# RFC 1952: magic and method, flags, no time, no hint, unknown system, length of the extra field. The extra field has
# one subfield: the lengths of the member and of its header, and whether the record was erased.
_FIXED: Final = struct.Struct("<3sBIBBH2sHQQB")
_MAGIC: Final = b"\x1f\x8b\x08"
_EXTRA: Final = b"fl"
_FLAGS: Final = 4 | 8 | 16
_OURS: Final = struct.calcsize("<QQB")
_CHECKS: Final = struct.Struct("<II")
_NOTHING: Final = b"\x03\x00"


def line_of(stored: Stored, ended_at: datetime) -> bytes:
    kept = {
        "fixloop_archive": FORMAT,
        "workflow": stored.workflow,
        "ended_at": ended_at.isoformat(),
        "fields": dict(stored.fields),
        "version": stored.version,
        "head": stored.head,
        "stale": stored.stale,
        "snapshot": _text(stored.snapshot),
        "entries": [_text(entry) for entry in stored.entries],
        "artifacts": {digest: _text(zlib.compress(data)) for digest, data in stored.artifacts.items()},
    }
    return json.dumps(kept, separators=(",", ":")).encode() + b"\n"


def stored_of(line: bytes) -> Stored:
    """The workflow in a line. Raises ProtocolError: a newer fixloop wrote it; ValueError: it is damaged."""
    kept = json.loads(line)
    if not isinstance(kept, dict) or not isinstance(kept.get("fixloop_archive"), int):
        raise ValueError("it is no record of an archived workflow")
    if kept["fixloop_archive"] > FORMAT:
        raise ProtocolError(
            f"workflow {kept.get('workflow')} was archived by a newer fixloop "
            f"(format {kept['fixloop_archive']}, this one reads up to {FORMAT}); upgrade this one"
        )
    try:
        return Stored(
            workflow=kept["workflow"],
            version=kept["version"],
            head=kept["head"],
            snapshot=_bytes(kept["snapshot"]),
            entries=tuple(map(_bytes, kept["entries"])),
            artifacts={digest: _unpacked(_bytes(text)) for digest, text in kept["artifacts"].items()},
            fields=dict(kept["fields"]),
            stale=kept["stale"],
        )
    except (KeyError, TypeError, AttributeError, zlib.error) as error:
        raise ValueError(f"its record is damaged: {error!r}") from None


def _unpacked(packed: bytes, wbits: int = zlib.MAX_WBITS) -> bytes:
    """Raises zlib.error: it is damaged, or made to unpack to more than MOST_BYTES."""
    opener = zlib.decompressobj(wbits)
    data = opener.decompress(packed, MOST_BYTES)
    if not opener.eof:
        raise zlib.error(f"it is cut short, or has more than {MOST_BYTES:,} bytes")
    return data


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


class Member(NamedTuple):
    """A record's position, and the contents of its header."""

    offset: int
    length: int
    name: str
    comment: str


def member(name: str, comment: str, data: bytes) -> bytes:
    """A record as bytes to append; `name` and `comment` are ASCII without zero bytes."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return _member_bytes(name, comment, packer.compress(data) + packer.flush(), data, erased=0)


def walk(file: int, start: int = 0) -> Iterator[Member | int]:
    """The records of an open file from `start` on, then the end of the last whole one: short of the file if damaged."""
    size = os.fstat(file).st_size
    while start < size:
        fixed = os.pread(file, _FIXED.size, start)
        if len(fixed) < _FIXED.size:
            break
        magic, flags, _, _, _, _, extra, ours, length, header, erased = _FIXED.unpack(fixed)
        is_record = (magic, flags, extra, ours) == (_MAGIC, _FLAGS, _EXTRA, _OURS)
        if not is_record or not _FIXED.size < header < length or start + length > size:
            break
        if not erased:
            texts = os.pread(file, header - _FIXED.size, start + _FIXED.size).split(b"\0")
            yield Member(
                start, length, texts[0].decode("ascii", "replace"), texts[1].decode("ascii", "replace")
            )
        start += length
    yield start


def read(file: int, found: Member) -> bytes:
    """The data of a record. Raises ValueError: it is damaged."""
    try:
        return _unpacked(os.pread(file, found.length, found.offset), 16 + zlib.MAX_WBITS)
    except zlib.error as error:
        raise ValueError(f"the record at byte {found.offset} is damaged: {error}") from None


def erase(file: int, found: Member) -> None:
    """Overwrite a record with an empty one of the same length, so that later records do not move."""
    filler = found.length - _FIXED.size - len(_NOTHING) - _CHECKS.size - 2
    os.pwrite(file, _member_bytes("", "x" * filler, _NOTHING, b"", erased=1), found.offset)


def _member_bytes(name: str, comment: str, packed: bytes, data: bytes, *, erased: int) -> bytes:
    texts = f"{name}\0{comment}\0".encode("ascii")
    checks = _CHECKS.pack(zlib.crc32(data), len(data) & 0xFFFFFFFF)
    header = _FIXED.size + len(texts)
    length = header + len(packed) + len(checks)
    extra = 4 + _OURS
    fixed = _FIXED.pack(_MAGIC, _FLAGS, 0, 0, 255, extra, _EXTRA, _OURS, length, header, erased)
    return fixed + texts + packed + checks
