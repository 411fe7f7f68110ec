"""A compressed file that grows by whole records: each is a gzip member that says in its header how long it is.

`zcat` prints the records one after the other. A search reads headers only, and a record that a crash cut short is
recognised. Nothing here locks or flushes; that is up to the owner of the file.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

# RFC 1952: magic and method, flags, no time, no hint, unknown system, length of the extra field; in it one subfield of
# ours with the member's length, its header's and whether its record was erased.
_FIXED: Final = struct.Struct("<3sBIBBH2sHQQB")
_MAGIC: Final = b"\x1f\x8b\x08"
_EXTRA: Final = b"fl"
_FLAGS: Final = 4 | 8 | 16
_OURS: Final = struct.calcsize("<QQB")
_CHECKS: Final = struct.Struct("<II")
_NOTHING: Final = b"\x03\x00"


class Member(NamedTuple):
    """Where a record is, and what its header says of it."""

    offset: int
    length: int
    name: str
    comment: str


def member(name: str, comment: str, data: bytes) -> bytes:
    """A record as bytes to append; `name` and `comment` are ASCII, and nothing in them is zero."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return _made(name, comment, packer.compress(data) + packer.flush(), data, erased=0)


def walk(file: int, start: int = 0) -> Iterator[Member | int]:
    """The records of an open file from `start` on, last of all where they end: short of its length if it is damaged."""
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
    """The data of a record. Raises ValueError: it is not what was written."""
    try:
        return zlib.decompress(os.pread(file, found.length, found.offset), wbits=16 + zlib.MAX_WBITS)
    except zlib.error as error:
        raise ValueError(f"the record at byte {found.offset} is damaged: {error}") from None


def erase(file: int, found: Member) -> None:
    """Put an empty record of the same length in a record's place: what stands behind it does not move."""
    filler = found.length - _FIXED.size - len(_NOTHING) - _CHECKS.size - 2
    os.pwrite(file, _made("", "x" * filler, _NOTHING, b"", erased=1), found.offset)


def _made(name: str, comment: str, packed: bytes, data: bytes, *, erased: int) -> bytes:
    texts = f"{name}\0{comment}\0".encode("ascii")
    checks = _CHECKS.pack(zlib.crc32(data), len(data) & 0xFFFFFFFF)
    header = _FIXED.size + len(texts)
    length = header + len(packed) + len(checks)
    extra = 4 + _OURS
    fixed = _FIXED.pack(_MAGIC, _FLAGS, 0, 0, 255, extra, _EXTRA, _OURS, length, header, erased)
    return fixed + texts + packed + checks
