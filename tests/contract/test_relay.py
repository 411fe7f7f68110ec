"""The relay of a chaos run, between a real client and a real Redis: what it sees, and what it can lose."""

import asyncio
import os
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import Celery

from fixloop.engine.engine import Engine
from fixloop.engine.hints import producer, send_hint
from fixloop.protocol.events import RunFinished
from fixloop.protocol.ticket import Ticket
from fixloop.store.redis_store import RedisStore
from fixloop.testing.crew import scripted_workflow
from fixloop.testing.relay import Cut, Link, Relay
from fixloop.testing.wire import NO_ROOM, PUSHED, Request, answer_to
from tests.fixtures.holdings import hold

pytestmark = pytest.mark.slow

WORKFLOW = "0a1b2c3d-47-1"
FIRST = f"{WORKFLOW}.test-runner.validate.1.1"


class Watching:
    """Writes down what passes; loses the first answer to a request of the kind in `loses`, and hints if told to."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str]] = []
        self.pids: set[int] = set()
        self.loses = ""
        self.loses_hints = False
        self.refusals = 0
        """How many artifacts there is no room for."""

    def sent(self, link: Link, requests: list[Request], data: bytes) -> tuple[bytes, bytes]:
        self.pids.add(link.pid)
        self.seen += [("sent", one.kind, one.ticket) for one in requests]
        if self.loses_hints and requests[0].kind == "hint":
            return b"", PUSHED
        if self.refusals and requests[0].kind == "artifact":
            self.refusals -= 1
            return b"", NO_ROOM
        link.unanswered += requests
        return data, b""

    def answered(self, link: Link, data: bytes) -> bytes:
        requests, link.unanswered = link.unanswered, []
        for one in requests:
            self.seen.append((answer_to(data), one.kind, one.ticket))
            if one.kind == self.loses:
                self.loses = ""
                raise Cut
        return data


class Wire:
    """A store and a producer behind the relay."""

    def __init__(self, relay: Relay, loop: asyncio.AbstractEventLoop, url: str, folder: Path) -> None:
        self.relay = relay
        self._loop = loop
        path = folder / "relay.sock"
        self.do(relay.listen, "here", path)
        self.store = RedisStore(f"unix://{path}", patience_seconds=2.0)
        self.app: Celery = producer(f"unix://{path}")
        self.straight: Any = redis.Redis.from_url(url)

    def waiting(self, queue: str) -> int:
        """Messages in a queue, of any priority."""
        return sum(int(self.straight.llen(name)) for name in self.straight.keys(f"{queue}*"))

    def do(self, act: Any, *words: Any) -> None:
        asyncio.run_coroutine_threadsafe(act(*words), self._loop).result(5.0)

    def now(self, act: Any, *words: Any) -> None:
        """In the relay's loop."""

        async def there() -> None:
            act(*words)

        self.do(there)


@pytest.fixture
def watching() -> Watching:
    return Watching()


@pytest.fixture
def wire(redis_url: str, watching: Watching, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    folder = Path("/tmp") / f"fixloop-relay-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    straight = redis.Redis.from_url(redis_url)
    straight.flushdb()
    straight.close()
    relay = Relay(Path(redis_url.removeprefix("unix://")), watching)
    made = Wire(relay, loop, redis_url, folder)
    yield made
    made.store.close()
    made.app.close()
    made.straight.close()
    made.do(relay.close)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(5.0)
    loop.close()
    (folder / "relay.sock").unlink(missing_ok=True)
    folder.rmdir()


def begun(store: RedisStore) -> Engine:
    engine = Engine(store)
    engine.start(scripted_workflow("0a1b2c3d", 47, "a -"))
    return engine


def offered(store: RedisStore) -> Ticket:
    found = store.read(WORKFLOW)
    assert found is not None
    return found.tickets[0].ticket


def finished(engine: Engine, fence: int | None = None) -> str:
    """Claim the first ticket and commit a pass; what the commit was answered with."""
    claim = engine.store.claim(FIRST, "me/1/2", "token")
    assert claim.status == "ok"
    assert claim.ticket is not None
    assert fence is None or claim.fence == fence
    event = RunFinished(
        step="validate", specialist="test-runner", iteration=1, outcome="passed", tree="tree-0"
    )
    return engine.finish(hold(claim.ticket, claim, "me/1/2"), event, claim.moment).status


def test_claim_and_commit_are_seen_with_their_ticket_and_process(wire: Wire, watching: Watching) -> None:
    engine = begun(wire.store)

    assert finished(engine) == "ok"

    assert [one for one in watching.seen if one[2] == FIRST and one[0] in ("sent", "ok")][-4:] == [
        ("sent", "claim", FIRST),
        ("ok", "claim", FIRST),
        ("sent", "commit", FIRST),
        ("ok", "commit", FIRST),
    ]
    assert watching.pids == {os.getpid()}


def test_a_hint_is_seen_with_the_ticket_it_offers(wire: Wire, watching: Watching) -> None:
    begun(wire.store)
    ticket = offered(wire.store)

    assert send_hint(wire.app, ticket, "validation")

    assert ("sent", "hint", FIRST) in watching.seen
    assert wire.waiting(ticket.queue) == 1


def test_the_sender_of_a_dropped_hint_believes_it_sent(wire: Wire, watching: Watching) -> None:
    begun(wire.store)
    ticket = offered(wire.store)
    watching.loses_hints = True

    assert send_hint(wire.app, ticket, "validation")

    assert wire.waiting(ticket.queue) == 0


@pytest.mark.proves("S30", "R8")
@pytest.mark.parametrize("lost", ["claim", "commit"])
def test_a_lost_reply_is_recovered_by_asking_again(wire: Wire, watching: Watching, lost: str) -> None:
    engine = begun(wire.store)
    watching.loses = lost

    assert finished(engine, fence=1) == "ok"

    assert [one for one in watching.seen if one[:2] == ("sent", lost) and one[2] == FIRST][1:]
    assert [entry.seq for entry in wire.store.history(WORKFLOW)] == [1, 2]


@pytest.mark.proves("S30")
def test_an_artifact_is_stored_once_there_is_space_again(wire: Wire, watching: Watching) -> None:
    begun(wire.store)
    watching.refusals = 3

    digest = wire.store.put_artifact(WORKFLOW, b"what a check said")

    assert wire.store.get_artifact(WORKFLOW, digest) == b"what a check said"
    assert [one[:2] for one in watching.seen].count(("sent", "artifact")) == 4


@pytest.mark.proves("S30")
def test_a_cut_line_refuses_until_it_is_repaired(wire: Wire) -> None:
    wire.store.ping()

    wire.now(wire.relay.cut, "here")
    threading.Timer(0.3, lambda: wire.now(wire.relay.mend, "here")).start()

    wire.store.ping()


@pytest.mark.proves("S30")
def test_a_silent_line_ends_nothing_and_delivers_everything_once_repaired(wire: Wire) -> None:
    wire.store.ping()

    wire.now(wire.relay.silence, "here")
    threading.Timer(0.3, lambda: wire.now(wire.relay.mend, "here")).start()
    wire.store.ping()

    assert wire.relay.withheld["here"] == 1
    assert wire.relay.refused["here"] == 0
