"""Redis URLs: validates them, shows them without the password, and parses them.

Accepts `redis://`, `rediss://`, `unix://`, Celery's `redis+socket://`, and through sentinels `sentinel://` or
`sentinels://`. Refuses what a client would silently misread, like a database that is no number.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from fixloop.errors import UsageError

SCHEMES: Final = ("redis", "rediss", "unix", "redis+socket", "sentinel", "sentinels")
SENTINEL_SCHEMES: Final = ("sentinel", "sentinels")
_SENTINEL_PORT: Final = 26379
_OURS: Final = ("replicas", "replica_seconds", "sentinel_username", "sentinel_password")
"""The query parameters for fixloop alone."""
MOST_REPLICA_SECONDS: Final = 2.0
"""An answer of Redis may take a little longer."""


class UrlParts(NamedTuple):
    """Login, hosts and path of a URL that may name several hosts."""

    login: str
    """Unchanged: `user:password@` or empty."""
    hosts: tuple[tuple[str, int], ...]
    path: tuple[str, ...]


class RedisPlace(NamedTuple):
    """The address of a Redis and how its writes are confirmed, for a client."""

    url: str
    """For redis-py; empty if sentinels know the address."""
    sentinels: tuple[tuple[str, int], ...]
    sentinel_login: dict[str, str]
    service: str
    """The service name at the sentinels."""
    options: dict[str, Any]
    """Keyword arguments of a connection that is found through sentinels: database, login, TLS."""
    replicas: int
    """The number of replicas that confirm a commit before it counts."""
    replica_seconds: float
    """How long the confirmation may take."""


def checked_url(url: str) -> str:
    """`url` in the form that `place_of` accepts; refuses an unknown scheme, and what a client would misread."""
    try:
        parts = urlsplit(url)
        objection = _objection(parts)
    except ValueError as error:
        raise UsageError(f"{shown_url(url)!r} is not a Redis URL: {error}") from None
    if objection:
        raise UsageError(f"{shown_url(url)!r} is not a Redis URL: {objection}")
    if parts.scheme == "redis+socket":
        query = [("db" if key == "virtual_host" else key, value) for key, value in parse_qsl(parts.query)]
        return joined(parts, "unix", query)
    return url


def completed(url: str, defaults: Mapping[str, Any]) -> str:
    """`url` with `defaults` added to its query for missing values; None is no default."""
    parts = urlsplit(url)
    query = parse_qsl(parts.query)
    told = {key for key, _ in query}
    query += [(key, str(value)) for key, value in defaults.items() if value is not None and key not in told]
    return joined(parts, parts.scheme, query)


def place_of(url: str) -> RedisPlace:
    """What a client needs to use `url`."""
    url = checked_url(url)
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    ours = {key: query.pop(key) for key in _OURS if key in query}
    confirmation = (int(ours.get("replicas", 0)), float(ours.get("replica_seconds", 1)))
    if parts.scheme not in SENTINEL_SCHEMES:
        return RedisPlace(joined(parts, parts.scheme, [*query.items()]), (), {}, "", {}, *confirmation)
    named = hosts_of(url, _SENTINEL_PORT)
    user, _, password = named.login.removesuffix("@").partition(":")
    login = {"username": unquote(user) or None, "password": unquote(password) or None}
    tls = {"ssl": True, **tls_options(query)} if parts.scheme == "sentinels" else {}
    own = {key.removeprefix("sentinel_"): value for key, value in ours.items() if key.startswith("sentinel_")}
    options = {"db": int(named.path[1]) if len(named.path) > 1 else 0, **login, **tls}
    return RedisPlace("", named.hosts, own, named.path[0], options, *confirmation)


def hosts_of(url: str, default_port: int) -> UrlParts:
    """The parts of a URL that may name several hosts: `scheme://user:password@one:1,two:2/path`."""
    parts = urlsplit(url)
    login, at, hosts = parts.netloc.rpartition("@")
    each = [urlsplit(f"//{host}") for host in hosts.split(",") if host]
    named = tuple((host.hostname or "", host.port or default_port) for host in each)
    path = tuple(unquote(part) for part in parts.path.split("/") if part)
    return UrlParts(f"{login}{at}", named, path)


def tls_options(query: Mapping[str, str]) -> dict[str, Any]:
    """The `ssl_…` parameters of a query for redis-py; certificates are verified unless it says otherwise."""
    told: dict[str, Any] = {key: value for key, value in query.items() if key.startswith("ssl_")}
    if "ssl_check_hostname" in told:
        told["ssl_check_hostname"] = told["ssl_check_hostname"].lower() not in ("false", "0", "no")
    return {"ssl_cert_reqs": "required"} | told


def shown_url(url: str) -> str:
    """`url` for a message: three stars for the password, and only the database from the query."""
    head, at, tail = url.rpartition("@")
    scheme, slashes, user = head.partition("://")
    if not at or ":" not in user:
        return _shortened(url)
    return f"{scheme}{slashes}{user.partition(':')[0]}:***@{_shortened(tail)}"


def shown_place(url: str) -> str:
    """The address in `url`, without any login."""
    scheme, _, rest = url.rpartition("@")[2].rpartition("://")
    return f"{scheme or url.partition('://')[0]}://{_shortened(rest)}"


def _shortened(text: str) -> str:
    place, _, query = text.partition("?")
    kept = [(key, value) for key, value in parse_qsl(query) if key in ("db", "virtual_host")]
    return f"{place}?{urlencode(kept)}" if kept else place


def _objection(parts: SplitResult) -> str:
    if parts.scheme not in SCHEMES:
        return f"its scheme is {parts.scheme!r}; use one of {', '.join(f'{name}://' for name in SCHEMES)}"
    query = dict(parse_qsl(parts.query))
    if parts.scheme in ("unix", "redis+socket"):
        remote = parts.netloc.rpartition("@")[2]
        return "" if parts.path.strip("/") and not remote else "write the socket as unix:///path/to/socket"
    if parts.scheme in SENTINEL_SCHEMES:
        named = hosts_of(parts.geturl(), _SENTINEL_PORT)
        if not named.hosts or not all(host for host, _ in named.hosts) or not 1 <= len(named.path) <= 2:
            return "write it as sentinel://user:password@host:port,host:port/service/database"
        database = named.path[1] if len(named.path) > 1 else "0"
    elif not parts.hostname:
        return "it names no host"
    elif parts.port == 0:  # reading it raises ValueError where it is no port
        return "its port is 0"
    else:
        database = query.get("db", parts.path.strip("/"))
    if database and not (database.isascii() and database.isdigit()):
        return f"its database {database!r} is not a number"
    replicas, seconds = query.get("replicas", "0"), query.get("replica_seconds", "1")
    if not (replicas.isascii() and replicas.isdigit()):
        return f"replicas={replicas!r} is not a number"
    if not 0 < float(seconds) <= MOST_REPLICA_SECONDS:
        return f"replica_seconds={seconds} is not above 0 and at most {MOST_REPLICA_SECONDS:g}"
    return ""


def joined(parts: SplitResult, scheme: str, query: list[tuple[str, str]]) -> str:
    """The URL of these parts with another scheme and query."""
    # Spaces as %20: a client that does not decode a plus would look for another file.
    tail = f"?{urlencode(query, quote_via=quote)}" if query else ""
    return f"{scheme}://{parts.netloc}{parts.path}{tail}"
