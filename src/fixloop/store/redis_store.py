"""The store in Redis: one hash per workflow, one script per change, one round trip per script.

Owns what is written; knows neither the meaning of snapshots, entries and steps, nor Celery.
"""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial, wraps
from typing import Any, Final, TypeVar, cast

from fixloop.errors import Damaged
from fixloop.protocol.event import Moment
from fixloop.protocol.ticket import Ticket
from fixloop.store import keys, limits, records, replies
from fixloop.store.chain import RawHistory, named, problems
from fixloop.store.changes import changes_after
from fixloop.store.connection import Connection, Misunderstood, ScriptCall
from fixloop.store.contract import Store
from fixloop.store.damage import BROKEN, blamed, reading, set_aside
from fixloop.store.entries import Texts, Written, digest_of, excerpt, opened, written
from fixloop.store.listing import Listing, names_in
from fixloop.store.locks import RedisLocks
from fixloop.store.packing import NOTHING, context_of, inflate, leans_of, pack_alone
from fixloop.store.seal import Sealing

F = TypeVar("F", bound=Callable[..., Any])
_WAITING: Final = tuple(keys.shard_keys(shard).pending for shard in range(keys.SHARDS))


def _of_one_workflow(method: F) -> F:
    """Wrap a method that takes a workflow's or ticket's id first: a failure is reported as damage of that workflow."""

    @wraps(method)
    def call(self: "RedisStore", name: str, *more: Any, **further: Any) -> Any:
        with self._reporting_damage(name.partition(".")[0]):
            return method(self, name, *more, **further)

    return cast(F, call)


def _commit_call(commit: records.Commit, head: str, new: Written) -> ScriptCall:
    """The keys and arguments of commit.lua."""
    shard = keys.shard_of(commit.workflow)
    names = (*_with_history(commit.workflow), keys.ended_key(shard), keys.changes_key(shard))
    # On a Redis Cluster a script can only read its own shard's.
    names += _WAITING if commit.claim and not commit.past_waiting else ()
    heads = bytes.fromhex(head), bytes.fromhex(new.head)
    return names, (replies.change_text(commit), new.snapshot, new.entry, *heads)


def _retired(text: bytes | None, project: str, issue: int) -> records.Retired | None:
    with suppress(*BROKEN):
        return None if text is None else replies.retired(text, project, issue)
    return None


class RedisStore(Listing, Store):
    def __init__(self, url: str, *, patience_seconds: float = 0.0, sealing: Sealing | None = None) -> None:
        """Sends nothing yet; each call is retried for `patience_seconds` while Redis is away."""
        self.sealing = sealing
        super().__init__(Connection(url, patience_seconds=patience_seconds))
        self.locks = RedisLocks(self._connection)

    @property
    def connection(self) -> Connection:
        """For data that belongs to no workflow."""
        return self._connection

    def commit(self, commit: records.Commit) -> records.Committed:
        commit.check()
        head, context, sent = commit.head, commit.context, 0
        with self._reporting_damage(commit.workflow):
            if commit.expected_version > 0 and (not head or context is None):
                name = keys.workflow_key(commit.workflow)
                found = self._connection.call(lambda client: client.hmget(name, ["head", "snapshot"]))
                snapshot: bytes = found[1] or b""
                texts = Texts(self._entries(commit.workflow, leans_of(snapshot)))
                head, context = head or replies.head(found[0]), context_of(snapshot, texts)
            new = written(commit, head, context or NOTHING, self.put_artifact, self.sealing)
            call = _commit_call(commit, head, new)

            def send(_client: Any) -> Any:
                nonlocal sent
                sent += 1
                return self._connection.send_durably("commit", call)[0]

            answer = replies.committed(self._connection.call(send), commit, new)
        if sent > 1 and answer.status in ("dup", "conflict") and answer.head == new.head:
            # The answer to the first attempt was lost; this is what it was.
            return records.Committed("ok", answer.version, new.head, claim=answer.claim)
        return answer

    def create_all(self, commits: Sequence[records.Commit]) -> list[records.Committed]:
        if not commits:
            return []
        made = [written(commit, "", NOTHING, self.put_artifact, self.sealing) for commit in commits]
        calls = [_commit_call(commit, "", new) for commit, new in zip(commits, made, strict=True)]
        answers = self._connection.call(lambda _client: self._connection.send_durably("commit", *calls))
        return [replies.committed(*each) for each in zip(answers, commits, made, strict=True)]

    @_of_one_workflow
    def read(self, workflow: str) -> records.Snapshot | None:
        return replies.snapshot(self._connection.run("read", _with_history(workflow), ()), workflow)

    @_of_one_workflow
    def claim(
        self, ticket_id: str, owner: str, token: str, *, lease_seconds: float = limits.LEASE_SECONDS
    ) -> records.Claim:
        workflow = keys.workflow_of(ticket_id)
        records.check_claimant(owner, token, lease_seconds)
        # Durable, because the claim's fence must not be given out twice.
        told = (ticket_id, owner, token, lease_seconds, workflow)
        reply = self._connection.run_durably("claim", _with_history(workflow), told)
        try:
            return replies.claim(reply, workflow, ticket_id)
        except (Damaged, *BROKEN):
            # The next claim would fail the same way.
            with suppress(*BROKEN):
                self.release(ticket_id, owner, int(reply[4]), delay_seconds=limits.DAMAGED_AGAIN)
            raise

    @_of_one_workflow
    def renew(
        self, ticket_id: str, owner: str, fence: int, *, lease_seconds: float = limits.LEASE_SECONDS
    ) -> records.Renewal:
        workflow = keys.workflow_of(ticket_id)
        records.check_holder(ticket_id, owner, fence)
        records.check_lease(lease_seconds)
        told = (ticket_id, owner, fence, lease_seconds, workflow)
        return cast(records.Renewal, self._connection.run("renew", _keys(workflow), told).decode())

    @_of_one_workflow
    def release(
        self, ticket_id: str, owner: str, fence: int, *, poison: bool = False, delay_seconds: float = 0.0
    ) -> Ticket | None:
        workflow = keys.workflow_of(ticket_id)
        records.check_holder(ticket_id, owner, fence)
        told = (ticket_id, owner, fence, int(poison), workflow, delay_seconds)
        reply = self._connection.run("release", _keys(workflow), told)
        return replies.ticket(reply) if reply else None

    @_of_one_workflow
    def wake(self, ticket_id: str) -> Ticket | None:
        reply = self._connection.run("wake", _keys(keys.workflow_of(ticket_id)), (ticket_id,))
        return replies.ticket(reply) if reply else None

    def queues(self) -> list[records.QueueLoad]:
        return replies.queues(
            self._connection.run("queues", keys.shard_keys(shard), (keys.workflow_key_prefix(shard),))
            for shard in range(keys.SHARDS)
        )

    def owners(self) -> dict[str, tuple[str, int]]:
        found: dict[str, tuple[str, int]] = {}
        for shard in self.of_all_shards(lambda pipe, n: pipe.hgetall(keys.shard_keys(n).owners)):
            for ticket_id, value in shard.items():
                with suppress(ValueError):
                    fence, _, owner = value.decode().partition(" ")
                    found[ticket_id.decode()] = (owner, int(fence))
        return found

    def sweepers(self) -> Sequence[tuple[str, str]]:
        found = self.of_all_shards(lambda pipe, n: pipe.hmget(keys.shard_keys(n).shard, "sweeper", "swept"))
        return [
            ((who or b"").decode(errors="replace"), (when or b"").decode(errors="replace"))
            for who, when in found
        ]

    def sweep(
        self,
        shard: int,
        *,
        owner: str,
        horizon_seconds: float = limits.HORIZON_SECONDS,
        most_due: int = limits.MOST_PER_SWEEP,
        empty_lanes: Sequence[records.Lane] = (),
    ) -> records.Swept:
        bounds = (limits.SHARD_LEASE_SECONDS, horizon_seconds, limits.MOST_PER_SWEEP, most_due)
        lanes = json.dumps([str(lane) for lane in empty_lanes])
        told = (owner, *bounds, keys.workflow_key_prefix(shard), lanes)
        return replies.swept(self._connection.run("sweep", keys.shard_keys(shard), told))

    @_of_one_workflow
    def history(self, workflow: str, start: int = 0) -> list[records.Entry]:
        name = keys.history_key(workflow)
        stored: list[bytes] = self._connection.call(lambda client: client.lrange(name, start, -1))
        texts = Texts(stored)
        texts.add(self._entries(workflow, texts.wanting))
        return [opened(entry, texts, partial(self.get_artifact, workflow)) for entry in stored]

    @_of_one_workflow
    def verify(self, workflow: str) -> list[str]:
        raw = self._raw_history(workflow)
        if raw is None:
            return []
        found = problems(raw, partial(self.get_artifact, workflow), self.objection(workflow))
        listed = keys.shard_keys(keys.shard_of(workflow)).workflows
        if self._connection.call(lambda client: client.zscore(listed, workflow)) is None:
            found.append("the list of workflows does not have it")
        return found

    @_of_one_workflow
    def put_artifact(self, workflow: str, data: bytes, *, shared: bool = False) -> str:
        kept = excerpt(data)
        digest, value = digest_of(kept), pack_alone(kept)
        own, name = keys.artifacts_key(workflow), keys.artifact_key(workflow, digest)
        self._connection.call(
            lambda client: client.set(name, value) if shared else client.hset(own, digest, value)
        )
        return digest

    @_of_one_workflow
    def get_artifact(self, workflow: str, digest: str) -> bytes | None:
        own, shared = keys.artifacts_key(workflow), keys.artifact_key(workflow, digest)
        stored = self._connection.call(lambda client: client.hget(own, digest) or client.get(shared))
        return None if stored is None else inflate(stored)

    def live(self, project: str, issue: int) -> str | None:
        feature = keys.feature_of(keys.workflow_id(project, issue, 1))
        name = keys.shard_keys(keys.shard_of_feature(feature)).live
        found: bytes | None = self._connection.call(lambda client: client.hget(name, feature))
        if not found:
            return None
        named = names_in([replies.live_id(feature.encode(), found)])
        if not named or keys.feature_of(named[0]) != feature:
            latest = self.latest(project, issue) or f"{feature}-1"
            raise Damaged(latest, f"the list of live workflows has {found!r} for its issue")
        return named[0]

    def latest(self, project: str, issue: int) -> str | None:
        first = keys.workflow_id(project, issue, 1)
        name = keys.shard_keys(keys.shard_of(first)).workflows
        found = self._connection.call(lambda client: client.zrangebyscore(name, issue, issue))
        return keys.latest_of(names_in(found)).get(keys.feature_of(first))

    def search(self, issue: int) -> list[str]:
        shards = self.of_all_shards(
            lambda pipe, shard: pipe.zrangebyscore(keys.shard_keys(shard).workflows, issue, issue)
        )
        return sorted(keys.latest_of(names_in(found for shard in shards for found in shard)).values())

    @_of_one_workflow
    def stored(self, workflow: str) -> records.Stored | None:
        found, raw = self.read(workflow), self._raw_history(workflow)
        if found is None or raw is None:
            return None
        own = keys.artifacts_key(workflow)
        digests = {digest.decode() for digest in self._connection.call(lambda client: client.hkeys(own))}
        digests.update(named(raw.entries))
        kept = {digest: self.get_artifact(workflow, digest) for digest in sorted(digests)}
        artifacts = {digest: data for digest, data in kept.items() if data is not None}
        return records.Stored(workflow, *raw[:3], tuple(raw.entries), artifacts, found.fields, found.stale)

    @_of_one_workflow
    def remove(self, workflow: str, head: str, how: records.Retirement) -> records.Removal:
        shard = keys.shard_of(workflow)
        own = (keys.history_key(workflow), keys.artifacts_key(workflow))
        shared = (keys.ended_key(shard), keys.retired_key(shard), keys.changes_key(shard))
        names = (*_keys(workflow), *own, *shared)
        note = replies.retired_text(how, self.now(workflow).at)
        told = (workflow, bytes.fromhex(head), keys.feature_of(workflow), keys.number_of(workflow), note)
        return cast(records.Removal, self._connection.run("remove", names, told).decode())

    def set_aside(self, workflow: str, keep: Callable[[Mapping[str, bytes]], None]) -> None:
        set_aside(self._connection, workflow, replies.retired_text("set-aside", self.now(workflow).at), keep)

    def retired(self, project: str, issue: int) -> records.Retired | None:
        feature = keys.feature_of(keys.workflow_id(project, issue, 1))
        name = keys.retired_key(keys.shard_of_feature(feature))
        return _retired(self._connection.call(lambda client: client.hget(name, feature)), project, issue)

    def allocate_issue(self, project: str) -> int:
        return int(self._connection.run("number", keys.number_keys(project), (uuid.uuid4().hex,)))

    def next_numbers(self, project: str, issues: Sequence[int]) -> list[int]:
        ids = [keys.workflow_id(project, issue, 1) for issue in issues]

        def put(pipe: Any) -> None:
            for issue, workflow in zip(issues, ids, strict=True):
                shard, feature = keys.shard_of(workflow), keys.feature_of(workflow)
                pipe.zrangebyscore(keys.shard_keys(shard).workflows, issue, issue)
                pipe.hget(keys.retired_key(shard), feature)
            if issues:
                pipe.sadd(keys.number_keys(project)[0], *issues)

        found, numbers = self._connection.together(put), []
        for place, (issue, workflow) in enumerate(zip(issues, ids, strict=True)):
            latest = keys.latest_of(names_in(found[2 * place])).get(keys.feature_of(workflow))
            retired = _retired(found[2 * place + 1], project, issue)
            used = (latest, None if retired is None else retired.workflow)
            numbers.append(1 + max((keys.number_of(each) for each in used if each), default=0))
        return numbers

    def use_issue(self, project: str, issue: int) -> None:
        used, _ = keys.number_keys(project)
        self._connection.call(lambda client: client.sadd(used, issue))

    def reject(self, messages: Sequence[records.RejectedMessage], count: int) -> None:
        kept, total = keys.rejected_keys()

        def write(pipe: Any) -> None:
            pipe.incrby(total, count)
            pipe.lpush(kept, *map(replies.rejected_text, messages))
            pipe.ltrim(kept, 0, limits.MOST_REJECTED - 1)

        self._connection.together(write, atomic=True)

    def rejections(self) -> records.Rejections:
        kept, total = keys.rejected_keys()
        number, texts = self._connection.together(
            lambda pipe: pipe.get(total).lrange(kept, 0, -1), atomic=True
        )
        return records.Rejections(int(number or 0), replies.rejected(texts))

    def now(self, where: str | int) -> Moment:
        shard = where if isinstance(where, int) else keys.shard_of(where)
        wall, clock, _away = self._connection.run("now", keys.shard_keys(shard), ())
        return replies.moment(wall, clock)

    def changes(self, after: str, *, wait_seconds: float) -> records.Changes:
        return changes_after(self._connection, after, wait_seconds)

    def data_id(self) -> str:
        name, fresh = keys.shard_keys(0).shard, uuid.uuid4().hex
        _, found = self._connection.together(lambda pipe: pipe.hsetnx(name, "data", fresh).hget(name, "data"))
        return str(found.decode())

    def ping(self) -> None:
        self._connection.call(lambda client: client.ping())

    def close(self) -> None:
        self._connection.close()

    def _entries(self, workflow: str, numbers: Sequence[int]) -> list[bytes]:
        """The stored entries with these numbers; missing ones are left out."""
        if not numbers:
            return []
        name = keys.history_key(workflow)
        found = self._connection.together(lambda pipe: [pipe.lindex(name, number - 1) for number in numbers])
        return [stored for stored in found if stored]

    def _raw_history(self, workflow: str) -> RawHistory | None:
        name, history = keys.workflow_key(workflow), keys.history_key(workflow)
        (version, head, snapshot), entries = self._connection.together(
            lambda pipe: pipe.hmget(name, ["version", "head", "snapshot"]).lrange(history, 0, -1), atomic=True
        )
        if version is None and not entries:
            return None
        return RawHistory(int(version or 0), replies.head(head), snapshot or b"", entries)

    @contextmanager
    def _reporting_damage(self, workflow: str) -> Iterator[None]:
        """Run store calls for one workflow; Damaged if its stored data prevents them."""
        try:
            with reading(workflow):
                yield
        except Misunderstood as error:
            raise blamed(self._connection, workflow, error) from None


def _keys(workflow: str) -> tuple[str, ...]:
    return (*keys.shard_keys(keys.shard_of(workflow)), keys.workflow_key(workflow))


def _with_history(workflow: str) -> tuple[str, ...]:
    return (*_keys(workflow), keys.history_key(workflow))
