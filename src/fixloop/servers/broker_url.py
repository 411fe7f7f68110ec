"""Broker URLs: RabbitMQ's `amqp://` and `amqps://`, those of a Redis, and their form for Celery.

Owns the connection options of both kinds. Loads neither Celery nor kombu.
"""

from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from fixloop.errors import UsageError
from fixloop.servers import redis_url

PRIORITY_STEPS: Final = (0, 3, 6, 9)
"""Must be the same for all senders and receivers, or messages are stranded."""
VISIBILITY_SECONDS: Final = 6 * 3600
"""Longer than any step: a lost step comes back by its lease, not by this (R7)."""
_HEALTH_SECONDS: Final = 2
"""How often kombu checks an idle connection; with its default of 25 s, a dead one goes unnoticed for 50 s."""
_RABBITMQ: Final = {"amqp": 5672, "amqps": 5671}


def is_rabbitmq(url: str) -> bool:
    return urlsplit(url).scheme in _RABBITMQ


def checked_broker_url(url: str) -> str:
    """`url` as `celery_settings` accepts it; refuses a URL of neither RabbitMQ nor Redis."""
    if not is_rabbitmq(url):
        return redis_url.checked_url(url)
    try:
        named = redis_url.hosts_of(url, _RABBITMQ[urlsplit(url).scheme])
    except ValueError as error:
        raise UsageError(f"{redis_url.shown_url(url)!r} is not a RabbitMQ URL: {error}") from None
    if not named.hosts or not all(host for host, _ in named.hosts):
        raise UsageError(f"{redis_url.shown_url(url)!r} is not a RabbitMQ URL: it names no host")
    return url


def celery_url(url: str) -> str:
    """`url` in Celery's form for a broker; the rest of the settings is in `celery_settings`."""
    url = checked_broker_url(url)
    parts = urlsplit(url)
    if is_rabbitmq(url):
        named = redis_url.hosts_of(url, _RABBITMQ[parts.scheme])
        host, port = named.hosts[0]  # the others are an option of the connection
        return f"{parts.scheme}://{named.login}{host}:{port}{parts.path}"
    if parts.scheme in redis_url.SENTINEL_SCHEMES:
        place, login = redis_url.place_of(url), redis_url.hosts_of(url, 0).login
        return ";".join(
            f"sentinel://{login}{host}:{port}/{place.options['db']}" for host, port in place.sentinels
        )
    parts = urlsplit(redis_url.place_of(url).url)
    query, scheme = parse_qsl(parts.query), parts.scheme
    if scheme == "unix":
        query = [("virtual_host" if key == "db" else key, value) for key, value in query]
        scheme = "redis+socket"
    if scheme == "rediss" and "ssl_cert_reqs" not in dict(query):
        # Celery, unlike redis-py, does not verify certificates by default.
        query.append(("ssl_cert_reqs", "required"))
    return redis_url.joined(parts, scheme, query)


def celery_settings(url: str, *, connect_seconds: float, answer_seconds: float) -> dict[str, Any]:
    """Celery's settings for the broker at `url`, with the timeouts for connections and answers."""
    parts = urlsplit(url)
    is_secure = parts.scheme in ("amqps", "rediss", "sentinels")
    tls = redis_url.tls_options(dict(parse_qsl(parts.query))) if is_secure else {}
    settings: dict[str, Any] = {"broker_url": celery_url(url), "broker_connection_timeout": connect_seconds}
    if is_rabbitmq(url):
        # Without confirmation, messages on a connection that just died are lost silently. Losing a hint that is sent
        # again ahead of a backlog would be noticed only at the backlog's end.
        options: dict[str, Any] = {
            "read_timeout": answer_seconds,
            "write_timeout": answer_seconds,
            "confirm_publish": True,
            "hosts": redis_url.hosts_of(url, _RABBITMQ[parts.scheme]).hosts,
        }
        # With the names of ssl, not of redis-py; kombu sets `server_hostname` to the host it connects to.
        tls = {name.removeprefix("ssl_"): value for name, value in tls.items()}
        if tls:
            # Imported late: few commands connect to RabbitMQ by TLS, and all load this module.
            import ssl

            tls["cert_reqs"] = {"none": ssl.CERT_NONE}.get(tls["cert_reqs"], ssl.CERT_REQUIRED)
            if tls.pop("check_hostname", True) and tls["cert_reqs"] is ssl.CERT_REQUIRED:
                tls["server_hostname"] = None
    else:
        options = _redis_options(url, connect_seconds, answer_seconds)
    return settings | {"broker_transport_options": options} | ({"broker_use_ssl": tls} if tls else {})


def _redis_options(url: str, connect_seconds: float, answer_seconds: float) -> dict[str, Any]:
    bounds = {"socket_connect_timeout": connect_seconds, "socket_timeout": answer_seconds}
    options: dict[str, Any] = {
        **bounds,
        "socket_keepalive": True,
        "health_check_interval": _HEALTH_SECONDS,
        "visibility_timeout": VISIBILITY_SECONDS,
        "priority_steps": list(PRIORITY_STEPS),
        "queue_order_strategy": "round_robin",
    }
    place = redis_url.place_of(url)
    if place.sentinels:
        tls = {key: value for key, value in place.options.items() if key.startswith("ssl")}
        options["master_name"] = place.service
        options["sentinel_kwargs"] = {**bounds, **place.sentinel_login, **tls}
    return options
