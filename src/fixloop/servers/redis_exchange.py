"""The short way to Redis for what every step sends: a connection is kept, and replies may be read later.

redis-py's own way takes a connection from its pool, looks whether it is alive, asks for its retries and its metrics and
gives it back, each time: two thirds of what a command costs (docs/decisions/0024).
"""

import os
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from hiredis import pack_command
from redis.exceptions import RedisError, ResponseError

_TRUSTED_SECONDS: Final = 1.0
"""A connection that was used so recently is taken to be alive; one that is not is replaced by the next attempt."""

Command = tuple[Any, ...]


class _Idle(NamedTuple):
    connection: Any
    owed: int
    """Replies that are not read yet."""
    used_at: float


class Exchange:
    """Commands by the connections of one redis-py pool; safe to share between threads and to carry through a fork."""

    def __init__(self, pool: Any) -> None:
        self.pool = pool
        self._idle: deque[_Idle] = deque()
        self._process = os.getpid()

    def ask(self, *command: Any) -> Any:
        """The reply to one command, as Redis sent it; a refusal is raised."""
        (reply,) = self.ask_all((command,))
        if isinstance(reply, Exception):
            raise reply
        return reply

    def ask_all(self, commands: Sequence[Command]) -> list[Any]:
        """
        The replies to commands that are sent at once; a refusal stands in the place of its reply.

        After a RedisError it is not known whether they were carried out, or even sent.
        """
        return self._send(commands, len(commands))

    def tell(self, *commands: Command) -> None:
        """Send commands at once; their replies are read, and a refusal is raised, when the connection is used again."""
        self._send(commands, 0)

    def settle(self) -> None:
        """Wait until Redis has done what it was told; raises what it refused."""
        for _ in range(len(self._idle)):
            self._send((), 0)

    def _send(self, commands: Sequence[Command], awaited: int) -> list[Any]:
        """Send `commands` and read the first replies, so many; the others are owed."""
        connection, owed = self._taken()
        try:
            for reply in [_reply(connection) for _ in range(owed)]:
                if isinstance(reply, Exception):
                    raise reply
            if commands:
                packed = b"".join(map(pack_command, commands))
                connection.send_packed_command((packed,), check_health=False)
            replies = [_reply(connection) for _ in range(awaited)]
        except BaseException:
            self._give_up(connection)
            raise
        # The one that was used longest ago is the last to be taken, and the first that `settle` comes to.
        self._idle.appendleft(_Idle(connection, len(commands) - awaited, time.monotonic()))
        return replies

    def _taken(self) -> tuple[Any, int]:
        """A connection, and how many replies it owes."""
        if self._process != os.getpid():
            # They are still the parent's.
            self._process = os.getpid()
            self._idle.clear()
        try:
            connection, owed, used_at = self._idle.pop()
        except IndexError:
            return self.pool.get_connection(), 0
        if owed or time.monotonic() - used_at < _TRUSTED_SECONDS:
            return connection, owed
        with suppress(RedisError, OSError):
            # It is open, with nothing to be read.
            if not connection.can_read():
                return connection, owed
        self._give_up(connection)
        return self.pool.get_connection(), 0

    def _give_up(self, connection: Any) -> None:
        """Close it and all that wait: what one lost, the others have lost, too."""
        lost = [connection]
        while self._idle:
            lost.append(self._idle.pop().connection)
        for each in lost:
            each.disconnect()
            self.pool.release(each)


def _reply(connection: Any) -> Any:
    try:
        return connection.read_response()
    except ResponseError as refusal:
        return refusal
