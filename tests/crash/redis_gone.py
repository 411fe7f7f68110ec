"""Redis gone with tasks in flight: `python -m tests.crash.redis_gone --rounds 3 [--only killed|frozen|blip]`.

Two workers, always busy, on an append-only Redis of their own, which is killed for 3 s, frozen for 4 s (longer than
any client waits), or killed for one second. Measured is when each of all work processes has begun a step since it
was back, and control has done one. At the end each history has to be that of a run that nothing disturbed.
"""

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from fixloop.protocol.events import WorkflowStarted
from fixloop.testing.rehearsal import undisturbed
from tests.crash.figures import Report, begun
from tests.fixtures.deployment import Deployment, fresh_database
from tests.fixtures.redis_server import RedisServer

LIMIT_SECONDS = 10.0
AWAY_SECONDS = {"killed": 3.0, "frozen": 4.0, "blip": 1.0}
SCRIPT = "a~0.3 b~0.3 -~0.3; fix: ok~0.3"


def main() -> int:
    """Measure and print; 1 if a limit is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--only", choices=sorted(AWAY_SECONDS))
    options = parser.parse_args()
    report = Report()
    for how in [options.only] if options.only else AWAY_SECONDS:
        for number in range(1, options.rounds + 1):
            seconds, differing = play(how, options)
            report.at_most(f"{how}, round {number}: all serve again", seconds, LIMIT_SECONDS)
            report.exactly("     histories that differ from an undisturbed run", differing, 0)
    return report.code


def play(how: str, options: argparse.Namespace) -> tuple[float, int]:
    """Seconds until all serve again, and the number of workflows with a wrong end."""
    server = RedisServer().start()
    with ExitStack() as stack:
        stack.callback(server.end)
        url = fresh_database(server.url)
        workers = [
            Deployment(
                url, Path(stack.enter_context(tempfile.TemporaryDirectory())), concurrency=options.concurrency
            )
            for _ in range(options.workers)
        ]
        for worker in workers:
            stack.callback(worker.end)
            worker.start()
        caller = workers[0]
        started = [caller.begin(SCRIPT) for _ in range(options.workers * options.concurrency * 4)]
        for worker in workers:
            worker.until(lambda worker=worker: serving(worker, 0.0) == options.concurrency)  # type: ignore[misc]
        back = disturb(server, how)
        started += [caller.begin(SCRIPT) for _ in range(options.workers * options.concurrency * 8)]
        caller.until(lambda: all(serving(worker, back) >= options.concurrency for worker in workers))
        last = max(first_beginnings(worker, back)[options.concurrency - 1] for worker in workers)
        return last - back, ended(caller, started)


def disturb(server: RedisServer, how: str) -> float:
    """Stop Redis and restart it; returns the time of that."""
    if how == "frozen":
        server.signal(signal.SIGSTOP)
        time.sleep(AWAY_SECONDS[how])
        server.signal(signal.SIGCONT)
    else:
        server.signal(signal.SIGKILL)
        time.sleep(AWAY_SECONDS[how])
        server.start()
    return time.monotonic()


def serving(worker: Deployment, since: float) -> int:
    """The number of its processes that have started a step since then."""
    return len(first_beginnings(worker, since))


def first_beginnings(worker: Deployment, since: float) -> Sequence[float]:
    """When each process of a worker began its first step since then, the earliest first."""
    first: dict[int, float] = {}
    for one in begun(worker.folder / "executions"):
        if one.at > since:
            first.setdefault(one.pid, one.at)
    return sorted(first.values())


def ended(caller: Deployment, started: Sequence[WorkflowStarted]) -> int:
    """The number of workflows that ended differently from an undisturbed run."""
    caller.finished(*[one.workflow for one in started], seconds=300)
    return sum(caller.story(one.workflow) != undisturbed(one) for one in started)


if __name__ == "__main__":
    sys.exit(main())
