"""Reads the machine's settings from the environment: `FIXLOOP_*` variables.

Gates are not among them: the environment never decides what passes.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

from pydantic import BaseModel, Field, ValidationError, ValidationInfo, field_validator

from fixloop.errors import UsageError
from fixloop.files.folders import usual_cache
from fixloop.servers import redis_url
from fixloop.servers.broker_url import checked_broker_url, is_rabbitmq
from fixloop.servers.redis_place import SEAL_KEY, Place

_PREFIX: Final = "FIXLOOP_"
_DAYS_OF: Final = re.compile(r"([0-9a-f]{8})=(\d{1,6}(?:\.\d+)?)")
_OF_DEFAULTS: Final = ("HOME", "XDG_CACHE_HOME")


class Settings(BaseModel, frozen=True, extra="forbid", hide_input_in_errors=True):
    """The settings of a deployment; each field is the variable `FIXLOOP_{FIELD}`."""

    broker_url: str | None = None
    """RabbitMQ or Redis for Celery's messages; default: `state_url`."""
    state_url: str | None = None
    """Redis for state and locks; default: `broker_url`, else the embedded one."""
    tls_ca: Path | None = None
    """CA certificates to verify servers with; default: the system's."""
    tls_cert: Path | None = None
    """The client certificate, for servers that require one."""
    tls_key: Path | None = None
    """Its key, if not in the same file."""
    sentinel_username: str | None = None
    """The user for the sentinels themselves."""
    sentinel_password: str | None = None
    """The password for the sentinels themselves."""
    replicas: int | None = Field(default=None, ge=0, le=100)
    """How many replicas must confirm a commit; default: one with sentinels, none without."""
    replica_seconds: float = Field(default=1.0, gt=0, le=redis_url.MOST_REPLICA_SECONDS)
    """How long they may take."""
    cache_dir: Path = Field(default_factory=usual_cache)
    """The folder for mirrors and workspaces, outside any checkout."""
    allow_env: tuple[str, ...] = ()
    """Variables a shared worker may pass to checks and fixers, separated by commas."""
    guard: Literal["auto", "namespace", "watched"] = "auto"
    """How to stop commands from leaving processes behind: a PID namespace if the kernel allows it, always, or never."""
    sandbox: Literal["auto", "require", "off", "landlock", "bubblewrap"] | None = None
    """What confines commands, overriding projects: any available, one required, none, or a given one."""
    sandbox_writable: tuple[Path, ...] = ()
    """Places that all commands of this machine may also write, separated as in PATH."""
    ahead: int = Field(default_factory=lambda: (os.cpu_count() or 1) - 1, ge=0)
    """How many specialists `run` may run alongside another; `check`: at most one."""
    embedded: Path | None = None
    """The project whose embedded Redis to use; set for processes started by a command."""
    take_over_seconds: float = Field(default=300.0, ge=0, le=3600)
    """How old a `fixloop check` result may be for `run` to reuse it in its first validation; 0: never reused."""
    keep: bool = True
    """Whether clocks of an embedded Redis keep running without a worker while somebody outside is awaited."""
    archive_dir: Path | None = None
    """The archive for ended workflows; None: they stay in Redis."""
    archive_after_days: float = Field(default=30.0, ge=0)
    """How long after their end they are moved there."""
    archive_after_days_of: dict[str, float] = Field(default_factory=dict)
    """The same for single projects, such as `0a1b2c3d=7,1b2c3d4e=365`."""
    seal_key_file: Path | None = None
    """A file with the key that seals histories, the same on every machine; an embedded Redis has its own. None:
    histories in a named Redis are not sealed."""
    redis_connect_seconds: float = Field(default=1.0, gt=0, le=60)
    """Timeout for connecting to Redis."""
    redis_timeout_seconds: float = Field(default=2.0, gt=0, le=60)
    """Timeout for an answer from Redis."""

    @field_validator("broker_url", "state_url")
    @classmethod
    def _check_url(cls, value: str | None, info: ValidationInfo) -> str | None:
        check = checked_broker_url if info.field_name == "broker_url" else redis_url.checked_url
        try:
            return value and check(value.strip())
        except UsageError as error:
            raise ValueError(str(error)) from None

    @field_validator("tls_ca", "tls_cert", "tls_key", "cache_dir", "archive_dir", "embedded", "seal_key_file")
    @classmethod
    def _make_absolute(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        path = value and value.expanduser().absolute()
        if path and str(info.field_name).startswith("tls_") and not os.access(path, os.R_OK):
            raise ValueError("there is no such file, or it cannot be read")
        return path

    @field_validator("sandbox_writable", "archive_after_days_of", "allow_env", mode="before")
    @classmethod
    def _split(cls, value: object, info: ValidationInfo) -> object:
        if not isinstance(value, str):
            return value
        if info.field_name == "sandbox_writable":
            return tuple(Path(place).expanduser().absolute() for place in value.split(os.pathsep) if place)
        parts = [part.strip() for part in value.split(",") if part.strip()]
        if info.field_name == "allow_env":
            if wrong := next((name for name in parts if not name.isidentifier()), ""):
                raise ValueError(f"{wrong!r} is not the name of a variable; separate names by commas")
            return tuple(parts)
        if wrong := next((part for part in parts if not _DAYS_OF.fullmatch(part)), ""):
            told = f"{wrong!r} is not a project's eight hex digits and its days, such as 0a1b2c3d=7"
            raise ValueError(told)
        return {project: float(days) for project, _, days in (part.partition("=") for part in parts)}

    @property
    def is_embedded(self) -> bool:
        return self.broker_url is None and self.state_url is None

    @property
    def keeps_time(self) -> bool:
        """Whether commands start a timekeeper if no worker runs the clocks."""
        return self.keep and self.is_embedded

    def urls(self) -> "RedisUrls | None":
        """Broker and state as named, with all settings needed to use them; None for the embedded ones."""
        state = self.state_url or self.broker_url
        if state is None:
            return None
        if is_rabbitmq(state):
            told = "FIXLOOP_BROKER_URL is a RabbitMQ; set FIXLOOP_STATE_URL to a Redis for the state"
            raise UsageError(told)
        return RedisUrls(self._complete(self.broker_url or state), self._complete(state), self.seal_key_file)

    def _complete(self, url: str) -> str:
        scheme = url.partition("://")[0]
        told: dict[str, object] = {}
        if scheme in ("rediss", "amqps", "sentinels"):
            told = {"ssl_ca_certs": self.tls_ca, "ssl_certfile": self.tls_cert, "ssl_keyfile": self.tls_key}
        if scheme in redis_url.SENTINEL_SCHEMES:
            told |= {name: getattr(self, name) for name in ("sentinel_username", "sentinel_password")}
        replicas = self.replicas if self.replicas is not None else int(scheme in redis_url.SENTINEL_SCHEMES)
        if replicas and not is_rabbitmq(url):
            told |= {"replicas": replicas, "replica_seconds": self.replica_seconds}
        return redis_url.completed(url, told) if told else url


class RedisUrls(NamedTuple):
    """The URLs of broker and state; `fixloop.servers.broker_url` converts the first for Celery."""

    broker: str
    state: str
    seal_key_file: Path | None = None


def load_settings() -> Settings:
    """The settings of this process's environment; refuses an invalid value, naming variable and value."""
    # A step asks for them dozens of times, and reading them takes as long as starting git.
    names = (name for name in os.environ if name.upper().startswith((_PREFIX.upper(), *_OF_DEFAULTS)))
    return _settings(tuple((name, os.environ[name]) for name in sorted(names)))


@lru_cache(maxsize=4)
def _settings(variables: tuple[tuple[str, str], ...]) -> Settings:
    """`variables`: the source of the settings, as the cache's key."""
    named = {name.upper(): value for name, value in variables if value}
    given = {field: named.get(f"{_PREFIX}{field.upper()}") for field in Settings.model_fields}
    try:
        return Settings.model_validate({field: value for field, value in given.items() if value})
    except ValidationError as error:
        first = error.errors()[0]
        name = f"{_PREFIX}{first['loc'][0]}".upper()
        value = redis_url.shown_url(os.environ.get(name, ""))
        reason = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"{name} is {value!r}: {reason[:1].lower()}{reason[1:]}") from None


def seal_key_of(settings: Settings, project_directory: Path) -> Path | None:
    """The file with the key that seals a project's histories, which may not exist yet; None: they are not sealed."""
    if not settings.is_embedded:
        return settings.seal_key_file
    return Place(settings.embedded or project_directory).data / SEAL_KEY


def named_urls() -> RedisUrls:
    urls = load_settings().urls()
    if urls is None:
        raise UsageError("no Redis is named; set FIXLOOP_STATE_URL")
    return urls


@contextmanager
def redis_urls(settings: Settings, project_directory: Path) -> Iterator[RedisUrls]:
    """Broker and state of this process; holds the project's embedded Redis while entered, if no URL is given."""
    if named := settings.urls():
        yield named
        return
    # Imported late: it starts processes, which most users of settings do not.
    from fixloop.servers.embedded import embedded_redis

    with embedded_redis(settings.embedded or project_directory) as embedded:
        yield RedisUrls(embedded, embedded, seal_key_of(settings, project_directory))
