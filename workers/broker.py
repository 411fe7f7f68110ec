"""What the broker is asked: how many messages wait where."""

from collections.abc import Collection

import redis

from fixloop.errors import InfrastructureError
from fixloop.store.records import Lane
from workers.app import app

__all__ = ["lengths"]


def lengths(lanes: Collection[Lane]) -> dict[Lane, int]:
    """
    How many messages wait in each lane, in one round trip.

    Raises:
        InfrastructureError: the broker is away.
    """
    asked = list(lanes)
    try:
        with app.pool.acquire(block=True) as connection:
            channel = connection.default_channel
            with channel.conn_or_acquire() as client, client.pipeline(transaction=False) as pipe:
                for lane in asked:
                    pipe.llen(channel._q_for_pri(lane.queue, lane.priority))
                return dict(zip(asked, map(int, pipe.execute()), strict=True))
    except (redis.RedisError, OSError) as error:
        raise InfrastructureError(f"the broker cannot be asked: {error}") from None
