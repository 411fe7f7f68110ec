"""Which of several servers does what one of them should do at a time."""

from contextlib import suppress
from typing import Final, Literal

from fixloop.errors import InfrastructureError
from fixloop.store import keys
from fixloop.store.connection import Connection

TURN_SECONDS: Final = 15
"""How long one goes on before another may, if it does not take it again."""


class Turns:
    """Turns in one Redis, by name. Two that think it is theirs do the same twice, and lose nothing."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def take(self, name: str, owner: str) -> Literal["", "taken", "kept"]:
        """Whether it is the turn of `owner` for the next TURN_SECONDS: `kept` where it was since it was taken last;
        empty where it is another's."""
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
        """Let another go on at once. Where Redis is away the turn runs out by itself."""
        with suppress(InfrastructureError):
            self._connection.call(lambda client: client.delete(keys.served_key("turn", name)))
