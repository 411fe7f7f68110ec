"""Packs texts: each is deflated with a preset dictionary (docs/decisions/0019).

The preset is a shipped dictionary followed by the texts of earlier entries, the context. The first line names both,
`{dictionary, one byte}{entry numbers, with commas}\n`; 4 bytes of the text's CRC follow. Texts of older versions begin
with zlib's own first byte and have no context. A shipped dictionary is never removed or changed.
"""

import zlib
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from fixloop.errors import NewerVersion

DICTIONARY: Final = 3
"""The dictionary used for packing: `dictionary-3.txt`."""
MOST_BYTES: Final = 256 * 1024 * 1024
"""Of one text: more is damage, because a few bytes can be made to unpack to any number."""
_LAST_DICTIONARY: Final = 9
_LEVEL: Final = 6
_MEMORY_LEVEL: Final = 7
"""Of zlib's 9: setting up the compressor for each text costs more than packing it, and texts of a few KB get no larger
than with the default 8."""
# Level 1 takes half the time of level 6 and 5 % more bytes on texts of a few KB without context.
_LEVEL_ALONE: Final = 1
_WINDOW_BYTES: Final = 32 * 1024
_RAW: Final = -15
"""The window's bits; a negative value means raw deflate, without zlib's frame."""
_CHECK_BYTES: Final = 4
_MOST_DIGITS: Final = 15
"""The most digits of an entry's number."""


class Context(NamedTuple):
    """The earlier entries that a text is packed with, by number."""

    numbers: tuple[int, ...] = ()
    texts: tuple[bytes, ...] = ()

    @property
    def beginning(self) -> "Context":
        """The first entry alone: the context of entries that others are packed with."""
        return Context((1,), self.texts[:1]) if self.numbers[:1] == (1,) else NOTHING

    def plus(self, number: int, text: bytes) -> "Context":
        return Context((*self.numbers, number), (*self.texts, text))


NOTHING: Final = Context()


def pack(text: bytes, context: Context) -> bytes:
    """The stored form of a text packed with `context`."""
    numbers = ",".join(map(str, context.numbers))
    packer = zlib.compressobj(
        _LEVEL, wbits=_RAW, memLevel=_MEMORY_LEVEL, zdict=_preset(DICTIONARY, context.texts)
    )
    first = b"%c%s\n%s" % (DICTIONARY, numbers.encode(), _check(text))
    return first + packer.compress(text) + packer.flush()


def pack_alone(data: bytes) -> bytes:
    """The stored form of an artifact."""
    return zlib.compress(data, _LEVEL_ALONE)


def inflate(stored: bytes) -> bytes | None:
    """The data that `pack_alone` packed, or None if the bytes are damaged."""
    opener = zlib.decompressobj()
    try:
        data = opener.decompress(stored, MOST_BYTES)
    except zlib.error:
        return None
    return data if opener.eof else None


def leans_of(stored: bytes) -> tuple[int, ...]:
    """The numbers of the entries that a stored text was packed with."""
    if not stored or not 1 <= stored[0] <= _LAST_DICTIONARY:
        return ()
    numbers = stored[1 : stored.find(b"\n")].split(b",")
    return tuple(int(number) for number in numbers if number.isdigit() and len(number) <= _MOST_DIGITS)


def unpack(stored: bytes, text_of: Callable[[int], bytes | None]) -> bytes | None:
    """Unpack a stored text; None if it or its context is damaged, NewerVersion if a newer version packed it."""
    if not stored or not 1 <= stored[0] <= _LAST_DICTIONARY:
        return inflate(stored)
    texts = [text_of(number) for number in leans_of(stored)]
    known = _preset(stored[0], [text for text in texts if text is not None])
    start = stored.find(b"\n") + 1
    try:
        opener = zlib.decompressobj(_RAW, zdict=known)
        text = opener.decompress(stored[start + _CHECK_BYTES :], MOST_BYTES)
    except zlib.error:
        return None
    whole = opener.eof and not opener.unused_data and _check(text) == stored[start : start + _CHECK_BYTES]
    return text if whole else None


def context_of(stored: bytes, text_of: Callable[[int], bytes | None]) -> Context:
    """The context of a stored snapshot, which the next commit may use too."""
    context = NOTHING
    for number in leans_of(stored):
        text = text_of(number)
        if text is None:
            return NOTHING
        context = context.plus(number, text)
    return context


def _check(text: bytes) -> bytes:
    return zlib.crc32(text).to_bytes(_CHECK_BYTES, "big")


def _preset(number: int, texts: Sequence[bytes]) -> bytes:
    # Deflate looks back no further than the window, and nearer matches are cheaper.
    return (_dictionary(number) + b"".join(texts))[-_WINDOW_BYTES:]


@cache
def _dictionary(number: int) -> bytes:
    try:
        return files("fixloop.store").joinpath(f"dictionary-{number}.txt").read_bytes()
    except FileNotFoundError:
        told = f"a newer fixloop packed this, with dictionary {number}; upgrade this one"
        raise NewerVersion(told) from None
