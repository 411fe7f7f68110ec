"""The one way to Redis: from a URL to replies, or to one sentence saying why not.

Owns timeouts, patience and the words of what went wrong. Refuses to hang: a Redis that is away is reported
within 2 s, a frozen one within 3 s. Everything sent through here can be sent twice.
"""

import random
import re
import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Final, TypeVar
from urllib.parse import parse_qs, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

from fixloop.errors import InfrastructureError, ProtocolError, UsageError
from fixloop.store.scripts import SCRIPTS, source

__all__ = ["Connection"]

T = TypeVar("T")

# A little under the promised 2 s and 3 s, for what is done around them.
_CONNECT_SECONDS: Final = 1.8
_ANSWER_SECONDS: Final = 2.8
_LONGEST_PAUSE_SECONDS: Final = 1.0
# What Redis answers when it is there and cannot serve: full, replica, disk error. Waiting may help.
# Redis 6 puts the word into the middle of a sentence about the script.
_NOT_NOW: Final = re.compile(r"(^|-)(OOM|MISCONF|READONLY|MASTERDOWN|NOREPLICAS|LOADING|BUSY)\b")


class Connection:
    """A pool of connections to one Redis, safe to share between threads and to carry through a fork."""

    def __init__(self, url: str, *, patience_seconds: float = 0.0) -> None:
        """
        Nothing is sent yet.

        Args:
            url: redis://, rediss://, unix:// or Celery's redis+socket://.
            patience_seconds: how long a call goes on trying while Redis is away.

        Raises:
            UsageError: the URL is not one of these.
        """
        self.where = _without_password(url)
        self._patience_seconds = patience_seconds
        self._client = _client(_for_redis_py(url))
        self._scripts = {name: self._client.register_script(source(name)) for name in SCRIPTS}

    def call(self, action: Callable[["redis.Redis"], T]) -> T:
        """
        What `action` returns, tried again while patience lasts.

        Raises:
            InfrastructureError: Redis is away, frozen, or cannot serve.
        """
        give_up = time.monotonic() + self._patience_seconds
        for turn in count():
            try:
                return action(self._client)
            except RedisError as error:
                if not self._may_try_again(error, turn, give_up):
                    raise self._explained(error) from None
        raise AssertionError("count() ended")

    def run(self, script: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """One script in one round trip; see `call`."""
        return self.call(lambda _client: self.send(script, keys, args))

    def send(self, script: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """One script, once; for use inside an action of `call`."""
        return self._scripts[script](keys=keys, args=args)

    def close(self) -> None:
        """Give up all connections."""
        self._client.close()

    def _may_try_again(self, error: RedisError, turn: int, give_up: float) -> bool:
        if _is_refused_login(error) or not _is_absence(error):
            return False
        if time.monotonic() >= give_up:
            # A pooled connection may be one that Redis closed when it was restarted: one more try costs
            # nothing, as a refusal comes at once. A timeout has already taken its time.
            return turn == 0 and not isinstance(error, RedisTimeoutError | ResponseError | BusyLoadingError)
        time.sleep(min(_LONGEST_PAUSE_SECONDS, 0.02 * 2 ** min(turn, 6)) * random.uniform(0.5, 1.0))
        return True

    def _explained(self, error: RedisError) -> InfrastructureError | ProtocolError:
        if isinstance(error, RedisTimeoutError):
            connecting = "connecting" in str(error)
            return self._away(f"no answer within {2 if connecting else 3} s")
        if _is_refused_login(error):
            return InfrastructureError(
                f"Redis at {self.where} refuses the login ({_one_line(error)}); "
                "put the right user and password into FIXLOOP_STATE_URL"
            )
        if isinstance(error, ResponseError | BusyLoadingError):
            if _is_absence(error):
                return InfrastructureError(
                    f"Redis at {self.where} cannot serve now: {_one_line(error)}; see its log"
                )
            return ProtocolError(f"Redis at {self.where} did not understand fixloop: {_one_line(error)}")
        return self._away(_reason(error))

    def _away(self, reason: str) -> InfrastructureError:
        return InfrastructureError(
            f"cannot reach Redis at {self.where}: {reason}; start it or set FIXLOOP_STATE_URL"
        )


def _client(url: str) -> "redis.Redis":
    try:
        return redis.Redis.from_url(
            url,
            socket_connect_timeout=_CONNECT_SECONDS,
            socket_timeout=_ANSWER_SECONDS,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
            driver_info=None,
        )
    except ValueError as error:
        raise UsageError(f"FIXLOOP_STATE_URL is no Redis URL: {_one_line(error)}") from None


def _for_redis_py(url: str) -> str:
    """The URL in redis-py's words; Celery says `redis+socket:///path?virtual_host=0` for a Unix socket."""
    scheme, separator, rest = url.partition("://")
    if separator and scheme in ("redis", "rediss", "unix"):
        return url
    if scheme == "redis+socket" and separator:
        parts = urlsplit(f"unix://{rest}")
        database = parse_qs(parts.query).get("virtual_host", ["0"])[0]
        login = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
        return f"unix://{login}{parts.path}?db={database.strip('/') or '0'}"
    raise UsageError(
        f"FIXLOOP_STATE_URL begins with {scheme!r}; redis://, rediss:// and unix:// are understood"
    )


def _without_password(url: str) -> str:
    scheme, _, rest = url.partition("://")
    place = rest.partition("?")[0]
    return f"{scheme}://{place.rpartition('@')[2]}"


def _is_refused_login(error: RedisError) -> bool:
    """No or a wrong password; Redis 7 answers a stranger's script with `unauthenticated multibulk length`."""
    return isinstance(error, AuthenticationError | NoPermissionError) or "unauthenticated" in str(error)


def _is_absence(error: RedisError) -> bool:
    """Whether Redis is away, frozen or cannot serve: something that waiting may mend."""
    if isinstance(error, RedisConnectionError | RedisTimeoutError | ReadOnlyError | OutOfMemoryError):
        return True
    return _NOT_NOW.search(str(error)) is not None


def _reason(error: BaseException) -> str:
    """`connection refused` rather than redis-py's sentence around it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror.lower()
        cause = cause.__cause__ or cause.__context__
    return _one_line(error)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".")
