"""A store with its surroundings: time that passes when a test says so, and bytes that can be tampered with."""

from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import redis

from fixloop.store import keys
from fixloop.store.contract import Store
from fixloop.store.memory_store import MemoryStore
from fixloop.store.redis_store import RedisStore

__all__ = ["MemoryWorld", "RedisWorld", "World"]

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


class World(Protocol):
    """What a contract test may do besides calling the store."""

    @property
    def store(self) -> Store: ...
    def elapse(self, seconds: float) -> None:
        """Wall time passes, and nobody sweeps meanwhile."""

    def entries(self, workflow: str) -> list[bytes]: ...
    def put_entries(self, workflow: str, entries: list[bytes]) -> None: ...
    def put_snapshot(self, workflow: str, stored: bytes) -> None: ...
    def put_head(self, workflow: str, digest: str) -> None:
        """As an older version wrote it."""

    def put_artifact(self, workflow: str, digest: str, stored: bytes | None) -> None: ...


class MemoryWorld:
    """The twin, by a clock of its own."""

    def __init__(self) -> None:
        self._now = START
        self.store = MemoryStore(lambda: self._now)

    def elapse(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)

    def entries(self, workflow: str) -> list[bytes]:
        return list(self.store._workflows[workflow].entries)

    def put_entries(self, workflow: str, entries: list[bytes]) -> None:
        self.store._workflows[workflow].entries = entries

    def put_snapshot(self, workflow: str, stored: bytes) -> None:
        self.store._workflows[workflow].snapshot = stored

    def put_head(self, workflow: str, digest: str) -> None:
        self.store._workflows[workflow].head = digest

    def put_artifact(self, workflow: str, digest: str, stored: bytes | None) -> None:
        kept = self.store._own_artifacts[workflow]
        kept.pop(digest)
        if stored is not None:
            kept[digest] = stored


class RedisWorld:
    """The real one. Time passes by turning every stored time back."""

    def __init__(self, url: str) -> None:
        self.store = RedisStore(url)
        self.client: Any = redis.Redis.from_url(url)
        self.client.flushdb()

    def elapse(self, seconds: float) -> None:
        with self.client.pipeline() as pipe:
            for shard in range(keys.SHARDS):
                name = keys.shard_keys(shard).shard
                pipe.hincrbyfloat(name, "turned", -seconds)
                for field in ("swept", "until"):
                    if self.client.hexists(name, field):
                        pipe.hincrbyfloat(name, field, -seconds)
            for name in self.client.scan_iter("fixloop:*:lock:*"):
                pipe.hincrbyfloat(name, "acquired", -seconds)
                pipe.hincrbyfloat(name, "expires", -seconds)
                pipe.pexpire(name, self.client.pttl(name) - int(seconds * 1000))
            pipe.execute()

    def entries(self, workflow: str) -> list[bytes]:
        found: list[bytes] = self.client.lrange(keys.history_key(workflow), 0, -1)
        return found

    def put_entries(self, workflow: str, entries: list[bytes]) -> None:
        self.client.delete(keys.history_key(workflow))
        self.client.rpush(keys.history_key(workflow), *entries)

    def put_snapshot(self, workflow: str, stored: bytes) -> None:
        self.client.hset(keys.workflow_key(workflow), "snapshot", stored)

    def put_head(self, workflow: str, digest: str) -> None:
        self.client.hset(keys.workflow_key(workflow), "head", digest)

    def put_artifact(self, workflow: str, digest: str, stored: bytes | None) -> None:
        name = keys.artifacts_key(workflow)
        if stored is None:
            self.client.hdel(name, digest)
        else:
            self.client.hset(name, digest, stored)

    def close(self) -> None:
        self.store.close()
        self.client.close()
