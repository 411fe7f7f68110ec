"""kombu's Redis transport: what is no message is rejected where it is read (docs/decisions/0040)."""

from queue import Empty
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis

from workers.celery_fast.incoming import opened
from workers.celery_fast.rejection import reject


class QoS(redis.QoS):
    """What was taken and not acknowledged yet."""

    def restore_by_tag(self, tag: str, client: Any = None, leftmost: bool = False) -> None:
        """Put it back."""
        kombus: Any = super()
        try:
            kombus.restore_by_tag(tag, client=client, leftmost=leftmost)
        except (ValueError, TypeError) as error:
            # Kombu has not written it, and would find it again and again.
            with self.channel.conn_or_acquire(client) as asked:
                asked.hdel(self.unacked_key, tag)
                asked.zrem(self.unacked_index_key, tag)
            reject(self.unacked_key, _bytes(tag), error)


class MessagesOnly:
    """A channel that takes messages alone."""

    QoS = QoS

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


def _opened(queue: str, data: bytes) -> dict[str, Any] | None:
    """The message in `data`; None when there is none, and it was rejected."""
    try:
        return opened(data)
    except Exception as error:  # decoders differ in what they raise, and nothing here asks a server
        reject(queue, data, error)
        return None


def _bytes(text: Any) -> bytes:
    return text if isinstance(text, bytes) else str(text).encode(errors="replace")


class Channel(MessagesOnly, redis.Channel):
    """On a Redis whose address is known."""


class SentinelChannel(MessagesOnly, redis.SentinelChannel):
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
