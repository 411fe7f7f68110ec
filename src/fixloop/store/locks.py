"""Locks on resources that agents share in the handoff profile (K10), and turns of servers, stored in Redis.

A lock is granted with a fencing token. Its lease is in wall time, because agents go on while the engine is away. Its
record outlives the lease, so that a takeover can name the previous holder. A turn elects one of several servers
for a task that only one should do at a time.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, Protocol

from fixloop.errors import InfrastructureError
from fixloop.store.connection import Connection
from fixloop.store.keys import lock_key, served_key, shard_keys, shard_of
from fixloop.store.records import check_lease

LOCK_SECONDS = 30 * 60.0
"""D25."""

Kept = Literal["ok", "lost"]


@dataclass(frozen=True, slots=True)
class Grant:
    """The result of `acquire`."""

    status: Literal["granted", "again", "forced", "refused"]
    """again: this agent already holds it, unchanged; forced: the previous lease had run out (D28)."""
    token: int
    """Fencing token; 0 if refused."""
    agent: str
    """The current holder."""
    acquired: datetime
    expires: datetime
    previous: str = ""
    """With `forced`: the previous holder."""

    @property
    def is_held(self) -> bool:
        """Whether the caller has the lock."""
        return self.status != "refused"


class Locks(Protocol):
    def acquire(
        self, workflow: str, resource: str, agent: str, *, lease_seconds: float = LOCK_SECONDS
    ) -> Grant:
        """Acquire a lock: granted if it is free, held by this agent or run out; refused if another's lease is live."""

    def extend(
        self, workflow: str, resource: str, token: int, *, lease_seconds: float = LOCK_SECONDS
    ) -> Kept:
        """Set a new lease from now; `lost` if it has run out or is another agent's (G18)."""

    def release(self, workflow: str, resource: str, token: int) -> Kept:
        """Release a lock; `lost`, with no effect, if it is another agent's or was released."""


class RedisLocks:
    """`Locks` in Redis, with one script each."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def acquire(
        self, workflow: str, resource: str, agent: str, *, lease_seconds: float = LOCK_SECONDS
    ) -> Grant:
        check_lease(lease_seconds)
        keys = (shard_keys(shard_of(workflow)).shard, lock_key(workflow, resource))
        reply: list[Any] = self._connection.run_durably("acquire", keys, (agent, lease_seconds))
        status, token, holder, acquired, expires, previous = reply
        return Grant(
            status.decode(),
            int(token),
            holder.decode(),
            datetime.fromtimestamp(float(acquired), UTC),
            datetime.fromtimestamp(float(expires), UTC),
            previous.decode(),
        )

    def extend(
        self, workflow: str, resource: str, token: int, *, lease_seconds: float = LOCK_SECONDS
    ) -> Kept:
        check_lease(lease_seconds)
        return self._keep(workflow, resource, token, lease_seconds)

    def release(self, workflow: str, resource: str, token: int) -> Kept:
        return self._keep(workflow, resource, token, 0)

    def _keep(self, workflow: str, resource: str, token: int, lease_seconds: float) -> Kept:
        reply = self._connection.run("keep", (lock_key(workflow, resource),), (token, lease_seconds))
        return "ok" if reply == b"ok" else "lost"


TURN_SECONDS: Final = 15
"""How long a turn lasts unless its owner takes it again."""


class Turns:
    """Named turns in one Redis. If two servers believe that they have a turn, only work is done twice."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def take(self, name: str, owner: str) -> Literal["", "taken", "kept"]:
        """Take the turn for TURN_SECONDS: `taken` if it was free, `kept` if `owner` has it already, empty if another
        server has it."""
        key = served_key("turn", name)
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
            self._connection.call(lambda client: client.delete(served_key("turn", name)))
