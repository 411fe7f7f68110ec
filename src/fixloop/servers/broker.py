"""What fixloop asks a broker besides sending and taking messages, for RabbitMQ and Redis alike.

Loads kombu; who only handles URLs uses `fixloop.servers.broker_url`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import redis
from celery import Celery
from celery.utils.imports import instantiate
from kombu.connection import Connection
from kombu.exceptions import KombuError

from fixloop.errors import InfrastructureError
from fixloop.servers.broker_url import celery_settings, is_rabbitmq
from fixloop.servers.connection_errors import reason_of
from fixloop.servers.redis_url import shown_place

SHORTLY: Final = {"max_retries": 1, "interval_start": 0.1, "interval_step": 0.0, "interval_max": 0.1}
"""For a caller that waits: a connection that is refused is tried once more."""


def amqp_of(app: Celery) -> Any:
    """What Celery is given as `amqp`: which one it is depends on the broker, known when it is first used."""
    is_ours = is_rabbitmq(app.conf.broker_url)
    return instantiate("fixloop.servers.rabbitmq:AMQP" if is_ours else Celery.amqp_cls, app=app)


def transport_for(url: str) -> str | None:
    """The transport for a process that is not only ours, in which `amqp://` keeps its usual meaning."""
    if not is_rabbitmq(url):
        return None
    return f"fixloop.servers.rabbitmq:{'TLSTransport' if url.startswith('amqps') else 'Transport'}"


def app_for(url: str) -> Celery:
    """An app that only sends to the broker at `url`, and does not wait long for one that is away."""
    app = Celery("fixloop", set_as_current=False, amqp=amqp_of)
    app.conf.update(celery_settings(url, connect_seconds=1.0, answer_seconds=1.0))
    app.conf.broker_transport = transport_for(url)
    return app


def connection_to(url: str) -> Connection:
    """A connection with short timeouts; nothing is sent yet."""
    told = celery_settings(url, connect_seconds=1.0, answer_seconds=1.0)
    return Connection(
        told["broker_url"],
        ssl=told.get("broker_use_ssl", False),
        transport=transport_for(url),
        connect_timeout=told["broker_connection_timeout"],
        transport_options=told["broker_transport_options"],
    )


def errors_of(connection: Any) -> tuple[type[BaseException], ...]:
    """The exceptions of a broker that is away or refuses."""
    return (redis.RedisError, KombuError, OSError, *connection.connection_errors, *connection.channel_errors)


def ping(url: str) -> dict[str, Any]:
    """What the broker at `url` says of itself: `product` and `version` of a RabbitMQ, nothing of a Redis."""
    with connection_to(url) as connection, explained(connection, url):
        connection.ensure_connection(**SHORTLY)
        connection.default_channel  # noqa: B018 - a Redis is asked only now
        told: dict[str, Any] = getattr(connection.connection, "server_properties", {})
        return told


@contextmanager
def explained(connection: Any, url: str) -> Iterator[None]:
    """Within it, what the broker's driver raises is one sentence of an InfrastructureError."""
    try:
        yield
    except errors_of(connection) as error:
        told = f"the broker at {shown_place(url)} did not take part: {reason_of(error, url)}"
        raise InfrastructureError(told) from None
