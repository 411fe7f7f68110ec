"""A Redis that is away, frozen, full or locked is one sentence in time; one that returns is used again."""

import re
import signal
import time
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest
import redis

from fixloop.errors import InfrastructureError, UsageError
from fixloop.store.keys import SHARDS, lock_key, shard_keys, shard_of
from fixloop.store.redis_store import RedisStore
from tests.fixtures.redis_server import RedisServer
from tests.fixtures.store_samples import FLOW, ME, change, claimed, created, sweep, ticket

pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """A Redis that a test may kill or freeze."""
    own = RedisServer()
    try:
        yield own.start()
    finally:
        own.end()


@pytest.fixture
def store(server: RedisServer) -> Iterator[RedisStore]:
    """A store without patience."""
    own = RedisStore(server.url)
    yield own
    own.close()


FROZEN_SECONDS = 3.0
"""The longest wait for a Redis that does not answer; what is known sooner is reported sooner."""


def seconds_to_fail(store: RedisStore, message: str) -> float:
    began = time.monotonic()
    with pytest.raises(InfrastructureError, match=message) as caught:
        store.read(FLOW)
    assert "\n" not in str(caught.value)
    return time.monotonic() - began


def test_an_unreachable_redis_is_reported_at_once() -> None:
    absent = RedisStore("unix:///nowhere/redis.sock")
    refusing = RedisStore("redis://someone:secret@127.0.0.1:1/0")

    assert (
        seconds_to_fail(absent, "cannot reach Redis at unix:///nowhere/redis.sock: no such file")
        < FROZEN_SECONDS
    )
    reason = re.escape("cannot reach Redis at redis://127.0.0.1:1/0: connection refused; start it or set")
    assert seconds_to_fail(refusing, reason) < FROZEN_SECONDS


def test_a_frozen_redis_is_reported_within_three_seconds(server: RedisServer, store: RedisStore) -> None:
    store.ping()
    fresh = RedisStore(server.url)

    server.signal(signal.SIGSTOP)

    # Once, not for each of several attempts.
    assert seconds_to_fail(store, "no answer within 3 s") < 2 * FROZEN_SECONDS
    assert seconds_to_fail(fresh, "no answer within 3 s") < 2 * FROZEN_SECONDS
    server.signal(signal.SIGCONT)
    store.ping()


def test_a_restarted_redis_is_used_again_without_waiting(server: RedisServer, store: RedisStore) -> None:
    created(store, ticket("a"))
    claim = claimed(store, "a")

    server.signal(signal.SIGKILL)
    server.start()

    assert store.commit(change(1, ticket=ticket("a").id, owner=ME, fence=claim.fence)).status == "ok"
    assert store.verify(FLOW) == []


def test_patience_outlasts_an_absence(server: RedisServer) -> None:
    patient = RedisStore(server.url, patience_seconds=20)
    head = created(patient).head
    server.signal(signal.SIGKILL)

    answers: list[Any] = []
    waiting = Thread(target=lambda: answers.append(patient.commit(change(1, head=head))))
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive()
    server.start()
    waiting.join(60)

    assert [answer.status for answer in answers] == ["ok"]
    assert [entry.seq for entry in patient.history(FLOW)] == [1, 2]


def test_patience_ends(server: RedisServer) -> None:
    patient = RedisStore(server.url, patience_seconds=0.5)
    server.signal(signal.SIGKILL)

    assert 0.5 <= seconds_to_fail(patient, "cannot reach Redis") < FROZEN_SECONDS


@pytest.mark.proves("R8")
@pytest.mark.parametrize("with_ticket", [True, False])
def test_a_commit_whose_answer_was_lost_is_ok_when_it_is_sent_again(
    server: RedisServer, with_ticket: bool
) -> None:
    store = RedisStore(server.url)
    created(store, ticket("a"))
    claim = claimed(store, "a")
    holder: dict[str, Any] = (
        {"ticket": ticket("a").id, "owner": ME, "fence": claim.fence} if with_ticket else {}
    )
    lost = lose_first_answer(store)

    answer = store.commit(change(1, head=claim.head, **holder))

    assert lost == ["commit"]
    assert (answer.status, answer.version, answer.head) == ("ok", 2, store.history(FLOW)[-1].digest)
    assert len(store.history(FLOW)) == 2


@pytest.mark.proves("R8")
def test_a_claim_whose_answer_was_lost_is_the_same_claim_when_it_is_sent_again(store: RedisStore) -> None:
    created(store, ticket("a"))
    lost = lose_first_answer(store)

    claim = claimed(store, "a")

    assert (lost, claim.fence) == (["claim"], 1)


@pytest.mark.proves("K10")
def test_a_restarted_redis_reuses_no_fence_that_it_may_have_forgotten(
    server: RedisServer, store: RedisStore
) -> None:
    created(store, ticket("a"), ticket("b"))
    before = claimed(store, "a").fence
    lock = store.locks.acquire(FLOW, "file", "builder").token

    server.signal(signal.SIGKILL)
    server.start()

    assert (before, lock) == (1, 2)
    assert store.locks.acquire(FLOW, "other", "builder").token > 1_000_000
    assert claimed(store, "b").fence < 1_000_010


def lose_first_answer(store: RedisStore) -> list[str]:
    """The next script runs, and its connection breaks before the answer is read; the names of those lost."""
    lost: list[str] = []
    connection = store._connection
    sent = connection._sent

    def once(script: str, *told: Any) -> list[Any]:
        replies = sent(script, *told)
        if not lost:
            lost.append(script)
            raise redis.ConnectionError("connection reset by peer")
        return replies

    connection._sent = once  # type: ignore[method-assign, assignment]
    return lost


def test_every_script_takes_one_round_trip(server: RedisServer, store: RedisStore) -> None:
    def everything(flow: str) -> None:
        own = ticket("a", workflow=flow)
        head = created(store, own).head
        claim = store.claim(own.id, ME, "token")
        store.renew(own.id, ME, claim.fence)
        store.release(own.id, ME, claim.fence)
        claim = store.claim(own.id, ME, "token")
        holder = {"ticket": own.id, "owner": ME, "fence": claim.fence}
        store.commit(change(1, workflow=flow, head=head, context=claim.context, **holder))
        store.read(flow)
        store.sweep(0, owner=ME)
        store.now(flow)
        store.allocate_issue("0a1b2c3d")

    everything(FLOW)
    client = redis.Redis.from_url(server.url)
    monitoring: Any = client
    with monitoring.monitor() as monitor:
        everything("0a1b2c3d-43-1")
        store.ping()
        sent = []
        for said in monitor.listen():
            if said["client_type"] != "lua":
                sent.append(said["command"].split()[0])
            if sent[-1:] == ["PING"]:
                break
    client.close()

    assert sent == ["EVALSHA"] * 10 + ["PING"]


@pytest.mark.proves("G26")
def test_nothing_but_a_lock_has_an_expiry(server: RedisServer, store: RedisStore) -> None:
    created(
        store,
        ticket("a"),
        ticket("b", delay_seconds=60.0),
        ticket("c"),
        live=True,
        set_deadlines={"late": 1.0},
    )
    claimed(store, "a")
    store.put_artifact(FLOW, b"log")
    store.allocate_issue("0a1b2c3d")
    store.sweep(shard_of(FLOW), owner=ME)
    store.locks.acquire(FLOW, "file", "builder")
    client: Any = redis.Redis.from_url(server.url)

    expiring = [name for name in client.scan_iter() if client.ttl(name) >= 0]
    all_keys = {name.decode() for name in client.scan_iter()}
    client.close()

    assert expiring == [lock_key(FLOW, "file").encode()]
    assert {key.partition("}")[0] for key in all_keys} <= {f"fixloop:{{{shard:02}" for shard in range(SHARDS)}
    assert len(all_keys) == 15


def test_a_full_redis_is_reported_and_nothing_is_half_written(server: RedisServer, store: RedisStore) -> None:
    created(store, ticket("a"))
    claim = claimed(store, "a")
    before = store.read(FLOW)
    client = redis.Redis.from_url(server.url)
    client.config_set("maxmemory", 1)

    with pytest.raises(InfrastructureError, match=r"cannot serve now: .*memory"):
        store.commit(change(1, new_tickets=(ticket("b"),), set_deadlines={"late": 1.0}))
    client.config_set("maxmemory", 0)
    client.close()
    after = store.read(FLOW)

    assert before is not None
    assert after is not None
    assert (after.version, after.tickets, after.head) == (before.version, before.tickets, before.head)
    assert store.commit(change(1, ticket=ticket("a").id, owner=ME, fence=claim.fence)).status == "ok"


def test_a_wrong_password_is_reported_without_showing_it() -> None:
    own = RedisServer("--requirepass", "right")
    try:
        own.start()
        wrong = RedisStore(own.url.replace("unix://", "unix://:wrong@"), patience_seconds=20)
        right = RedisStore(own.url.replace("unix://", "unix://:right@"))

        assert seconds_to_fail(wrong, "refuses the login") < 10
        assert seconds_to_fail(RedisStore(own.url), "refuses the login") < FROZEN_SECONDS
        right.ping()
        with pytest.raises(InfrastructureError) as caught:
            wrong.ping()
        assert "wrong" not in str(caught.value).replace("WRONGPASS", "")
    finally:
        own.end()


def test_celerys_url_of_a_unix_socket_is_understood(server: RedisServer) -> None:
    store = RedisStore(f"redis+socket://{server.socket}?virtual_host=3")
    created(store)

    assert RedisStore(f"{server.url}?db=3").read(FLOW) is not None
    assert RedisStore(server.url).read(FLOW) is None


@pytest.mark.parametrize(
    "url", ["", "localhost:6379", "amqp://host", "redis://host:port/0", "redis://h:99999999"]
)
def test_an_invalid_redis_url_is_refused_in_one_sentence(url: str) -> None:
    with pytest.raises(UsageError, match="FIXLOOP_STATE_URL"):
        RedisStore(url)


def test_a_deadline_in_an_older_version_s_own_list_is_returned_once(
    server: RedisServer, store: RedisStore
) -> None:
    created(store, set_deadlines={"soon": store.now(FLOW).clock + 1})
    due = shard_keys(shard_of(FLOW)).due
    old = due.removesuffix("due") + "deadlines"
    with redis.Redis.from_url(server.url) as client:
        client.delete(due)
        client.zadd(old, {f"{FLOW}|soon": 1.0, f"{FLOW}|gone": 2.0})

        swept = [[due.name for due in sweep(store).deadlines] for _ in range(2)]

        assert swept == [["soon"], []]
        assert not client.exists(old)
        assert client.zrange(due, 0, -1) == [FLOW.encode()]
