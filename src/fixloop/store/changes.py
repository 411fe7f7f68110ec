"""Reading the streams in which commits are announced, one for each shard.

A cursor is the id of the last entry that was read of each stream. As long as that entry is still there, nothing after
it was trimmed, and nothing was lost with a Redis that was replaced: no clock and no count has to be trusted for that.
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
"""Of one shard at once."""
_LONGEST_WAIT: Final = 2.0
"""Of one call: well under the time after which a Redis counts as frozen."""
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
        # 0 would be for ever.
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
    """A cursor; of a stream that never had an entry it has nothing."""
    return ",".join("" if each == _NONE else each for each in ids)


def parsed(cursor: str) -> Ids:
    """The ids in a cursor. Raises UsageError: it is none."""
    if not _CURSOR.fullmatch(cursor):
        raise UsageError(f"{cursor[:80]!r} is no cursor; use one that came with a change, or none")
    return tuple(each or _NONE for each in cursor.split(","))


def _last(connection: Connection) -> Ids:
    found = connection.together(lambda pipe: [pipe.xrevrange(name, count=1) for name in _STREAMS])
    return tuple(entries[0][0].decode() if entries else _NONE for entries in found)


def _is_lost(connection: Connection, ids: Ids) -> bool:
    """Whether the entry of an id is gone. A stream that had none then is whole until it has been trimmed."""

    def ask(pipe: Any) -> None:
        for name, last in zip(_STREAMS, ids, strict=True):
            pipe.xlen(name) if last == _NONE else pipe.xrange(name, last, last)

    found = connection.together(ask)
    return any(
        reply >= CHANGES_KEPT if last == _NONE else not reply for reply, last in zip(found, ids, strict=True)
    )
