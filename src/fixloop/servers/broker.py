"""Broker requests other than sending and receiving messages, for RabbitMQ and Redis alike.

Loads kombu; code that only handles URLs uses `fixloop.servers.broker_url`.
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
"""For a caller that waits: a refused connection is retried once."""


def amqp_of(app: Celery) -> Any:
    """Celery's `amqp`: its class depends on the broker, which is known on first use."""
    is_ours = is_rabbitmq(app.conf.broker_url)
    return instantiate("fixloop.servers.rabbitmq:AMQP" if is_ours else Celery.amqp_cls, app=app)


def transport_for(url: str) -> str | None:
    """The transport for a process that is not fixloop's alone, in which `amqp://` keeps its usual meaning."""
    if not is_rabbitmq(url):
        return None
    return f"fixloop.servers.rabbitmq:{'TLSTransport' if url.startswith('amqps') else 'Transport'}"


def app_for(url: str) -> Celery:
    """An app that only sends to the broker at `url`, with short timeouts."""
    app = Celery("fixloop", set_as_current=False, amqp=amqp_of)
    app.conf.update(celery_settings(url, connect_seconds=1.0, answer_seconds=1.0))
    app.conf.broker_transport = transport_for(url)
    return app


def connection_to(url: str) -> Connection:
    """A connection with short timeouts; sends nothing yet."""
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
    """The broker's description of itself: `product` and `version` of a RabbitMQ, empty for a Redis."""
    with connection_to(url) as connection, explained(connection, url):
        connection.ensure_connection(**SHORTLY)
        connection.default_channel  # noqa: B018 - a Redis is asked only now
        told: dict[str, Any] = getattr(connection.connection, "server_properties", {})
        return told


@contextmanager
def explained(connection: Any, url: str) -> Iterator[None]:
    """Turn exceptions of the broker's driver into an InfrastructureError with one sentence."""
    try:
        yield
    except errors_of(connection) as error:
        told = f"the broker at {shown_place(url)} did not take part: {reason_of(error, url)}"
        raise InfrastructureError(told) from None
