"""The store in memory: the same answers as RedisStore, by a clock that is given. For tests and scenarios.

Entries, snapshots and artifacts are kept in their stored form, so that `verify` has the same bytes to judge.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from threading import RLock

from fixloop.protocol.moment import Moment
from fixloop.protocol.ticket import Ticket
from fixloop.store import keys, limits
from fixloop.store import records as rec
from fixloop.store.chain import RawHistory, named, problems
from fixloop.store.contract import Store
from fixloop.store.damage import reading
from fixloop.store.entries import Texts, digest_of, excerpt, opened, written
from fixloop.store.packing import inflate, pack_alone
from fixloop.store.seal import Sealing
from fixloop.testing import memory_records as memory
from fixloop.testing.memory_locks import MemoryLocks


class MemoryStore(Store):
    """`Store` without Redis; see there for its methods. `now` is the wall clock; tests set it forward."""

    def __init__(self, now: Callable[[], datetime], *, sealing: Sealing | None = None) -> None:
        self.sealing = sealing
        self._now = now
        self._guard = RLock()
        self._shards = [memory.KeptShard() for _ in range(keys.SHARDS)]
        self._workflows: dict[str, memory.KeptWorkflow] = {}
        self._artifacts: dict[str, bytes] = {}
        self._own_artifacts: dict[str, dict[str, bytes]] = {}
        self._ended: dict[str, datetime] = {}
        self._retired: dict[str, rec.Retired] = {}
        self._live: dict[str, str] = {}
        self._used: dict[str, set[int]] = {}
        self._rejections = rec.Rejections(0, ())
        self.locks = MemoryLocks(now, lambda workflow: self._shard(workflow).next_fence(), self._guard)

    def stay_awake(self) -> None:
        """As if a sweeper had run until now: the time since the last sweep counts on every clock (K34)."""
        for shard in self._shards:
            shard.swept = self._now().timestamp()

    def commit(self, commit: rec.Commit) -> rec.Committed:
        commit.check()
        with self._guard:
            feature = keys.feature_of(commit.workflow)
            living = self._live.get(feature)
            kept = self._workflows.get(commit.workflow, memory.KeptWorkflow())
            refused = memory.refusal(commit, kept, living)
            if refused is not None:
                return refused
            new = written(commit, kept.head, kept.state(commit.workflow)[1], self.put_artifact, self.sealing)
            self._workflows[commit.workflow] = kept
            shard = self._shard(commit.workflow)
            kept.write(commit, new, shard, shard.moment(self._now()).clock)
            if commit.live:
                self._live[feature] = commit.workflow
            elif commit.live is False:
                if living == commit.workflow:
                    del self._live[feature]
                self._ended.setdefault(commit.workflow, self._now())
            return rec.Committed("ok", kept.version, kept.head)

    def read(self, workflow: str) -> rec.Snapshot | None:
        with self._guard:
            shard, kept = self._shard(workflow), self._workflows.get(workflow)
            if kept is None:
                return None
            return kept.as_snapshot(workflow, shard.moment(self._now()), shard.away)

    def claim(
        self, ticket_id: str, owner: str, token: str, *, lease_seconds: float = limits.LEASE_SECONDS
    ) -> rec.Claim:
        workflow = keys.workflow_of(ticket_id)
        rec.check_claimant(owner, token, lease_seconds)
        with self._guard:
            shard, kept = self._shard(workflow), self._workflows.get(workflow, memory.KeptWorkflow())
            now = shard.moment(self._now())
            held = kept.tickets.get(ticket_id)
            if held is None:
                return rec.Claim("gone", now, shard.away)
            repeated = held.kind == "claimed" and (held.token, held.owner) == (token, owner)
            if held.kind == "claimed" and not repeated and held.lease_until > now.clock:
                return rec.Claim("busy", now, shard.away)
            if held.kind == "delayed" and held.ready > now.clock:
                return rec.Claim("early", now, shard.away)
            if not repeated:
                held.fence, held.owner, held.token = shard.next_fence(), owner, token
                held.kind = "claimed"
                # Its limit runs from now.
                if held.ticket.limit_name and held.ticket.limit_seconds is not None:
                    held.limit = held.ticket.limit_name
                    kept.set_deadline(held.limit, now.clock + held.ticket.limit_seconds)
            held.lease_until = now.clock + lease_seconds
            data, context = kept.state(workflow)
            held_now = (held.fence, kept.version, data, kept.head, held.ticket, held.deaths)
            return rec.Claim("ok", now, shard.away, *held_now, context=context)

    def renew(
        self, ticket_id: str, owner: str, fence: int, *, lease_seconds: float = limits.LEASE_SECONDS
    ) -> rec.Renewal:
        workflow = keys.workflow_of(ticket_id)
        rec.check_holder(ticket_id, owner, fence)
        rec.check_lease(lease_seconds)
        with self._guard:
            kept = self._workflows.get(workflow, memory.KeptWorkflow())
            held, finished = kept.tickets.get(ticket_id), kept.done.get(ticket_id)
            if held is None:
                return "cancelled" if finished is not None and finished.fence is None else "lost"
            if (held.fence, held.owner) != (fence, owner):
                return "lost"
            if held.kind != "claimed" and held.limit in kept.deadlines and not kept.parked:
                kept.looked_at[held.limit] = kept.deadlines[held.limit]
            held.kind = "claimed"
            held.lease_until = self._shard(workflow).moment(self._now()).clock + lease_seconds
            return "ok"

    def release(
        self, ticket_id: str, owner: str, fence: int, *, poison: bool = False, delay_seconds: float = 0.0
    ) -> Ticket | None:
        workflow = keys.workflow_of(ticket_id)
        rec.check_holder(ticket_id, owner, fence)
        with self._guard:
            held = self._ticket(ticket_id)
            if held is None or (held.fence, held.owner) != (fence, owner):
                return None
            if held.limit:
                self._workflows[workflow].clear_deadline(held.limit)
            shard = self._shard(workflow)
            clock = shard.moment(self._now()).clock
            if self._workflows[workflow].parked:
                held.hold_back()
            elif delay_seconds > 0:
                held.kind, held.ready, held.token = "delayed", clock + delay_seconds, ""
            else:
                shard.offer(held, clock, again=True)
            held.fence, held.owner, held.limit = 0, "", ""
            held.deaths += poison
            return held.ticket

    def wake(self, ticket_id: str) -> Ticket | None:
        shard = self._shard(keys.workflow_of(ticket_id))
        with self._guard:
            held = self._ticket(ticket_id)
            if held is None or held.kind != "delayed" or held.is_held_back:
                return None
            shard.offer(held, shard.moment(self._now()).clock, again=True)
            return held.ticket

    def owners(self) -> dict[str, tuple[str, int]]:
        with self._guard:
            return {
                ticket_id: (held.owner, held.fence)
                for kept in self._workflows.values()
                for ticket_id, held in kept.tickets.items()
                if held.kind == "claimed"
            }

    def sweep(
        self,
        shard: int,
        *,
        owner: str,
        horizon_seconds: float = limits.HORIZON_SECONDS,
        most_deadlines: int = limits.MOST_PER_SWEEP,
        empty_lanes: Sequence[rec.Lane] = (),
    ) -> rec.Swept:
        keys.shard_keys(shard)
        with self._guard:
            kept, wall = self._shards[shard], self._now()
            gap = kept.sweep_by(owner, wall.timestamp(), limits.SHARD_LEASE_SECONDS)
            now = kept.moment(wall)
            if gap is None:
                return rec.Swept(False, now, kept.away)
            there = {name: flow for name, flow in self._workflows.items() if keys.shard_of(name) == shard}
            lost = tuple(memory.unheard(kept, there, now.clock, empty_lanes))
            lanes = tuple(sorted(kept.made))
            lapsed = tuple(memory.lapsed_leases(kept, there, now.clock))
            ready = tuple(memory.ended_delays(kept, there, now.clock))
            due = tuple(memory.due_deadlines(there, now.clock, horizon_seconds, most_deadlines))
            return rec.Swept(True, now, kept.away, gap, due, lapsed, ready, lost, lanes)

    def history(self, workflow: str, start: int = 0) -> list[rec.Entry]:
        keys.shard_of(workflow)
        kept = self._workflows.get(workflow, memory.KeptWorkflow())
        texts = Texts(kept.entries)
        with reading(workflow):
            return [opened(entry, texts, self._fetch(workflow)) for entry in kept.entries[start:]]

    def verify(self, workflow: str) -> list[str]:
        keys.shard_of(workflow)
        kept = self._workflows.get(workflow)
        if kept is None:
            return []
        raw = RawHistory(kept.version, kept.head, kept.snapshot, list(kept.entries))
        return problems(raw, self._fetch(workflow), self.objection(workflow))

    def put_artifact(self, workflow: str, data: bytes, *, shared: bool = False) -> str:
        whole = excerpt(data)
        digest = digest_of(whole)
        kept = self._artifacts if shared else self._own_artifacts.setdefault(workflow, {})
        kept[keys.artifact_key(workflow, digest) if shared else digest] = pack_alone(whole)
        return digest

    def get_artifact(self, workflow: str, digest: str) -> bytes | None:
        shared = self._artifacts.get(keys.artifact_key(workflow, digest))
        stored = self._own_artifacts.get(workflow, {}).get(digest, shared)
        return None if stored is None else inflate(stored)

    def live(self, project: str, issue: int) -> str | None:
        return self._live.get(keys.feature_of(keys.workflow_id(project, issue, 1)))

    def latest(self, project: str, issue: int) -> str | None:
        feature = keys.feature_of(keys.workflow_id(project, issue, 1))
        return keys.latest_of(self._workflows).get(feature)

    def search(self, issue: int) -> list[str]:
        found = (workflow for workflow in self._workflows if keys.issue_of(workflow) == issue)
        return sorted(keys.latest_of(found).values())

    def workflows(self, *, live_only: bool = False) -> Iterator[tuple[str, Mapping[str, str]]]:
        live = set(self._live.values())
        for workflow, kept in list(self._workflows.items()):
            if not live_only or workflow in live:
                yield workflow, dict(kept.fields)

    def unlisted(self) -> list[str]:
        return []

    def ended(self, before: datetime, *, most: int = limits.MOST_PER_SWEEP) -> list[tuple[str, datetime]]:
        found = sorted((at, workflow) for workflow, at in self._ended.items() if at < before)
        shards = {
            shard: [each for each in found if keys.shard_of(each[1]) == shard] for shard in range(keys.SHARDS)
        }
        return [(workflow, at) for some in shards.values() for at, workflow in some[:most]]

    def stored(self, workflow: str) -> rec.Stored | None:
        keys.shard_of(workflow)
        with self._guard:
            kept = self._workflows.get(workflow)
            if kept is None:
                return None
            digests = {*self._own_artifacts.get(workflow, {}), *named(kept.entries)}
            found = {digest: self.get_artifact(workflow, digest) for digest in sorted(digests)}
            return rec.Stored(
                workflow,
                kept.version,
                kept.head,
                kept.snapshot,
                tuple(kept.entries),
                {digest: data for digest, data in found.items() if data is not None},
                dict(kept.fields),
                kept.stale,
            )

    def remove(self, workflow: str, head: str, how: rec.Retirement) -> rec.Removal:
        feature, number = keys.feature_of(workflow), keys.number_of(workflow)
        with self._guard:
            kept = self._workflows.get(workflow)
            if kept is not None and workflow not in self._ended:
                return "live"
            if kept is not None and kept.head != head:
                return "changed"
            for each in (self._workflows, self._own_artifacts, self._ended):
                each.pop(workflow, None)
            newest = self._retired.get(feature)
            if newest is None or keys.number_of(newest.workflow) <= number:
                self._retired[feature] = rec.Retired(workflow, how, self._now())
            return "gone" if kept is None else "ok"

    def set_aside(self, workflow: str, keep: Callable[[Mapping[str, bytes]], None]) -> None:
        with self._guard:
            kept = self._workflows[workflow]
            entries = b"".join(kept.entries)
            keep({keys.history_key(workflow): entries, keys.workflow_key(workflow): kept.snapshot})
            self._ended.setdefault(workflow, self._now())
            self._live.pop(keys.feature_of(workflow), None)
            self.remove(workflow, kept.head, "set-aside")

    def retired(self, project: str, issue: int) -> rec.Retired | None:
        return self._retired.get(keys.feature_of(keys.workflow_id(project, issue, 1)))

    def allocate_issue(self, project: str) -> int:
        with self._guard:
            used = self._used.setdefault(project, set())
            number = next(number for number in range(1, len(used) + 2) if number not in used)
            used.add(number)
            return number

    def use_issue(self, project: str, issue: int) -> None:
        with self._guard:
            self._used.setdefault(project, set()).add(issue)

    def reject(self, messages: Sequence[rec.RejectedMessage], count: int) -> None:
        with self._guard:
            total, kept = self._rejections
            self._rejections = rec.Rejections(
                total + count, (*reversed(messages), *kept)[: limits.MOST_REJECTED]
            )

    def rejections(self) -> rec.Rejections:
        return self._rejections

    def now(self, where: str | int) -> Moment:
        keys.shard_keys(where if isinstance(where, int) else keys.shard_of(where))
        shard = self._shards[where] if isinstance(where, int) else self._shard(where)
        return shard.moment(self._now())

    def data_id(self) -> str:
        return str(id(self))

    def ping(self) -> None:
        pass

    def close(self) -> None:
        pass

    def _shard(self, workflow: str) -> memory.KeptShard:
        return self._shards[keys.shard_of(workflow)]

    def _ticket(self, ticket_id: str) -> memory.KeptTicket | None:
        kept = self._workflows.get(keys.workflow_of(ticket_id))
        return None if kept is None else kept.tickets.get(ticket_id)

    def _fetch(self, workflow: str) -> Callable[[str], bytes | None]:
        return lambda digest: self.get_artifact(workflow, digest)
