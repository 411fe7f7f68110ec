"""A failover during some workflows: state and messages are found again, and nothing is lost."""

import signal
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from fixloop.commands.doctor import examine
from fixloop.servers.settings import load_settings
from fixloop.store.keys import workflow_key
from fixloop.store.redis_store import RedisStore
from tests.crash.test_workers_killed import SCRIPTS, unharmed
from tests.e2e.sentinels import PASSWORD, SENTINEL_PASSWORD, Sentinels
from tests.fixtures.deployment import Deployment
from tests.fixtures.store_samples import FLOW, change, claimed, created, ticket

pytestmark = pytest.mark.slow

T = TypeVar("T")
FELLOW = "0a1b2c3d-43-1"
OTHER = "0a1b2c3d-44-1"


@pytest.fixture(scope="module")
def sentinels() -> Iterator[Sentinels]:
    own = Sentinels()
    try:
        yield own.start()
    finally:
        own.end()


@pytest.fixture
def url(sentinels: Sentinels, monkeypatch: pytest.MonkeyPatch) -> str:
    """With what the settings make of it."""
    monkeypatch.setenv("FIXLOOP_STATE_URL", sentinels.url)
    monkeypatch.setenv("FIXLOOP_SENTINEL_PASSWORD", SENTINEL_PASSWORD)
    urls = load_settings().urls()
    assert urls is not None
    return urls.state


@pytest.mark.proves("R8")
def test_a_commit_waits_for_a_live_replica_and_not_for_a_stopped_one(
    url: str, sentinels: Sentinels, caplog: pytest.LogCaptureFixture
) -> None:
    replica = sentinels.client(sentinels.servers[1])
    store = RedisStore(url)
    head = created(store).head
    for version in range(1, 40):
        head = store.commit(change(version, head=head)).head
        assert replica.hget(workflow_key(FLOW), "version") == str(version + 1).encode()

    sentinels.signal(sentinels.servers[1], signal.SIGSTOP)
    try:
        waited, head = seconds(lambda: store.commit(change(40, head=head)).head)
        at_once, head = seconds(lambda: store.commit(change(41, head=head)).head)
    finally:
        sentinels.signal(sentinels.servers[1], signal.SIGCONT)

    assert 0.9 < waited < 5
    assert at_once < 0.9
    assert [record.message[:16] for record in caplog.records] == ["0 of 1 replicas "]
    store.close()


@pytest.mark.proves("S30", "R7", "R8", "K10")
def test_work_continues_at_the_replica_when_the_master_is_killed(
    url: str, sentinels: Sentinels, tmp_path: Path
) -> None:
    store = RedisStore(url, patience_seconds=20)
    created(store, ticket("a", FELLOW))
    fence = claimed(store, "a", FELLOW).fence
    own = Deployment(url, tmp_path)
    try:
        own.start()
        started = [own.begin(script) for script in SCRIPTS[:4]]
        own.owner_pid(started[0].workflow)
        before, master = len(own.executions()), sentinels.master()

        sentinels.kill(master)

        own.until(lambda: len(own.executions()) > before)
        unharmed(own, *started)
        assert sentinels.master() != master
        own.stop()
        assert own.processes() == []
    finally:
        own.end()
    assert store.locks.acquire(FELLOW, "file", "builder").token > fence + 1
    assert "of 1 replicas" in own.log()
    assert PASSWORD not in own.log()
    assert SENTINEL_PASSWORD not in own.log()
    store.close()


def test_doctor_says_that_no_replica_is_left_and_counts_the_sentinels(
    url: str, sentinels: Sentinels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIXLOOP_CACHE_DIR", str(tmp_path / "cache"))
    sentinels.without_replica()

    found = {finding.name: finding for finding in examine(load_settings(), tmp_path)}

    assert found["redis"].ok
    assert found["redis sentinels"].ok
    assert found["redis sentinels"].detail == "3 of 3 answer and know 'fixloop'"
    assert (found["redis replicas"].ok, found["redis replicas"].detail) == (
        False,
        "0 connected, 1 to confirm each commit",
    )


def test_clients_leave_a_demoted_master_as_soon_as_it_refuses_to_write(
    url: str, sentinels: Sentinels
) -> None:
    store = RedisStore(url, patience_seconds=20)
    created(store, ticket("a", OTHER))
    gone = sentinels.without_replica()
    sentinels.start_server(gone, "--replicaof", "127.0.0.1", str(sentinels.master()))
    sentinels.until(lambda: sentinels.client(gone).info("replication").get("master_link_status") == "up")
    sentinels.until(sentinels.hand_over)

    tokens: list[int] = []
    while sentinels.master() != gone or len(tokens) < 100:
        tokens.append(store.locks.acquire(OTHER, uuid.uuid4().hex, "builder").token)

    assert tokens == sorted(set(tokens))
    store.close()


def seconds(action: Callable[[], T]) -> tuple[float, T]:
    """Its duration and its result."""
    began = time.monotonic()
    found = action()
    return time.monotonic() - began, found
