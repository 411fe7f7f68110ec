"""kombu's Redis transport with one difference: commands share a client.

By itself it makes a new client for every acknowledgment and every message sent, which is a fifth of what a worker's
main process does. A client without a connection of its own is only a view on its pool, and holds nothing between
two commands.
"""

from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis

__all__ = ["Transport", "register"]


class SharedClient:
    """A channel that keeps its client for as long as its pool."""

    _shared: Any = None

    def _create_client(self, asynchronous: bool = False) -> Any:
        kombus: Any = super()
        if asynchronous:
            # This one owns the connection that waits for messages.
            return kombus._create_client(asynchronous=True)
        pool = self.pool  # type: ignore[attr-defined]
        if self._shared is None or self._shared.connection_pool is not pool:
            self._shared = kombus._create_client()
        return self._shared


class Channel(SharedClient, redis.Channel):
    """On a Redis whose address is known."""


class SentinelChannel(SharedClient, redis.SentinelChannel):
    """On a Redis that sentinels know."""


class Transport(redis.Transport):
    """What `redis://`, `rediss://` and `redis+socket://` mean in this process once it is registered."""

    Channel = Channel


class SentinelTransport(redis.SentinelTransport):
    """What `sentinel://` means."""

    Channel = SentinelChannel


def register() -> None:
    """Have kombu use them, and ours for RabbitMQ."""
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = f"{__name__}:Transport"
    TRANSPORT_ALIASES["amqp"] = "fixloop.rabbitmq:Transport"
    TRANSPORT_ALIASES["amqps"] = "fixloop.rabbitmq:TLSTransport"
    TRANSPORT_ALIASES["sentinel"] = f"{__name__}:SentinelTransport"
