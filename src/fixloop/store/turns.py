"""Elects one of several servers for a task that only one should do at a time."""

from contextlib import suppress
from typing import Final, Literal

from fixloop.errors import InfrastructureError
from fixloop.store import keys
from fixloop.store.connection import Connection

TURN_SECONDS: Final = 15
"""How long a turn lasts unless its owner takes it again."""


class Turns:
    """Named turns in one Redis. If two servers believe that they have a turn, only work is done twice."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def take(self, name: str, owner: str) -> Literal["", "taken", "kept"]:
        """Take the turn for TURN_SECONDS: `taken` if it was free, `kept` if `owner` has it already, empty if another
        server has it."""
        key = keys.served_key("turn", name)
        taken, holder = self._connection.together(
            lambda pipe: (pipe.set(key, owner, nx=True, ex=TURN_SECONDS), pipe.get(key))
        )
        if holder != owner.encode():
            return ""
        if taken:
            return "taken"
        self._connection.call(lambda client: client.expire(key, TURN_SECONDS))
        return "kept"

    def end(self, name: str) -> None:
        """Release the turn at once. If Redis is away, the turn expires by itself."""
        with suppress(InfrastructureError):
            self._connection.call(lambda client: client.delete(keys.served_key("turn", name)))
