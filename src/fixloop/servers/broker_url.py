"""Broker URLs: RabbitMQ's `amqp://` and `amqps://` besides those of a Redis, and how Celery is told of each.

Owns the options of a connection for both kinds. Loads neither Celery nor kombu.
"""

from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from fixloop.errors import UsageError
from fixloop.servers import redis_url

PRIORITY_STEPS: Final = (0, 3, 6, 9)
"""The same for everybody who sends or takes messages, or some are stranded."""
VISIBILITY_SECONDS: Final = 6 * 3600
"""Longer than any step: a step's lease is what brings it back, not this (R7)."""
_HEALTH_SECONDS: Final = 2
"""How often kombu asks whether the other end still knows an idle connection; by its own 25 s one is deaf for 50."""
_RABBITMQ: Final = {"amqp": 5672, "amqps": 5671}


def is_rabbitmq(url: str) -> bool:
    return urlsplit(url).scheme in _RABBITMQ


def checked_broker_url(url: str) -> str:
    """`url` as `celery_settings` takes it; refuses what is neither one of RabbitMQ nor one of a Redis."""
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
    """`url` in the form Celery takes as a broker; the rest of what it has to know is in `celery_settings`."""
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
        # Celery, unlike redis-py, checks no certificate unless it is told to.
        query.append(("ssl_cert_reqs", "required"))
    return redis_url.joined(parts, scheme, query)


def celery_settings(url: str, *, connect_seconds: float, answer_seconds: float) -> dict[str, Any]:
    """Celery's settings for the broker at `url`, with how long a connection and an answer on it may take."""
    parts = urlsplit(url)
    is_secure = parts.scheme in ("amqps", "rediss", "sentinels")
    tls = redis_url.tls_options(dict(parse_qsl(parts.query))) if is_secure else {}
    settings: dict[str, Any] = {"broker_url": celery_url(url), "broker_connection_timeout": connect_seconds}
    if is_rabbitmq(url):
        # Without confirmation what is sent on a connection that has just died is lost in silence. A hint that is sent
        # again in front of a backlog would be missed only at its end.
        options: dict[str, Any] = {
            "read_timeout": answer_seconds,
            "write_timeout": answer_seconds,
            "confirm_publish": True,
            "hosts": redis_url.hosts_of(url, _RABBITMQ[parts.scheme]).hosts,
        }
        # In the words of ssl, not of redis-py; kombu puts the name of the host it connects to into `server_hostname`.
        tls = {name.removeprefix("ssl_"): value for name, value in tls.items()}
        if tls:
            # Few commands connect to RabbitMQ by TLS, and all load this module.
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
