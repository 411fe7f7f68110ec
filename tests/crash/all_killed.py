"""All workers killed at 40 % of the steps: `python -m tests.crash.all_killed --workflows 200 --runs 10 [--contrast]`.

200 workflows of seven steps (validate, and two rounds of report, fix, recheck) with real workers on a Redis of their
own. Supervisor and all its processes get `kill -9` and a new supervisor is started at once. Each run has to end with
every workflow as if nothing had happened, at most 3 s later than the run before that nothing disturbed.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import redis

from fixloop.engine.hints import producer
from fixloop.protocol.events import WorkflowStarted
from fixloop.testing.bare import send
from fixloop.testing.contrast import BareHost
from fixloop.testing.processes import Access
from fixloop.testing.rehearsal import undisturbed
from fixloop.testing.wire import BEGUN, EFFECTS
from tests.crash.figures import Report, begun
from tests.fixtures.deployment import Deployment, fresh_database, wait_until
from tests.fixtures.redis_server import RedisServer

SCRIPT = "a~0.002 b~0.002 -~0.002; fix: ok~0.002"
STEPS, STEPS_OF_THE_CREW = 7, 5
LATER_SECONDS = 3.0


class Run(NamedTuple):
    """The result of one run."""

    seconds: float
    """From the first workflow's start to the last one's end."""
    ended: int
    """Workflows that ended as in an undisturbed run."""
    doubled: int
    """Workflows with more entries in their history than steps."""
    repeated: int
    """Steps that were started more than once."""


def main() -> int:
    """Measure and print; 1 if a limit is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workflows", type=int, default=200)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument(
        "--at", type=float, default=0.4, help="the part of the steps that is begun before the kill"
    )
    parser.add_argument(
        "--contrast", action="store_true", help="the same with a bare Celery chain, acks late"
    )
    options = parser.parse_args()
    # No Redis dies here: as for the benchmarks, each write need not be on the disk.
    server = RedisServer("--appendfsync", "everysec").start()
    try:
        code = measure(server.url, options)
        if options.contrast:
            contrast(server, options)
        return code
    finally:
        server.end()


def measure(url: str, options: argparse.Namespace) -> int:
    """So many runs, each after one that nothing disturbs."""
    report, count = Report(), options.workflows
    for number in range(1, options.runs + 1):
        calm = play(url, options, injured=False)
        hurt = play(url, options, injured=True)
        print(f"run {number}: undisturbed {calm.seconds:.2f} s, killed {hurt.seconds:.2f} s")
        report.at_most("later", hurt.seconds - calm.seconds, LATER_SECONDS)
        report.exactly("ended as if undisturbed", hurt.ended, count)
        report.exactly("workflows with an effect doubled", hurt.doubled, 0)
        print(f"     steps begun more than once: {hurt.repeated} of {count * STEPS}")
    return report.code


def play(url: str, options: argparse.Namespace, *, injured: bool) -> Run:
    """One run, on an empty database."""
    with tempfile.TemporaryDirectory(prefix="fixloop-") as folder:
        own = Deployment(
            fresh_database(url), Path(folder), concurrency=options.concurrency, FIXLOOP_LOG_LEVEL="WARNING"
        )
        try:
            own.start()
            own.finished(own.begin("-").workflow)
            began = time.monotonic()
            started = [own.begin(SCRIPT) for _ in range(options.workflows)]
            if injured:
                kill_all(own, int(options.at * options.workflows * STEPS_OF_THE_CREW))
            own.finished(*[one.workflow for one in started])
            return outcome(own, started, time.monotonic() - began)
        finally:
            own.end()


def kill_all(own: Deployment, steps: int) -> None:
    """Kill the supervisor and all below it after this many steps, and start a new one at once."""
    own.until(lambda: len(own.executions()) >= steps)
    found = own.processes()
    for process in found:
        os.kill(process.pid, signal.SIGKILL)
    own.start(ready=())


def outcome(own: Deployment, started: list[WorkflowStarted], seconds: float) -> Run:
    """Compare with a run in memory."""
    times = Counter(each.ticket for each in begun(own.folder / "executions"))
    return Run(
        seconds=seconds,
        ended=sum(own.story(one.workflow) == undisturbed(one) for one in started),
        doubled=sum(len(own.store.history(one.workflow)) != STEPS + 1 for one in started),
        repeated=sum(count > 1 for count in times.values()),
    )


def contrast(server: RedisServer, options: argparse.Namespace) -> None:
    """Chains of seven plain tasks, the same kill; 30 s without any progress are the end."""
    client: Any = redis.Redis.from_url(server.url)
    client.flushdb()
    with tempfile.TemporaryDirectory(prefix="fixloop-") as folder:
        environment = {"FIXLOOP_EXECUTIONS": str(Path(folder, "executions"))}
        host = BareHost(
            "bare", Path(folder), Access(server.url), concurrency=options.concurrency, environment=environment
        )
        app = producer(server.url)
        host.start()
        for number in range(options.workflows):
            send(app, [f"{number}.{step}" for step in range(STEPS)])
        try:
            wanted = int(options.at * options.workflows * STEPS)
            wait_until(lambda: client.hlen(BEGUN) >= wanted, seconds=300)
            host.kill()
            host.start()
            stand_still(lambda: int(client.hlen(EFFECTS)), seconds=30.0)
            begun_, done = client.hgetall(BEGUN), client.hgetall(EFFECTS)
        finally:
            host.stop()
    ended = sum(f"{number}.{STEPS - 1}".encode() in done for number in range(options.workflows))
    doubled = sum(int(count) > 1 for count in done.values())
    repeated = sum(int(count) > 1 for count in begun_.values())
    print(
        f"bare chains: {ended} of {options.workflows} ended, {doubled} effects doubled, {repeated} steps repeated"
    )


def stand_still(count: Callable[[], int], *, seconds: float) -> None:
    """Return when `count()` has not changed for this long."""
    since, last = time.monotonic(), count()
    while time.monotonic() - since < seconds:
        time.sleep(0.2)
        now = count()
        if now != last:
            since, last = time.monotonic(), now


if __name__ == "__main__":
    sys.exit(main())
