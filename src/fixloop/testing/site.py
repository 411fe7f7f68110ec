"""The site of a chaos run: a Redis, two workers, their injurer, and the caller that submits work."""

import asyncio
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

import redis

from fixloop.engine.engine import Engine, ProfileEngine
from fixloop.engine.hints import producer, send_hint
from fixloop.engine.profile import Profile
from fixloop.errors import FixloopError, InfrastructureError
from fixloop.protocol.event import Event, Start, Unexpected
from fixloop.protocol.events import DecisionMade
from fixloop.protocol.messages import Decision
from fixloop.store.keys import workflow_key
from fixloop.store.redis_store import RedisStore
from fixloop.testing.executions import Execution, executions_in
from fixloop.testing.injurer import Injurer
from fixloop.testing.injuries import record
from fixloop.testing.networks import Network, Networks, networks
from fixloop.testing.plan import Schedule
from fixloop.testing.processes import Host, RedisServer, comes

T = TypeVar("T")
EXECUTIONS: Final = "executions"
"""The file in which agents record their starts."""
HOSTS: Final = ("host-1", "host-2")
LEFT_ALONE: Final = "0a1e1e55"
INJURED: Final = "d15a57e2"
"""The hashes of the two projects."""
POLL_SECONDS: Final = 0.1
START_SECONDS: Final = 180.0
PATIENCE_SECONDS: Final = 60.0
"""If no step happens for this long, workflows that have not ended count as stuck."""
LOOK_SECONDS: Final = 0.0005
"""Per workflow polled."""
SETTLING_SECONDS: Final = 1.0
# The caller is not injured, and waits for an injured Redis.
CALLER_PATIENCE_SECONDS: Final = 30.0
GIVEN_UP: Final = DecisionMade(decision=Decision.ABORT, by="chaos")


class Order(NamedTuple):
    workflows: int
    kills: int
    seed: int
    concurrency: int = 2
    """Work processes of each of the two workers."""
    contrast: bool = False
    """Whether bare Celery chains are also injured by the same plan."""
    twice: bool = False
    """Whether every message is delivered twice, from the first to the last."""
    profile: str = "validation"
    network: Network = "auto"
    """How workers are cut off: by network namespaces if possible, or by the relay."""


class Progress(NamedTuple):
    what: str
    ended: int
    workflows: int
    injuries: int
    seconds: float


class Work(Protocol):
    def begin(self) -> list[str]:
        """Submit all work; returns its names."""

    def unended(self, names: Sequence[str]) -> list[str]:
        """The names that have not ended. Raises FixloopError or RedisError if that cannot be determined now."""


class Site:
    def __init__(self, folder: Path, sockets: Path, kind: Callable[..., Host], networks: Networks) -> None:
        self._folder = folder
        self._executions = folder / EXECUTIONS
        self.server = RedisServer(folder, sockets)
        self.networks = networks
        self.hosts = {name: kind(name, folder, network.access) for name, network in networks.by_host.items()}
        self.injurer = Injurer(self.hosts, self.server, networks.by_host, self._executions)
        self._loop = asyncio.new_event_loop()

    @contextmanager
    def running(self) -> Iterator["Site"]:
        """Start everything; it ends with the block."""
        with ExitStack() as ending:
            ending.callback(self.server.kill)
            self.server.start()
            self.server.wait()
            thread = threading.Thread(target=self._loop.run_forever, name="fixloop-relay", daemon=True)
            thread.start()
            ending.callback(self._loop.close)
            ending.callback(thread.join, 5.0)
            ending.callback(self._loop.call_soon_threadsafe, self._loop.stop)
            ending.callback(self.in_loop, self.injurer.relay.close)
            for host in self.hosts.values():
                self.in_loop(self.networks.by_host[host.name].open, self.injurer.relay)
                ending.callback(host.stop)
                host.start()

            def all_run() -> bool:
                return all(host.wanted <= set(host.roles().values()) for host in self.hosts.values())

            if not comes(all_run, START_SECONDS, POLL_SECONDS):
                raise InfrastructureError(
                    f"the workers did not start within {START_SECONDS:.0f} s; see the logs in {self._folder}"
                )
            yield self

    def in_loop(self, act: Callable[..., object], *words: object) -> None:
        """Call `act` in the relay's thread and wait for it."""

        async def there() -> None:
            done = act(*words)
            if isinstance(done, Awaitable):
                await done

        asyncio.run_coroutine_threadsafe(there(), self._loop).result(10.0)

    def arm(self, schedule: Schedule, commands: Container[str] = (), *, twice_over: bool = False) -> None:
        arm = partial(self.injurer.arm, schedule, commands, twice_over=twice_over)
        self._loop.call_soon_threadsafe(arm)

    def heal(self) -> None:
        """Stop injuring; returns when stopped processes run again and their results have arrived."""
        self.in_loop(self.injurer.disarm)
        while self.injurer.actions.under_way:
            time.sleep(POLL_SECONDS)
        time.sleep(SETTLING_SECONDS)
        record(self.injurer.injuries, self._folder, self.executions())

    def run(
        self,
        what: str,
        work: Work,
        tell: Callable[[Progress], object],
        *,
        patience_seconds: float = PATIENCE_SECONDS,
        limit_seconds: float = float("inf"),
    ) -> float:
        """Submit `work`; returns the seconds until all has ended, nothing happens any more, or the limit is reached."""
        began = moved = time.monotonic()
        waiting = work.begin()
        count, seconds = len(waiting), 0.0
        before: object = None
        while waiting and seconds < limit_seconds:
            # Changes as long as anything happens.
            now = len(waiting), self.injurer.answers["ok"], self.injurer.actions.under_way
            if now != before or self.injurer.actions.under_way:
                before, moved = now, time.monotonic()
            if time.monotonic() - moved > patience_seconds:
                break
            # Polling also costs Redis time.
            time.sleep(max(POLL_SECONDS, len(waiting) * LOOK_SECONDS))
            for host in self.hosts.values():
                self._loop.call_soon_threadsafe(host.tend)
            with suppress(FixloopError, redis.RedisError):
                waiting = work.unended(waiting)
            seconds = time.monotonic() - began
            tell(Progress(what, count - len(waiting), count, len(self.injurer.injuries), seconds))
        return time.monotonic() - began

    def executions(self) -> list[Execution]:
        return executions_in(self._executions)


@contextmanager
def site(folder: Path, order: Order, host: type[Host] = Host) -> Iterator[Site]:
    """A running site that ends with the block. Its workers are scripted; its files are in `folder`."""
    environment = {
        "FIXLOOP_CREW": "fixloop.testing:scripted_crew",
        "FIXLOOP_EXECUTIONS": str(folder / EXECUTIONS),
        "FIXLOOP_CACHE_DIR": str(folder / "cache"),
        "FIXLOOP_LOG_LEVEL": os.environ.get("FIXLOOP_LOG_LEVEL", "WARNING"),
        "FIXLOOP_TASK_EVENTS": "0",
    }
    kind = partial(host, concurrency=order.concurrency, environment=environment)
    # A socket's path is limited to 107 bytes, and `folder` may be deep.
    with (
        tempfile.TemporaryDirectory(prefix="fixloop-") as sockets,
        networks(order.network, HOSTS, Path(sockets)) as by_host,
        Site(folder, Path(sockets), kind, by_host).running() as running,
    ):
        yield running


class Play(NamedTuple, Generic[T]):
    """One workflow of a run."""

    event: Start
    script: str
    answers: Sequence[Event]
    """A person's answers to its escalations, in order."""
    expected: T
    """Its rehearsal, or the folder of its named files."""

    @property
    def workflow(self) -> str:
        return self.event.workflow


@dataclass
class Workflows:
    _engine: ProfileEngine[Any]
    _client: Any
    _plays: Mapping[str, Play[Any]]
    _given_up: Event
    """The answer to unexpected escalations."""
    _decided: Counter[str] = field(default_factory=Counter)

    def begin(self) -> list[str]:
        for play in self._plays.values():
            # The result `exists` means that the first reply was lost with Redis; the end shows if that is true.
            self._engine.start(play.event)
        return list(self._plays)

    def unended(self, names: Sequence[str]) -> list[str]:
        pipe = self._client.pipeline(transaction=False)
        for workflow in names:
            pipe.hmget(workflow_key(workflow), "outcome", "paused")
        found = dict(zip(names, pipe.execute(), strict=True))
        for workflow, (outcome, paused) in found.items():
            if paused and not outcome:
                # Abort a workflow that escalates more often than expected.
                number, answers = self._decided[workflow], self._plays[workflow].answers
                answer = answers[number] if number < len(answers) else self._given_up
                with suppress(Unexpected):
                    self._engine.apply(workflow, answer, operation=f"decision-{number}")
                    self._decided[workflow] += 1
        return [workflow for workflow, (outcome, _) in found.items() if not outcome]


class Caller(NamedTuple):
    store: RedisStore
    client: Any
    engine: Engine

    def workflows(
        self, plays: Sequence[Play[Any]], given_up: Event = GIVEN_UP, profile: Profile[Any] | None = None
    ) -> Workflows:
        engine = self.engine if profile is None else self.engine.of(profile)
        return Workflows(engine, self.client, {play.workflow: play for play in plays}, given_up)


@contextmanager
def calling(url: str) -> Iterator[Caller]:
    app = producer(url)
    client: Any = redis.Redis.from_url(url, socket_timeout=2.0)
    with (
        closing(RedisStore(url, patience_seconds=CALLER_PATIENCE_SECONDS)) as store,
        closing(client),
        closing(app),
    ):
        yield Caller(store, client, Engine(store, lambda ticket, kept: send_hint(app, ticket, kept.profile)))
