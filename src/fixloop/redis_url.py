"""Redis URLs: checking what a person wrote, showing it without its password, saying it in Celery's words.

Owns the accepted forms: `redis://`, `rediss://`, `unix://` and Celery's `redis+socket://`. Refuses what a
client would silently misread, like a database that is no number.
"""

from typing import Final
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from fixloop.errors import UsageError

__all__ = ["celery_url", "checked_url", "shown_url"]

SCHEMES: Final = ("redis", "rediss", "unix", "redis+socket")
# Celery, unlike redis-py, checks no certificate unless it is told to.
_TLS_CHECK: Final = ("ssl_cert_reqs", "required")


def checked_url(url: str) -> str:
    """
    `url` in the form redis-py takes.

    Raises:
        UsageError: an unknown scheme, or a part that a client would misread.
    """
    try:
        parts = urlsplit(url)
        objection = _objection(parts)
    except ValueError as error:
        raise UsageError(f"{shown_url(url)!r} is not a Redis URL: {error}") from None
    if objection:
        raise UsageError(f"{shown_url(url)!r} is not a Redis URL: {objection}")
    if parts.scheme == "redis+socket":
        query = [("db" if key == "virtual_host" else key, value) for key, value in parse_qsl(parts.query)]
        return _joined(parts, "unix", query)
    return url


def celery_url(url: str) -> str:
    """
    `url` in the form Celery takes as a broker.

    Raises:
        UsageError: as `checked_url`.
    """
    url = checked_url(url)
    parts = urlsplit(url)
    query = parse_qsl(parts.query)
    if parts.scheme == "unix":
        query = [("virtual_host" if key == "db" else key, value) for key, value in query]
        return _joined(parts, "redis+socket", query)
    if parts.scheme == "rediss" and "ssl_cert_reqs" not in dict(query):
        return _joined(parts, "rediss", [*query, _TLS_CHECK])
    return url


def shown_url(url: str) -> str:
    """`url` fit for a message: its password is three stars."""
    head, at, tail = url.rpartition("@")
    scheme, slashes, user = head.partition("://")
    if not at or ":" not in user:
        return url
    return f"{scheme}{slashes}{user.partition(':')[0]}:***@{tail}"


def _objection(parts: SplitResult) -> str:
    if parts.scheme not in SCHEMES:
        return f"its scheme is {parts.scheme!r}; use one of {', '.join(f'{name}://' for name in SCHEMES)}"
    if parts.scheme in ("unix", "redis+socket"):
        remote = parts.netloc.rpartition("@")[2]
        return "" if parts.path.strip("/") and not remote else "write the socket as unix:///path/to/socket"
    if not parts.hostname:
        return "it names no host"
    if parts.port == 0:  # reading it raises ValueError where it is no port
        return "its port is 0"
    return _database_objection(parts)


def _database_objection(parts: SplitResult) -> str:
    database = dict(parse_qsl(parts.query)).get("db", parts.path.strip("/"))
    if database and not (database.isascii() and database.isdigit()):
        return f"its database {database!r} is not a number"
    return ""


def _joined(parts: SplitResult, scheme: str, query: list[tuple[str, str]]) -> str:
    tail = f"?{urlencode(query)}" if query else ""
    return f"{scheme}://{parts.netloc}{parts.path}{tail}"
