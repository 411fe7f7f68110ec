"""Where a chaos run takes place: a Redis, two workers, the one who injures them, and the caller who hands work in."""

import asyncio
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import redis

from fixloop.engine import Engine
from fixloop.errors import FixloopError, InfrastructureError
from fixloop.hints import producer, send_hint
from fixloop.protocol.events import DecisionMade, WorkflowStarted
from fixloop.protocol.messages import Decision
from fixloop.protocol.outcome import Unexpected
from fixloop.store.keys import workflow_key
from fixloop.store.redis_store import RedisStore
from fixloop.testing.injuring import Injurer
from fixloop.testing.plan import Plan
from fixloop.testing.processes import Host, RedisServer
from fixloop.testing.verdict import Execution, executions_in

__all__ = ["GIVEN_UP", "Progress", "Site", "site"]

HOSTS: Final = ("host-1", "host-2")
POLL_SECONDS: Final = 0.1
START_SECONDS: Final = 60.0
PATIENCE_SECONDS: Final = 60.0
"""So long without any step anywhere: what has not ended then never will."""
# Whoever hands work in is not injured, and waits for a Redis that is.
CALLER_SECONDS: Final = 30.0
LOOK_SECONDS: Final = 0.0005
"""For each workflow that is looked at."""
SETTLING_SECONDS: Final = 1.0
GIVEN_UP: Final = DecisionMade(decision=Decision.ABORT, by="chaos")
"""What the person says to every escalation."""


class Progress(NamedTuple):
    """How far it is."""

    what: str
    ended: int
    workflows: int
    injuries: int
    seconds: float


class Site:
    """Redis, hosts and the one who injures them."""

    def __init__(self, folder: Path, sockets: Path, concurrency: int) -> None:
        self._executions = folder / "executions"
        self._folder = folder
        environment = {
            "FIXLOOP_CREW": "fixloop.testing:scripted_crew",
            "FIXLOOP_EXECUTIONS": str(self._executions),
            "FIXLOOP_CACHE_DIR": str(folder / "cache"),
            "FIXLOOP_LOG_LEVEL": os.environ.get("FIXLOOP_LOG_LEVEL", "WARNING"),
            "FIXLOOP_TASK_EVENTS": "0",
        }
        self.server = RedisServer(folder, sockets)
        self.hosts = {
            name: Host(
                name,
                folder,
                sockets / f"{name}.sock",
                concurrency=concurrency,
                environment=environment,
            )
            for name in HOSTS
        }
        self.injurer = Injurer({}, self.hosts, self.server, self._executions)
        self.store = RedisStore(self.server.url, patience_seconds=CALLER_SECONDS)
        self._app = producer(self.server.url)
        self._engine = Engine(self.store, lambda ticket, state: send_hint(self._app, ticket, state))
        self._client: Any = redis.Redis(unix_socket_path=str(self.server.socket), socket_timeout=2.0)
        self._loop = asyncio.new_event_loop()

    # Its life.

    @contextmanager
    def running(self) -> Iterator["Site"]:
        """Everything is started, and ended with the block."""
        with ExitStack() as ending:
            ending.callback(self.server.kill)
            self.server.start()
            self.server.wait()
            thread = threading.Thread(target=self._loop.run_forever, name="fixloop-relay", daemon=True)
            thread.start()
            ending.callback(thread.join, 5.0)
            ending.callback(self._loop.call_soon_threadsafe, self._loop.stop)
            ending.callback(self._in_loop, self.injurer.relay.close)
            for host in self.hosts.values():
                self._in_loop(self.injurer.relay.listen, host.name, host.socket)
                ending.callback(host.stop)
                host.start()
            ending.callback(self._close)
            self._wait_for_workers()
            yield self

    def _close(self) -> None:
        self.store.close()
        self._app.close()
        self._client.close()

    def _in_loop(self, act: Callable[..., Any], *words: Any) -> None:
        asyncio.run_coroutine_threadsafe(act(*words), self._loop).result(10.0)

    def _wait_for_workers(self) -> None:
        give_up = time.monotonic() + START_SECONDS
        wanted = {"sweep", "control", "work", "worker"}
        while not all(wanted <= set(host.roles().values()) for host in self.hosts.values()):
            if time.monotonic() > give_up:
                raise InfrastructureError(
                    f"the workers did not start within {START_SECONDS:.0f} s; see the logs in {self._folder}"
                )
            time.sleep(POLL_SECONDS)

    def arm(self, planned: Plan) -> None:
        """From now on, injure."""
        self._loop.call_soon_threadsafe(self.injurer.arm, planned)

    def heal(self) -> None:
        """Return when everything that was stopped goes on again, and what it did has come in."""
        while self.injurer.under_way:
            time.sleep(POLL_SECONDS)
        time.sleep(SETTLING_SECONDS)
        lines = "".join(f"{wound.line()}\n" for wound in self.injurer.wounds)
        (self._folder / "injuries").write_text(lines, encoding="utf-8")

    # A run.

    def run(
        self, what: str, workflows: Sequence[WorkflowStarted], tell: Callable[[Progress], object]
    ) -> float:
        """Begin all of `workflows`; the seconds until all have ended, or nothing goes on."""
        began = time.monotonic()
        for one in workflows:
            self._begin(one)
        waiting = [one.workflow for one in workflows]
        patience = _Patience()
        while waiting and not patience.is_over(self._moves(len(waiting))):
            # Looking costs Redis time, too.
            time.sleep(max(POLL_SECONDS, len(waiting) * LOOK_SECONDS))
            for host in self.hosts.values():
                self._loop.call_soon_threadsafe(host.tend)
            with suppress(FixloopError, redis.RedisError):
                waiting = self._unended(waiting)
            count, seconds = len(workflows), time.monotonic() - began
            tell(Progress(what, count - len(waiting), count, len(self.injurer.wounds), seconds))
        return time.monotonic() - began

    def _moves(self, waiting: int) -> object:
        """Something that changes as long as anything goes on."""
        healing = time.monotonic() if self.injurer.under_way else 0.0
        return waiting, self.injurer.answers["ok"], healing

    def _begin(self, started: WorkflowStarted) -> None:
        # `exists`: the first answer was lost with Redis. Whether it really is there shows at the end.
        self._engine.start(started)

    def _unended(self, workflows: list[str]) -> list[str]:
        """Those that have not ended; one that waits for a person is told to give up."""
        pipe = self._client.pipeline(transaction=False)
        for workflow in workflows:
            pipe.hmget(workflow_key(workflow), "outcome", "paused")
        left = []
        for workflow, (outcome, paused) in zip(workflows, pipe.execute(), strict=True):
            if not outcome:
                left.append(workflow)
            if paused and not outcome:
                with suppress(Unexpected):
                    self._engine.apply(workflow, GIVEN_UP, operation="given-up")
        return left

    def executions(self) -> list[Execution]:
        """What the agents began, in order."""
        return executions_in(self._executions)


class _Patience:
    """Over when nothing has changed for long."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._before: object = None

    def is_over(self, now: object) -> bool:
        if now != self._before:
            self._since, self._before = time.monotonic(), now
        return time.monotonic() - self._since > PATIENCE_SECONDS


@contextmanager
def site(folder: Path, concurrency: int) -> Iterator[Site]:
    """A site that runs, and is gone with the block; what it leaves is in `folder`."""
    # A socket's path may have 107 bytes, and `folder` may lie deep.
    with (
        tempfile.TemporaryDirectory(prefix="fixloop-") as sockets,
        Site(folder, Path(sockets), concurrency).running() as running,
    ):
        yield running
