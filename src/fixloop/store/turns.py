"""Which of several servers does what one of them should do at a time."""

from typing import Final

from fixloop.store import keys
from fixloop.store.connection import Connection

TURN_SECONDS: Final = 60
"""How long one goes on before another may; renewed while it does."""


class Turns:
    """Turns in one Redis, by name. Two that think it is theirs do the same twice, and lose nothing."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def take(self, name: str, owner: str) -> bool:
        """Whether it is the turn of `owner` for the next TURN_SECONDS."""
        key = keys.served_key("turn", name)
        taken, holder = self._connection.together(
            lambda pipe: (pipe.set(key, owner, nx=True, ex=TURN_SECONDS), pipe.get(key))
        )
        if holder != owner.encode():
            return False
        if not taken:
            self._connection.call(lambda client: client.expire(key, TURN_SECONDS))
        return True

    def end(self, name: str) -> None:
        """Let another go on at once."""
        self._connection.call(lambda client: client.delete(keys.served_key("turn", name)))
