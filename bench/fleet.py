"""How many work processes one Redis supports: steps of 50 ms to 2 s, by more and more processes, on one or more Redis.

For each size: steps per second and their percentage of the possible rate, the CPU time of all Redis servers per step
and while idle. Several servers share workflows and workers equally, as they would share projects. If `machine` is near
100 % per processor, the machine is the bottleneck, not Redis. All workflows are queued at once, and each ticket
needs one message. Additional messages are repeated hints: waiting alone must not cause them, or a backlog fills with
copies. Exit code 1 if there are more than 0.2 of them per ticket.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import count, cycle
from typing import Final

from redis import Redis

from bench import stage
from bench.pieces import cpu_seconds
from fixloop.store.redis_store import RedisStore
from fixloop.testing.crew import scripted_workflow

SECONDS: Final = (0.05, 0.2, 0.5, 1.0, 2.0)
"""The durations of steps; workflows use them in turn."""
MEAN_SECONDS: Final = sum(SECONDS) / len(SECONDS)
OF_A_WORKER: Final = 10
"""Work processes of one worker."""
IDLE_SECONDS: Final = 10.0
MOST_AGAIN: Final = 0.2
COLUMNS: Final = (
    "Redis servers, processes, steps/s, % of possible, Redis ms a step, Redis idle %, machine %, again"
)
_ISSUES: Final = count(1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, nargs="+", default=[30, 60, 120, 240])
    parser.add_argument("--servers", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each size works, about")
    parser.add_argument("--broker", default="", help="one of your own, such as RabbitMQ; default: the Redis")
    options = parser.parse_args()
    names = COLUMNS.split(", ")
    print(f"| {' | '.join(names)} |\n|{'--:|' * len(names)}")
    most = 0.0
    for servers in options.servers:
        for processes in options.processes:
            *figures, again = measured(servers, processes, options.seconds, options.broker)
            print(f"| {' | '.join(f'{each:.3g}' for each in (*figures, again))} |", flush=True)
            most = max(most, again)
    return int(most > MOST_AGAIN)


def measured(servers: int, processes: int, seconds: float, broker: str) -> Sequence[float]:
    """The figures of one line, in the order of `COLUMNS`."""
    with ExitStack() as running:
        urls = [running.enter_context(stage.redis_server()) for _ in range(servers)]
        for url, _ in zip(cycle(urls), range(processes // OF_A_WORKER), strict=False):
            environment = stage.scripted_environment(url, FIXLOOP_BROKER_URL=broker or url)
            running.enter_context(stage.background(stage.fixloop_worker(OF_A_WORKER), environment))
        redis = [int(Redis.from_url(url).info("server")["process_id"]) for url in urls]
        worked(urls, broker, processes * 2)
        idle = cpu_seconds(redis)
        time.sleep(IDLE_SECONDS)
        before, machine, sent = cpu_seconds(redis), _machine_seconds(), _messages(urls)
        steps, took = worked(urls, broker, round(processes * seconds / MEAN_SECONDS))
        spent, busy = cpu_seconds(redis) - before, (_machine_seconds() - machine) / took
        again = 0.0 if broker else (_messages(urls) - sent) / steps - 1
    possible = processes / MEAN_SECONDS * took
    resting = (before - idle) / IDLE_SECONDS
    return (
        servers, processes, steps / took, 100 * steps / possible, 1000 * spent / steps, 100 * resting, 100 * busy, again
    )  # fmt: skip


def worked(urls: Sequence[str], broker: str, workflows: int) -> tuple[int, float]:
    """Run some workflows of one step; returns the number of steps and the seconds they took."""
    stores = [RedisStore(url) for url in urls]
    engines = [stage.hinting_engine(broker or url, store) for url, store in zip(urls, stores, strict=True)]
    began, waiting = time.monotonic(), list[tuple[RedisStore, str]]()
    for place, seconds, _ in zip(cycle(range(len(urls))), cycle(SECONDS), range(workflows), strict=False):
        event = scripted_workflow("be9c4a11", next(_ISSUES), f"-~{seconds}")
        engines[place].start(event)
        waiting.append((stores[place], event.workflow))
    started = list(waiting)

    def all_ended() -> bool:
        # Check the last workflow in the queue first, so that polling is cheap.
        while waiting and (found := waiting[-1][0].read(waiting[-1][1])) and found.fields.get("outcome"):
            waiting.pop()
        return not waiting

    stage.wait_until(all_ended, seconds=3600, step_seconds=0.1)
    took = time.monotonic() - began
    return sum(len(store.history(workflow)) - 1 for store, workflow in started), took


def _messages(urls: Sequence[str]) -> int:
    """The number of messages sent to the servers: nothing else here pushes to the left of a list."""
    return sum(
        Redis.from_url(url).info("commandstats").get("cmdstat_lpush", {"calls": 0})["calls"] for url in urls
    )


def _machine_seconds() -> float:
    """The busy seconds of all processors since boot."""
    with open("/proc/stat") as file:
        return sum(map(int, file.readline().split()[1:4])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
