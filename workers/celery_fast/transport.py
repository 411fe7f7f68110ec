"""kombu's Redis transport, which rejects malformed messages when it reads them (docs/decisions/0040)."""

from queue import Empty
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis

from workers.celery_fast.incoming import opened
from workers.celery_fast.rejection import reject


class QoS(redis.QoS):
    """The messages that were delivered and not acknowledged yet."""

    def restore_by_tag(self, tag: str, client: Any = None, leftmost: bool = False) -> None:
        """Put a message back."""
        kombus: Any = super()
        try:
            kombus.restore_by_tag(tag, client=client, leftmost=leftmost)
        except (ValueError, TypeError) as error:
            # kombu has not put it back, and would find it again and again.
            with self.channel.conn_or_acquire(client) as asked:
                asked.hdel(self.unacked_key, tag)
                asked.zrem(self.unacked_index_key, tag)
            reject(self.unacked_key, _bytes(tag), error)


class MessagesOnly:
    """A mixin for channels that rejects what is no message."""

    QoS = QoS

    def _brpop_read(self, **options: Any) -> bool:
        """Read the reply of BRPOP, as kombu does, and deliver it if it is a message."""
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
        """A published message, or empty data for a malformed one: kombu ignores empty data."""
        kombus: Any = super()
        told = kombus._handle_message(client, reply)
        if _bytes(told["type"]).endswith(b"message") and told["data"]:
            channel = _bytes(told["channel"]).decode(errors="replace")
            told["data"] = told["data"] if _opened(channel, _bytes(told["data"])) is not None else None
        return told


def _opened(queue: str, data: bytes) -> dict[str, Any] | None:
    """The message in `data`; None if it is malformed and was rejected."""
    try:
        return opened(data)
    except Exception as error:  # decoders raise various errors, and nothing here calls a server
        reject(queue, data, error)
        return None


def _bytes(text: Any) -> bytes:
    return text if isinstance(text, bytes) else str(text).encode(errors="replace")


class Channel(MessagesOnly, redis.Channel):
    """A channel to a Redis with a known address."""


class SentinelChannel(MessagesOnly, redis.SentinelChannel):
    """A channel to a Redis found through sentinels."""


class Transport(redis.Transport):
    """The transport for `redis://`, `rediss://` and `redis+socket://` in this process once it is registered."""

    Channel = Channel


class SentinelTransport(redis.SentinelTransport):
    """The transport for `sentinel://`."""

    Channel = SentinelChannel


def register() -> None:
    """Make kombu use these transports, and fixloop's for RabbitMQ."""
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = f"{__name__}:Transport"
    TRANSPORT_ALIASES["amqp"] = "fixloop.servers.rabbitmq:Transport"
    TRANSPORT_ALIASES["amqps"] = "fixloop.servers.rabbitmq:TLSTransport"
    TRANSPORT_ALIASES["sentinel"] = f"{__name__}:SentinelTransport"
