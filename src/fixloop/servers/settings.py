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

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from fixloop.errors import UsageError
from fixloop.files.folders import usual_cache
from fixloop.servers import redis_url
from fixloop.servers.broker_url import checked_broker_url, is_rabbitmq
from fixloop.servers.redis_place import SEAL_KEY, Place

_PREFIX: Final = "FIXLOOP_"
_DAYS_OF: Final = re.compile(r"([0-9a-f]{8})=(\d{1,6}(?:\.\d+)?)")
_OF_DEFAULTS: Final = ("HOME", "XDG_CACHE_HOME")


class Settings(BaseModel):
    """The deployment's settings; each field is the variable `FIXLOOP_{FIELD}`."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    broker_url: str | None = None
    """RabbitMQ or Redis for Celery's messages; `state_url` if not given."""
    state_url: str | None = None
    """Redis for state and locks; `broker_url` if not given. Neither: the embedded one."""
    tls_ca: Path | None = None
    """Certificates of the authorities that servers are checked against; the system's if not given."""
    tls_cert: Path | None = None
    """Our own certificate, for servers that ask for one."""
    tls_key: Path | None = None
    """Its key, where that is not in the same file."""
    sentinel_username: str | None = None
    """The login at the sentinels themselves."""
    sentinel_password: str | None = None
    """The password at the sentinels themselves."""
    replicas: int | None = Field(default=None, ge=0, le=100)
    """How many replicas confirm a commit: one with sentinels, none without, if not given."""
    replica_seconds: float = Field(default=1.0, gt=0, le=redis_url.MOST_REPLICA_SECONDS)
    """How long they may take."""
    cache_dir: Path = Field(default_factory=usual_cache)
    """Where mirrors and workspaces lie; outside any checkout."""
    allow_env: tuple[str, ...] = ()
    """Variables a shared worker may pass on to checks and fixers, separated by commas."""
    guard: Literal["auto", "namespace", "watched"] = "auto"
    """How commands are kept from leaving processes: a PID namespace where the kernel grants one, always, or never."""
    sandbox: Literal["auto", "require", "off", "landlock", "bubblewrap"] | None = None
    """What confines commands, whatever their projects say: what there is, nothing without one, none, or that one."""
    sandbox_writable: tuple[Path, ...] = ()
    """What all commands of this machine may write, too, separated as in PATH."""
    ahead: int = Field(default_factory=lambda: (os.cpu_count() or 1) - 1, ge=0)
    """How many specialists `run` may run beside another; `check` one at most."""
    embedded: Path | None = None
    """The project whose embedded Redis to join; set for the processes a command starts."""
    take_over_seconds: float = Field(default=300.0, ge=0, le=3600)
    """How old a result of `fixloop check` may be that `run` takes over for its first validation; 0: none is."""
    keep: bool = True
    """Whether the clocks of an embedded Redis run on without a worker, where somebody outside is waited for."""
    archive_dir: Path | None = None
    """Where ended workflows are moved to; None: they stay in Redis."""
    archive_after_days: float = Field(default=30.0, ge=0)
    """How long after their end workers move them there."""
    archive_after_days_of: dict[str, float] = Field(default_factory=dict)
    """The same for single projects, such as `0a1b2c3d=7,1b2c3d4e=365`."""
    seal_key_file: Path | None = None
    """A file with the key that histories are sealed with, the same on each machine; an embedded Redis has one of its
    own. None: those of a named Redis are not sealed."""
    redis_connect_seconds: float = Field(default=1.0, gt=0, le=60)
    """How long the first contact with Redis may take."""
    redis_timeout_seconds: float = Field(default=2.0, gt=0, le=60)
    """How long an answer of Redis may take."""

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

    @field_validator("sandbox_writable", mode="before")
    @classmethod
    def _split_places(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return tuple(Path(place).expanduser().absolute() for place in value.split(os.pathsep) if place)

    @field_validator("archive_after_days_of", mode="before")
    @classmethod
    def _split_days(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        found = {}
        for part in filter(None, map(str.strip, value.split(","))):
            match = _DAYS_OF.fullmatch(part)
            if match is None:
                told = f"{part!r} is not a project's eight hex digits and its days, such as 0a1b2c3d=7"
                raise ValueError(told)
            found[match[1]] = float(match[2])
        return found

    @field_validator("allow_env", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        names = tuple(name.strip() for name in value.split(",") if name.strip())
        for name in names:
            if not name.isidentifier():
                raise ValueError(f"{name!r} is not the name of a variable; separate names by commas")
        return names

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
