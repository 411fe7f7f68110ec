"""Reads the streams that announce commits, one per shard.

A cursor holds the id of the last entry read from each stream. While that entry still exists, nothing after it was
trimmed and Redis was not replaced, so nothing was lost; this relies on no clock and no count.
"""

import re
import time
from operator import methodcaller
from typing import Any, Final

from fixloop.errors import UsageError
from fixloop.store import keys
from fixloop.store.connection import Connection
from fixloop.store.limits import CHANGES_KEPT
from fixloop.store.records import Change, Changes

MOST_READ: Final = 200
"""From one shard at once."""
_LONGEST_WAIT: Final = 2.0
"""The longest wait of one call; well under the time after which Redis counts as frozen."""
_NONE: Final = "0-0"
_CURSOR: Final = re.compile(
    rf"(?:(?:\d{{1,15}}-\d{{1,10}})?,){{{keys.SHARDS - 1}}}(?:\d{{1,15}}-\d{{1,10}})?"
)
_STREAMS: Final = tuple(keys.changes_key(shard) for shard in range(keys.SHARDS))

Ids = tuple[str, ...]


def changes_after(connection: Connection, after: str, wait_seconds: float) -> Changes:
    """See `Store.changes`."""
    if not after:
        return Changes((), written(_last(connection)))
    ids, give_up = parsed(after), time.monotonic() + wait_seconds
    while True:
        waiting = min(_LONGEST_WAIT, give_up - time.monotonic())
        # A block of 0 would wait for ever.
        block = max(1, round(waiting * 1000)) if waiting > 0 else None
        streams = dict(zip(_STREAMS, ids, strict=True))
        reply = connection.call(methodcaller("xread", streams, count=MOST_READ, block=block))
        found: dict[str, Any] = {name.decode(): entries for name, entries in reply or ()}
        if _is_lost(connection, ids):
            return Changes((), written(_last(connection)), gap=True)
        if found or time.monotonic() >= give_up:
            changes = tuple(
                Change(fields[b"w"].decode(), int(fields[b"v"]))
                for entries in found.values()
                for _, fields in entries
            )
            read = {name: entries[-1][0].decode() for name, entries in found.items()}
            last = (read.get(name, known) for name, known in zip(_STREAMS, ids, strict=True))
            return Changes(changes, written(tuple(last)))


def written(ids: Ids) -> str:
    """The cursor for these ids; a stream that never had an entry has an empty part."""
    return ",".join("" if each == _NONE else each for each in ids)


def parsed(cursor: str) -> Ids:
    """The ids in a cursor. Raises UsageError: it is no cursor."""
    if not _CURSOR.fullmatch(cursor):
        raise UsageError(f"{cursor[:80]!r} is no cursor; use one that came with a change, or none")
    return tuple(each or _NONE for each in cursor.split(","))


def _last(connection: Connection) -> Ids:
    found = connection.together(lambda pipe: [pipe.xrevrange(name, count=1) for name in _STREAMS])
    return tuple(entries[0][0].decode() if entries else _NONE for entries in found)


def _is_lost(connection: Connection, ids: Ids) -> bool:
    """Whether entries after these ids may be lost. A stream that had no entry is complete until it is trimmed."""

    def ask(pipe: Any) -> None:
        for name, last in zip(_STREAMS, ids, strict=True):
            pipe.xlen(name) if last == _NONE else pipe.xrange(name, last, last)

    found = connection.together(ask)
    return any(
        reply >= CHANGES_KEPT if last == _NONE else not reply for reply, last in zip(found, ids, strict=True)
    )
