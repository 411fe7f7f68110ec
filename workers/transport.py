"""kombu's Redis transport, with two differences: commands share a client, and those of every step take the short way.

By itself it makes a new client for every acknowledgment and every message sent, which is a fifth of what a worker's
main process does. A client without a connection of its own is only a view on its pool, and holds nothing between
two commands. Hints, and what kombu notes of a message that was taken, are told and not waited for: whatever is lost of
them, the state has the ticket, and it is found all the same (docs/decisions/0024).
"""

from time import time
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis, virtual
from kombu.utils.json import dumps
from pydantic_core import PydanticSerializationError, to_json

from fixloop.redis_exchange import Exchange

__all__ = ["Transport", "register"]


class QoS(redis.QoS):
    """
    What was taken and not acknowledged yet, by kombu's own commands.

    They need no transaction: whatever comes between the two of a pair, what remains is a tag in the index without a
    message, which kombu finds and forgets.
    """

    def append(self, message: Any, delivery_tag: str) -> None:
        """Note what was taken, and from where."""
        delivery = message.delivery_info
        kept = _json([message._raw, delivery["exchange"], delivery["routing_key"]])
        self.channel.exchange.tell(
            ("ZADD", self.unacked_index_key, time(), delivery_tag),
            ("HSET", self.unacked_key, delivery_tag, kept),
        )
        virtual.QoS.append(self, message, delivery_tag)

    def ack(self, delivery_tag: str) -> None:
        """Forget it."""
        self.channel.exchange.tell(
            ("HDEL", self.unacked_key, delivery_tag), ("ZREM", self.unacked_index_key, delivery_tag)
        )
        virtual.QoS.ack(self, delivery_tag)

    def restore_by_tag(self, tag: str, client: Any = None, leftmost: bool = False) -> None:
        """Put it back; the note that it was taken has arrived by then."""
        kombus: Any = super()
        self.channel.exchange.settle()
        kombus.restore_by_tag(tag, client=client, leftmost=leftmost)


class SharedClient:
    """A channel that keeps its client for as long as its pool."""

    QoS = QoS
    _shared: Any = None
    _exchange: Exchange | None = None

    def _create_client(self, asynchronous: bool = False) -> Any:
        kombus: Any = super()
        if asynchronous:
            # This one owns the connection that waits for messages.
            return kombus._create_client(asynchronous=True)
        pool = self.pool  # type: ignore[attr-defined]
        if self._shared is None or self._shared.connection_pool is not pool:
            self._shared = kombus._create_client()
        return self._shared

    @property
    def exchange(self) -> Exchange:
        """By the connections of the present pool."""
        pool = self.pool  # type: ignore[attr-defined]
        if self._exchange is None or self._exchange.pool is not pool:
            self._exchange = Exchange(pool)
        return self._exchange

    def _put(self, queue: str, message: Any, **more: Any) -> None:
        kombus: Any = self
        if more.get("_publish_batch") is not None or queue in kombus._expires:
            super()._put(queue, message, **more)  # type: ignore[misc]
            return
        key = kombus._q_for_pri(queue, kombus._get_message_priority(message, reverse=False))
        command = "LPUSH", key, _json(message)
        if _is_hint(message):
            self.exchange.tell(command)
        else:
            self.exchange.ask(*command)


def _json(message: Any) -> bytes | str:
    """As kombu writes it, at a third of the cost; what is no Unicode is kombu's business."""
    try:
        return to_json(message)
    except PydanticSerializationError:
        text: str = dumps(message)
        return text


def _is_hint(message: Any) -> bool:
    """Whether the sweeper would send it again: its task's id is a ticket's, which has a dot and no other has."""
    return "." in str(message.get("headers", {}).get("id", ""))


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
