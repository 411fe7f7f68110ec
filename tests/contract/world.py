"""A store with its surroundings: time that passes when a test says so, and bytes that can be tampered with."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

import redis

from fixloop.store import keys
from fixloop.store.contract import Store
from fixloop.store.redis_store import RedisStore
from fixloop.testing.memory_store import MemoryStore

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


# KEYS: the shards' hashes. `seconds` pass, less what has passed by Redis' own clock since `since`; returns that clock.
_ELAPSE: Final = """
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local seconds, since = tonumber(ARGV[1]), tonumber(ARGV[2])
if since > 0 then seconds = seconds - (now - since) end
local back = string.format('%.6f', -seconds)
for _, shard in ipairs(KEYS) do
  redis.call('HINCRBYFLOAT', shard, 'turned', back)
  for _, field in ipairs({'swept', 'until'}) do
    if redis.call('HEXISTS', shard, field) == 1 then redis.call('HINCRBYFLOAT', shard, field, back) end
  end
end
for _, lock in ipairs(redis.call('KEYS', 'fixloop:*:lock:*')) do
  redis.call('HINCRBYFLOAT', lock, 'acquired', back)
  redis.call('HINCRBYFLOAT', lock, 'expires', back)
  redis.call('PEXPIRE', lock, redis.call('PTTL', lock) - math.floor(seconds * 1000))
end
return string.format('%.6f', now)
"""


class RedisWorld:
    """The real one. Time passes by turning every stored time back."""

    def __init__(self, url: str) -> None:
        self.store = RedisStore(url)
        self.client: Any = redis.Redis.from_url(url)
        self.client.flushdb()
        self._elapse = self.client.register_script(_ELAPSE)

    def elapse(self, seconds: float) -> None:
        self.elapse_since(0.0, seconds)

    def elapse_since(self, since: float, seconds: float = 0.0) -> float:
        """So much passes as if none had since `since`, a time of Redis' clock; returns what that shows now."""
        shards = [keys.shard_keys(shard).shard for shard in range(keys.SHARDS)]
        return float(self._elapse(keys=shards, args=[seconds, since]))

    def clock(self) -> float:
        """What Redis' own clock shows."""
        seconds, microseconds = self.client.time()
        return float(seconds + microseconds / 1_000_000)

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
