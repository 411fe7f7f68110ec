"""Locks in memory: the twin of RedisLocks."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from threading import RLock
from typing import NamedTuple

from fixloop.store.locks import LOCK_SECONDS, Grant, Kept
from fixloop.store.records import check_lease


class _Record(NamedTuple):
    grant: Grant
    lease: timedelta
    forgotten: datetime
    """When the key would be gone: twice the lease."""


class MemoryLocks:
    """`Locks`, as said there, by a clock that is given; `next_fence` counts for a workflow's shard."""

    def __init__(self, now: Callable[[], datetime], next_fence: Callable[[str], int], guard: RLock) -> None:
        self._now = now
        self._next_fence = next_fence
        self._guard = guard
        self._records: dict[tuple[str, str], _Record] = {}

    def acquire(
        self, workflow: str, resource: str, agent: str, *, lease_seconds: float = LOCK_SECONDS
    ) -> Grant:
        check_lease(lease_seconds)
        with self._guard:
            now = self._now()
            held = self._held(workflow, resource, now)
            if held is not None and held.expires > now:
                if held.agent == agent:
                    return replace(held, status="again", previous="")
                return replace(held, status="refused", token=0, previous="")
            token, expires = self._next_fence(workflow), now + timedelta(seconds=lease_seconds)
            grant = Grant("granted", token, agent, now, expires)
            if held is not None:
                grant = replace(grant, status="forced", previous=held.agent)
            return self._keep(workflow, resource, grant, lease_seconds)

    def extend(
        self, workflow: str, resource: str, token: int, *, lease_seconds: float = LOCK_SECONDS
    ) -> Kept:
        check_lease(lease_seconds)
        with self._guard:
            now = self._now()
            held = self._held(workflow, resource, now)
            if held is None or held.token != token or held.expires <= now:
                return "lost"
            grant = replace(held, expires=now + timedelta(seconds=lease_seconds))
            self._keep(workflow, resource, grant, lease_seconds)
            return "ok"

    def release(self, workflow: str, resource: str, token: int) -> Kept:
        with self._guard:
            held = self._held(workflow, resource, self._now())
            if held is None or held.token != token:
                return "lost"
            del self._records[workflow, resource]
            return "ok"

    def _held(self, workflow: str, resource: str, now: datetime) -> Grant | None:
        record = self._records.get((workflow, resource))
        if record is None or record.forgotten <= now:
            return None
        if record.grant.expires - now > record.lease + timedelta(seconds=1):
            # It ends later than any could: the clock was turned back since.
            record = record._replace(grant=replace(record.grant, expires=now + record.lease))
            self._records[workflow, resource] = record
        return record.grant

    def _keep(self, workflow: str, resource: str, grant: Grant, lease_seconds: float) -> Grant:
        lease = timedelta(seconds=lease_seconds)
        self._records[workflow, resource] = _Record(grant, lease, self._now() + 2 * lease)
        return grant
