"""kombu's Redis transport: commands share a client, those of every step take the short way, and what is no message is
rejected where it is read (docs/decisions/0024, 0040).

A client without its own connection is only a view on its pool, and holds nothing between two commands.
"""

from queue import Empty
from time import time
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis, virtual
from kombu.utils.json import dumps
from pydantic_core import PydanticSerializationError, to_json

from fixloop.servers.redis_exchange import Exchange
from workers.celery_fast.incoming import opened
from workers.celery_fast.rejection import reject


class QoS(redis.QoS):
    """What was taken and not acknowledged yet, by kombu's own commands. They need no transaction: if a pair is cut in
    two, what remains is a tag in the index without a message, which kombu finds and forgets."""

    def append(self, message: Any, delivery_tag: str) -> None:
        delivery = message.delivery_info
        kept = _json([message._raw, delivery["exchange"], delivery["routing_key"]])
        self.channel.exchange.tell(
            ("ZADD", self.unacked_index_key, time(), delivery_tag),
            ("HSET", self.unacked_key, delivery_tag, kept),
        )
        virtual.QoS.append(self, message, delivery_tag)

    def ack(self, delivery_tag: str) -> None:
        self.channel.exchange.tell(
            ("HDEL", self.unacked_key, delivery_tag), ("ZREM", self.unacked_index_key, delivery_tag)
        )
        virtual.QoS.ack(self, delivery_tag)

    def restore_by_tag(self, tag: str, client: Any = None, leftmost: bool = False) -> None:
        """Put it back; the note that it was taken has arrived by then."""
        kombus: Any = super()
        self.channel.exchange.settle()
        try:
            kombus.restore_by_tag(tag, client=client, leftmost=leftmost)
        except (ValueError, TypeError) as error:
            # Kombu has not written it, and would find it again and again.
            self.channel.exchange.tell(("HDEL", self.unacked_key, tag), ("ZREM", self.unacked_index_key, tag))
            reject(self.unacked_key, _bytes(tag), error)


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

    def _brpop_read(self, **options: Any) -> bool:
        """Take what was waited for, as kombu does, if it is a message."""
        kombus: Any = self
        try:
            try:
                brought = kombus.client.parse_response(kombus.client.connection, "BRPOP", **options)
            except kombus.connection_errors:
                kombus.client.connection.disconnect()
                raise
            if not brought:
                raise Empty
            queue = brought[0].decode().rsplit(kombus.sep, 1)[0]
            kombus._queue_cycle.rotate(queue)
            message = _opened(queue, brought[1])
            if message is not None:
                kombus.connection._deliver(message, queue)
            return True
        finally:
            kombus._in_poll = None
            kombus._flush_brpop_reauth()

    def _handle_message(self, client: Any, reply: Any) -> Any:
        """What was published, without what is no message: kombu passes over what is empty."""
        kombus: Any = super()
        told = kombus._handle_message(client, reply)
        if _bytes(told["type"]).endswith(b"message") and told["data"]:
            channel = _bytes(told["channel"]).decode(errors="replace")
            told["data"] = told["data"] if _opened(channel, _bytes(told["data"])) is not None else None
        return told

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
        # A ticket's id has a dot and no other task's has: the sweeper would send its hint again.
        if "." in str(message.get("headers", {}).get("id", "")):
            self.exchange.tell(command)
        else:
            self.exchange.ask(*command)


def _opened(queue: str, data: bytes) -> dict[str, Any] | None:
    """The message in `data`; None when there is none, and it was rejected."""
    try:
        return opened(data)
    except Exception as error:  # decoders differ in what they raise, and nothing here asks a server
        reject(queue, data, error)
        return None


def _bytes(text: Any) -> bytes:
    return text if isinstance(text, bytes) else str(text).encode(errors="replace")


def _json(message: Any) -> bytes | str:
    """As kombu writes it, at a third of the cost; kombu itself writes what is not Unicode."""
    try:
        return to_json(message)
    except PydanticSerializationError:
        text: str = dumps(message)
        return text


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
    TRANSPORT_ALIASES["amqp"] = "fixloop.servers.rabbitmq:Transport"
    TRANSPORT_ALIASES["amqps"] = "fixloop.servers.rabbitmq:TLSTransport"
    TRANSPORT_ALIASES["sentinel"] = f"{__name__}:SentinelTransport"
