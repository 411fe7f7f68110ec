"""The only access to Redis: sends commands and returns replies, or raises one sentence that says what failed.

Owns timeouts, retries, confirmation by replicas and error messages. It never hangs: a Redis that is away is reported
within 2 s, a frozen one within 3 s. Everything sent through here can be sent twice.
"""

import logging
import random
import re
import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Final, TypeVar, cast

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ConnectionError as RedisConnectionError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TimeoutError as RedisTimeoutError,
)
from redis.retry import Retry
from redis.sentinel import MasterNotFoundError, Sentinel

from fixloop.errors import InfrastructureError, ProtocolError, UsageError
from fixloop.servers.connection_errors import Reason, one_line, reason_of
from fixloop.servers.redis_url import RedisPlace, place_of, shown_place
from fixloop.store.scripts import digest, source

log = logging.getLogger("fixloop.store")

T = TypeVar("T")
ScriptCall = tuple[Sequence[str], Sequence[Any]]
"""The keys and the arguments of a script."""

# Slightly under the promised 2 s and 3 s, to leave time for the rest of the call.
_CONNECT_SECONDS: Final = 1.8
_ANSWER_SECONDS: Final = 2.8
_SENTINEL_SECONDS: Final = 0.5
"""Per sentinel; the next one has the same information."""
_LONGEST_PAUSE_SECONDS: Final = 1.0
_SKIP_WAIT_SECONDS: Final = 5.0
"""After a replica timeout, skip WAIT for this long."""
# Replies of a Redis that is up but cannot serve: full, replica, disk error. Waiting may help.
# Redis 6 puts the word into the middle of a sentence about the script.
_UNAVAILABLE: Final = re.compile(r"(^|-)(OOM|MISCONF|READONLY|MASTERDOWN|NOREPLICAS|LOADING|BUSY)\b")


class Misunderstood(ProtocolError):
    """Redis answered, but did not execute what it was sent."""

    def __init__(self, where: str, reply: str) -> None:
        super().__init__(where, reply)
        self.where = where
        self.reply = reply

    def __str__(self) -> str:
        return f"Redis at {self.where} did not understand fixloop: {self.reply}"


class Connection:
    """A pool of connections to one Redis, safe to share between threads and across a fork."""

    def __init__(self, url: str, *, patience_seconds: float = 0.0) -> None:
        """Sends nothing yet. The URL's `replicas` and `replica_seconds` say how many replicas confirm a commit and how
        long that may take. A call is retried for `patience_seconds` while Redis is away."""
        self.where = shown_place(url)
        self._patience_seconds = patience_seconds
        self._url = url
        try:
            self._place = place_of(url)
        except UsageError as error:
            raise UsageError(f"FIXLOOP_STATE_URL: {error}") from None
        self._client = client_for(self._place)
        self._skip_wait_until = 0.0

    def call(self, action: Callable[[Any], T]) -> T:
        """The result of `action`, retried for `patience_seconds`; InfrastructureError if Redis cannot serve."""
        give_up = time.monotonic() + self._patience_seconds
        for turn in count():
            try:
                return action(self._client)
            except RedisError as error:
                is_patient = time.monotonic() < give_up
                # Redis may have closed a pooled connection when it restarted. One more try costs nothing, because a
                # refusal comes at once; a timeout has already taken its time.
                is_stale_connection = turn == 0 and not isinstance(
                    error, RedisTimeoutError | ResponseError | BusyLoadingError
                )
                may_help = _is_unavailable(error) and not _is_refused_login(error)
                if not may_help or not (is_patient or is_stale_connection):
                    raise self._explained(error) from None
                if is_patient:
                    time.sleep(
                        min(_LONGEST_PAUSE_SECONDS, 0.02 * 2 ** min(turn, 6)) * random.uniform(0.5, 1.0)
                    )
        raise AssertionError("count() ended")

    def together(self, put: Callable[[Any], object], *, atomic: bool = False) -> list[Any]:
        """The replies to all commands that `put` puts into one pipeline; see `call`."""

        def send(client: "redis.Redis") -> list[Any]:
            with client.pipeline(transaction=atomic) as pipe:
                put(pipe)
                return pipe.execute()

        return self.call(send)

    def run(self, script: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """Run one script in one round trip; see `call`."""
        return self.call(lambda _client: self._sent(script, [(keys, args)])[0])

    def send_durably(self, script: str, *calls: ScriptCall) -> list[Any]:
        """Run one script once per call, and wait for as many replicas as the URL asks for, in one round trip; use it
        inside an action of `call`. A missing confirmation is logged and does not stop the work. To stop it, configure
        Redis to refuse writes (`min-replicas-to-write`)."""
        if not self._place.replicas or time.monotonic() < self._skip_wait_until:
            return self._sent(script, calls)
        wait = ("WAIT", self._place.replicas, round(self._place.replica_seconds * 1000))
        *replies, confirmed = self._sent(script, calls, wait)
        if not isinstance(confirmed, int) or confirmed < self._place.replicas:
            self._skip_wait_until = time.monotonic() + _SKIP_WAIT_SECONDS
            log.warning(
                "%s of %d replicas of Redis at %s confirmed a commit within %g s; it would be lost with this Redis, "
                "and so would what is committed in the next %g s",
                confirmed if isinstance(confirmed, int) else "none",
                self._place.replicas,
                self.where,
                self._place.replica_seconds,
                _SKIP_WAIT_SECONDS,
            )
        return replies

    def run_durably(self, script: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """Like `run`, with the confirmation of `send_durably`."""
        return self.call(lambda _client: self.send_durably(script, (keys, args))[0])

    def _sent(self, script: str, calls: Sequence[ScriptCall], *more: tuple[Any, ...]) -> list[Any]:
        """The replies to a script and to the commands after it; loads the script if Redis does not know it."""
        commands = [("EVALSHA", digest(script), len(keys), *keys, *args) for keys, args in calls]
        replies = self._execute(*commands, *more)
        if isinstance(replies[0], NoScriptError):
            self._execute(("SCRIPT", "LOAD", source(script)))
            replies = self._execute(*commands, *more)
        for reply in replies[: len(calls)]:
            if isinstance(reply, Exception):
                raise reply
        return replies

    def _execute(self, *commands: tuple[Any, ...]) -> list[Any]:
        """The replies to commands sent in one pipeline; a refused command has its exception in place of a reply."""
        # On a connection of the client's pool: a pipeline takes half as much processor time again.
        pool: Any = self._client.connection_pool
        connection = pool.get_connection()
        try:
            connection.send_packed_command(connection.pack_commands(commands))
            return [_reply(connection) for _ in commands]
        except BaseException:
            # A reply that is still to come would be taken for that of the next command.
            connection.disconnect()
            raise
        finally:
            pool.release(connection)

    def close(self) -> None:
        self._client.close()

    def _explained(self, error: RedisError) -> InfrastructureError | ProtocolError:
        if isinstance(error, MasterNotFoundError):
            return self._away(
                Reason("no sentinel names a master that answers", "see them and FIXLOOP_STATE_URL")
            )
        if isinstance(error, RedisTimeoutError):
            connecting = "connecting" in str(error)
            return self._away(Reason(f"no answer within {2 if connecting else 3} s"))
        if _is_refused_login(error):
            return InfrastructureError(
                f"Redis at {self.where} refuses the login ({one_line(error)}); "
                "put the right user and password into FIXLOOP_STATE_URL"
            )
        if isinstance(error, ResponseError | BusyLoadingError):
            if _is_unavailable(error):
                told = f"Redis at {self.where} cannot serve now: {one_line(error)}; see its log"
                return InfrastructureError(told)
            return Misunderstood(self.where, one_line(error))
        return self._away(reason_of(error, self._url))

    def _away(self, reason: Reason) -> InfrastructureError:
        remedy = reason.remedy or "start it or set FIXLOOP_STATE_URL"
        return InfrastructureError(f"cannot reach Redis at {self.where}: {reason.text}; {remedy}")


def client_for(
    place: RedisPlace, *, connect_seconds: float = _CONNECT_SECONDS, answer_seconds: float = _ANSWER_SECONDS
) -> "redis.Redis":
    """A client that keeps the timeouts and never retries by itself; ValueError if redis-py refuses the URL."""
    options: dict[str, Any] = {
        "socket_connect_timeout": connect_seconds,
        "socket_timeout": answer_seconds,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        "driver_info": None,
    }
    if not place.sentinels:
        return redis.Redis.from_url(place.url, **options)
    shortly = {"socket_connect_timeout": _SENTINEL_SECONDS, "socket_timeout": _SENTINEL_SECONDS}
    tls = {key: value for key, value in place.options.items() if key.startswith("ssl")}
    sentinels = cast(Any, Sentinel)(
        list(place.sentinels), sentinel_kwargs={**options, **shortly, **tls, **place.sentinel_login}
    )
    found: redis.Redis = sentinels.master_for(place.service, redis.Redis, **options, **place.options)
    return found


def _reply(connection: Any) -> Any:
    try:
        return connection.read_response()
    except ResponseError as refused:
        return refused


def _is_refused_login(error: RedisError) -> bool:
    """No or a wrong password; without a login, Redis 7 answers a script with `unauthenticated multibulk length`."""
    return isinstance(error, AuthenticationError | NoPermissionError) or "unauthenticated" in str(error)


def _is_unavailable(error: RedisError) -> bool:
    """Whether Redis is away, frozen or cannot serve, so that waiting may help."""
    if isinstance(error, RedisConnectionError | RedisTimeoutError | ReadOnlyError | OutOfMemoryError):
        return True
    return _UNAVAILABLE.search(str(error)) is not None
