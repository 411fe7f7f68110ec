"""kombu's Redis transport with one difference: commands share a client.

By itself it makes a new client for every acknowledgment and every message sent, which is a fifth of what a worker's
main process does. A client without a connection of its own is only a view on its pool, and holds nothing between
two commands.
"""

from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis

__all__ = ["Transport", "register"]


class Channel(redis.Channel):
    """A channel that keeps its client for as long as its pool."""

    _shared: Any = None

    def _create_client(self, asynchronous: bool = False) -> Any:
        if asynchronous:
            # This one owns the connection that waits for messages.
            return super()._create_client(asynchronous=True)  # type: ignore[no-untyped-call]
        if self._shared is None or self._shared.connection_pool is not self.pool:
            self._shared = super()._create_client()  # type: ignore[no-untyped-call]
        return self._shared


class Transport(redis.Transport):
    """What `redis://`, `rediss://` and `redis+socket://` mean in this process once it is registered."""

    Channel = Channel


def register() -> None:
    """Have kombu use it."""
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = f"{__name__}:Transport"
