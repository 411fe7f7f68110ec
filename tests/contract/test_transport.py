"""The transport's differences from kombu's: shared clients, cached scripts, connections watched once."""

from collections.abc import Iterator
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from kombu.connection import Connection
from kombu.entity import Queue

from fixloop.servers.broker_url import celery_url
from fixloop.servers.embedded import embedded_redis
from fixloop.store.redis_store import RedisStore
from tests.fixtures.deployment import wait_until
from tests.fixtures.patience import slack
from workers.celery_fast import rejection
from workers.celery_fast.transport import Transport

pytestmark = pytest.mark.slow

# kombu has no types.
_connection: Any = Connection
_queue: Any = Queue


@pytest.fixture
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("transport")
    with embedded_redis(folder) as url, _connection(celery_url(url)) as made:
        # Given by its class: the registry is the worker process' business.
        made.transport_cls = Transport
        yield made


def test_blocking_reads_have_their_own_client(connection: Any) -> None:
    channel = connection.channel()

    with channel.conn_or_acquire() as shared:
        assert channel.client is not shared
        assert channel.subclient is not channel.client


def test_a_new_pool_gets_a_new_client(connection: Any) -> None:
    channel = connection.channel()
    with channel.conn_or_acquire() as before:
        channel._disconnect_pools()

        with channel.conn_or_acquire() as after:
            assert after is not before
            assert after.ping()


def test_messages_are_sent_taken_and_acknowledged(connection: Any) -> None:
    queue: Any = _queue("transport", channel=connection.channel())
    queue.declare()
    with connection.Producer() as producer:
        for number in range(3):
            producer.publish({"number": number}, routing_key="transport", serializer="json")

    taken = [queue.get() for _ in range(3)]
    for message in taken:
        message.ack()

    assert [message.payload["number"] for message in taken] == [0, 1, 2]
    assert queue.get() is None
    with queue.channel.conn_or_acquire() as client:
        assert client.zcard("unacked_index") == 0


def test_an_unacknowledged_message_is_returned_when_its_consumer_ends(connection: Any) -> None:
    queue: Any = _queue("transport", channel=connection.channel())
    queue.declare()
    with connection.Producer() as producer:
        producer.publish({"number": 1}, routing_key="transport", serializer="json")
    message = queue.get()
    with queue.channel.conn_or_acquire() as client:
        assert client.hlen("unacked") == client.zcard("unacked_index") == 1

    message.requeue()

    assert queue.get().payload == {"number": 1}


@pytest.mark.parametrize("stored", [b"no json", b"5", b"[1]", b"\xff"])
def test_an_unacknowledged_entry_that_is_no_message_is_dropped_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: bytes
) -> None:
    with (
        embedded_redis(tmp_path) as url,
        closing(RedisStore(url)) as store,
        _connection(celery_url(url)) as made,
    ):
        monkeypatch.setenv("FIXLOOP_STATE_URL", url)
        monkeypatch.setattr(rejection, "_waiting", lru_cache(rejection._waiting.__wrapped__))
        made.transport_cls = Transport
        channel = made.channel()
        with channel.conn_or_acquire() as client:
            client.hset("unacked", "tag", stored)
            client.zadd("unacked_index", {"tag": 0})

            channel.qos.restore_by_tag("tag")

            assert (client.hlen("unacked"), client.zcard("unacked_index")) == (0, 0)
        wait_until(lambda: store.rejections().total == 1, seconds=slack(30))


def test_messages_of_one_channel_keep_their_priorities(connection: Any) -> None:
    queue: Any = _queue("transport", channel=connection.channel())
    queue.declare()
    with connection.Producer() as producer:
        for priority in (9, 0, 3):
            producer.publish(
                {"priority": priority}, routing_key="transport", serializer="json", priority=priority
            )

    assert [queue.get().payload["priority"] for _ in range(3)] == [0, 3, 9]


def test_a_message_with_undecodable_headers_is_accepted(connection: Any) -> None:
    queue: Any = _queue("transport", channel=connection.channel())
    queue.declare()
    with connection.Producer() as producer:
        producer.publish({}, routing_key="transport", serializer="json", headers={"from": "\udcff"})

    message = queue.get()

    assert message.headers["from"] == "\udcff"
    message.ack()
