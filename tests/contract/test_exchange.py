"""The short way to Redis says what Redis says, loses nothing, and recovers from what redis-py recovers from."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from redis import ConnectionPool, Redis, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError

from fixloop.servers.redis_exchange import Exchange

pytestmark = pytest.mark.slow


@pytest.fixture
def pool(redis_url: str) -> Iterator[Any]:
    made: Any = ConnectionPool.from_url(redis_url)
    yield made
    made.disconnect()


def _cut(pool: Any) -> None:
    """As a Redis does that is restarted: every connection but the one that asks for it is closed."""
    client: Any = Redis(
        connection_pool=ConnectionPool(**pool.connection_kwargs, connection_class=pool.connection_class)
    )
    client.execute_command("CLIENT", "KILL", "SKIPME", "yes")
    client.close()


def test_a_command_is_answered_as_redis_answers(pool: Any) -> None:
    exchange = Exchange(pool)

    commands = ("SET", "name", "value"), ("GET", "name"), ("GET", "other"), ("INCR", "count")
    assert exchange.ask_all(commands) == [b"OK", b"value", None, 1]


def test_a_connection_is_kept_between_two_commands(pool: Any) -> None:
    exchange = Exchange(pool)

    assert len({*exchange.ask_all([("CLIENT", "ID")]), *exchange.ask_all([("CLIENT", "ID")])}) == 1


def test_a_refusal_is_among_the_replies(pool: Any) -> None:
    exchange = Exchange(pool)

    _, refusal, last = exchange.ask_all((("SET", "text", "a"), ("INCR", "text"), ("GET", "text")))

    assert isinstance(refusal, ResponseError)
    assert last == b"a"


def test_a_connection_that_was_closed_is_replaced_by_the_next_attempt(pool: Any) -> None:
    exchange = Exchange(pool)
    exchange.ask_all((("PING",),))
    _cut(pool)

    with pytest.raises(RedisConnectionError):
        exchange.ask_all((("PING",),))

    assert exchange.ask_all((("PING",),)) == [b"PONG"]


def test_one_that_was_closed_while_it_was_idle_for_long_is_not_noticed(
    pool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fixloop.servers.redis_exchange._TRUSTED_SECONDS", 0.0)
    exchange = Exchange(pool)
    exchange.ask_all((("PING",),))
    _cut(pool)

    assert exchange.ask_all((("PING",),)) == [b"PONG"]


def test_a_forked_process_leaves_the_parents_connections_alone(pool: Any) -> None:
    exchange = Exchange(pool)
    mine = exchange.ask_all((("CLIENT", "ID"),))

    child = os.fork()
    if child == 0:
        os._exit(0 if exchange.ask_all((("CLIENT", "ID"),)) != mine else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert exchange.ask_all((("CLIENT", "ID"),)) == mine
