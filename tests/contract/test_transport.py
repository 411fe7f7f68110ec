"""The transport's one difference to kombu's: commands share a client, for as long as their pool lives."""

from collections.abc import Iterator
from typing import Any

import pytest
from kombu.connection import Connection
from kombu.entity import Queue

from fixloop.embedded import embedded_redis
from fixloop.settings import celery_url
from workers.transport import Transport

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


def test_commands_of_a_channel_share_one_client(connection: Any) -> None:
    channel = connection.channel()

    with channel.conn_or_acquire() as first, channel.conn_or_acquire() as second:
        assert first is second


def test_what_waits_for_messages_has_a_client_of_its_own(connection: Any) -> None:
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


def test_a_message_that_was_taken_is_noted_and_put_back_when_its_taker_ends(connection: Any) -> None:
    queue: Any = _queue("transport", channel=connection.channel())
    queue.declare()
    with connection.Producer() as producer:
        producer.publish({"number": 1}, routing_key="transport", serializer="json")
    message = queue.get()
    with queue.channel.conn_or_acquire() as client:
        queue.channel.exchange.settle()
        assert client.hlen("unacked") == client.zcard("unacked_index") == 1

    message.requeue()

    assert queue.get().payload == {"number": 1}


def test_messages_of_one_channel_keep_their_priorities(connection: Any) -> None:
    queue: Any = _queue("transport", channel=connection.channel())
    queue.declare()
    with connection.Producer() as producer:
        for priority in (9, 0, 3):
            producer.publish(
                {"priority": priority}, routing_key="transport", serializer="json", priority=priority
            )

    assert [queue.get().payload["priority"] for _ in range(3)] == [0, 3, 9]


def test_a_message_whose_headers_are_no_unicode_is_taken_all_the_same(connection: Any) -> None:
    queue: Any = _queue("transport", channel=connection.channel())
    queue.declare()
    with connection.Producer() as producer:
        producer.publish({}, routing_key="transport", serializer="json", headers={"from": "\udcff"})

    message = queue.get()

    assert message.headers["from"] == "\udcff"
    message.ack()
