"""The short way to Redis for the scripts of every step: a connection is kept between two of them.

redis-py's own way takes a connection from its pool, looks whether it is alive, asks for its retries and its metrics and
gives it back, each time: two thirds of what a command costs (docs/decisions/0024).
"""

import os
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from hiredis import pack_command
from redis.exceptions import RedisError, ResponseError

_TRUSTED_SECONDS: Final = 1.0
"""A connection that was used so recently is taken to be alive; one that is not is replaced by the next attempt."""

Command = tuple[Any, ...]


class Exchange:
    """Commands by the connections of one redis-py pool; safe to share between threads and to carry through a fork."""

    def __init__(self, pool: Any) -> None:
        self.pool = pool
        self._idle: deque[tuple[Any, float]] = deque()
        """Connections, and when each was used last."""
        self._process = os.getpid()

    def ask_all(self, commands: Sequence[Command]) -> list[Any]:
        """
        The replies to commands that are sent at once; a refusal stands in the place of its reply.

        After a RedisError it is not known whether they were carried out, or even sent.
        """
        connection = self._taken()
        try:
            packed = b"".join(map(pack_command, commands))
            connection.send_packed_command((packed,), check_health=False)
            replies = [_reply(connection) for _ in commands]
        except BaseException:
            self._give_up(connection)
            raise
        self._idle.append((connection, time.monotonic()))
        return replies

    def _taken(self) -> Any:
        if self._process != os.getpid():
            # They are still the parent's.
            self._process = os.getpid()
            self._idle.clear()
        try:
            connection, used_at = self._idle.pop()
        except IndexError:
            return self.pool.get_connection()
        if time.monotonic() - used_at < _TRUSTED_SECONDS:
            return connection
        with suppress(RedisError, OSError):
            # It is open, with nothing to be read.
            if not connection.can_read():
                return connection
        self._give_up(connection)
        return self.pool.get_connection()

    def _give_up(self, connection: Any) -> None:
        """Close it and all that wait: what one lost, the others have lost, too."""
        lost = [connection]
        while self._idle:
            lost.append(self._idle.pop()[0])
        for each in lost:
            each.disconnect()
            self.pool.release(each)


def _reply(connection: Any) -> Any:
    try:
        return connection.read_response()
    except ResponseError as refusal:
        return refusal
