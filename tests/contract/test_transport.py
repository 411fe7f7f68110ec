"""The transport's differences to kombu's: shared clients, words known by heart, connections that are watched once."""

import time
from collections.abc import Iterator
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from kombu.asynchronous.hub import Hub
from kombu.connection import Connection
from kombu.entity import Queue

from fixloop.servers.broker_url import celery_url
from fixloop.servers.embedded import embedded_redis
from fixloop.store.redis_store import RedisStore
from tests.fixtures.deployment import wait_until
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


def test_commands_of_a_channel_share_one_client(connection: Any) -> None:
    channel = connection.channel()

    with channel.conn_or_acquire() as first, channel.conn_or_acquire() as second:
        assert first is second


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


@pytest.mark.parametrize("stored", [b"no json", b"5", b"[1]", b"\xff"])
def test_what_is_no_message_among_those_that_were_taken_is_dropped_and_counted(
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

            channel.exchange.settle()
            assert (client.hlen("unacked"), client.zcard("unacked_index")) == (0, 0)
        wait_until(lambda: store.rejections().total == 1, seconds=30)


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


class _Sent:
    """A connection that keeps what it was to send."""

    def __init__(self, packer: Any) -> None:
        self.packed: list[bytes] = []
        self._packer = packer

    def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        self.packed.append(b"".join(command))

    def send_command(self, *words: Any, **more: Any) -> None:
        self.send_packed_command(self._packer.pack_command(*words))


def test_messages_are_asked_for_in_kombus_words_and_in_each_order_of_the_queues(connection: Any) -> None:
    channel = connection.channel()
    with channel.conn_or_acquire() as shared:
        pool = shared.connection_pool
    packer = pool.get_connection()
    for name in ("one", "two", "three"):
        queue: Any = _queue(name, channel=channel)
        queue.declare()
        channel.basic_consume(name, no_ack=False, callback=lambda _: None, consumer_tag=name)
    waiting, channel.client.connection = channel.client.connection, _Sent(packer)
    asked = channel.client.connection

    for last in ("one", "three", "nobody"):
        channel._queue_cycle.rotate(last)
        channel._brpop_start()
        super(Transport.Channel, channel)._brpop_start()

    channel.client.connection = waiting
    pool.release(packer)
    ours, kombus = asked.packed[::2], asked.packed[1::2]
    assert ours == kombus
    assert len(set(ours)) == 2


def test_a_loop_watches_a_connection_once_and_the_one_that_takes_its_place(connection: Any) -> None:
    found: list[int] = []
    queue: Any = _queue("watched", channel=connection.channel())
    consumer: Any = connection.Consumer([queue], no_ack=True, callbacks=[lambda body, _: found.append(body)])
    with closing(Hub()) as hub, connection.Producer() as producer, consumer:
        connection.register_with_event_loop(hub)

        def arrives(number: int) -> None:
            producer.publish(number, routing_key="watched", serializer="json")
            deadline = time.monotonic() + 60
            while number not in found and time.monotonic() < deadline:
                next(hub.loop)

        arrives(1)
        cycle = connection.transport.cycle
        watched = set(hub.readers)
        assert cycle._fd_to_chan.keys() <= watched
        assert not cycle.fds
        arrives(2)
        assert set(hub.readers) == watched
        waiting = next(channel for channel in cycle._channels if channel.active_queues)
        waiting.client.connection.disconnect()
        arrives(3)

    assert found == [1, 2, 3]
