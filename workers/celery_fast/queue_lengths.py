"""Asks the broker for the lengths of its queues."""

from collections.abc import Collection
from typing import Any, Final

from kombu.exceptions import OperationalError

from fixloop.servers.broker import SHORTLY, errors_of
from fixloop.store.records import Lane
from workers.app import app

NOT_FOUND: Final = 404


def lengths(lanes: Collection[Lane]) -> dict[Lane, int]:
    """How many messages wait in each lane; OperationalError if the broker is away. RabbitMQ only knows whole queues:
    there, each lane gets the length of its queue."""
    try:
        with app.pool.acquire(block=True) as connection:
            # A connection that was cut has no channels, and kombu does not notice it.
            connection.ensure_connection(**SHORTLY)
            if connection.transport.driver_type == "amqp":
                queues = {name: _length(connection, name) for name in {lane.queue for lane in lanes}}
                return {lane: queues[lane.queue] for lane in lanes}
            channel = connection.default_channel
            with channel.conn_or_acquire() as client, client.pipeline(transaction=False) as pipe:
                for lane in lanes:
                    pipe.llen(channel._q_for_pri(lane.queue, lane.priority))
                return dict(zip(lanes, map(int, pipe.execute()), strict=True))
    except errors_of(app.connection_for_write()) as error:
        raise OperationalError(f"the broker cannot be asked: {error}") from error


def _length(connection: Any, name: str) -> int:
    # A separate channel, because asking for a missing queue closes it.
    with connection.channel() as channel:
        try:
            return int(channel.queue_declare(name, passive=True).message_count)
        except connection.channel_errors as error:
            if getattr(error, "code", 0) != NOT_FOUND:
                raise
            return 0
