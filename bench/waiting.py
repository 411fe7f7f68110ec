"""What it costs when 100,000 workflows wait for a fix: memory of the worker and of Redis, the sweeper, a signal's way.

A worker runs from before the first until after the last. Redis has the configuration we ship. A signal is the fix of
an outside agent; from there to the start of the step that checks it, against a bare Celery task from `delay()` to its
start, in turns. Exit code 1 when a limit is not met.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from redis import Redis

from bench.pieces import cpu_seconds
from bench.stage import (
    BARE_WORKER,
    ROOT,
    background,
    fixloop_worker,
    hinting_engine,
    redis_server,
    scripted_environment,
    wait_until,
)
from bench.waiting_workflows import WaitingWorkflows, workflow_of
from fixloop.machine.process_name import role_of
from fixloop.protocol.events import FixCompleted
from fixloop.protocol.state import Completion
from fixloop.testing.processes import below

WORKER_MB: Final = 20.0
REDIS_BYTES: Final = 2500
SWEEPER_PERCENT: Final = 2.0
SIGNAL_RATIO: Final = 3.0
SETTLE_SECONDS: Final = 5.0


class Limit(NamedTuple):
    name: str
    found: float
    most: float
    unit: str

    @property
    def is_met(self) -> bool:
        return self.found <= self.most

    def __str__(self) -> str:
        mark = "ok" if self.is_met else "TOO MUCH"
        return f"{self.name:<44} {self.found:9.2f} {self.unit} (at most {self.most:g})  {mark}"


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory(prefix="fixloop-bench-") as folder, redis_server(options.server) as url:
        executions = Path(folder) / "executions"
        environment = scripted_environment(url, FIXLOOP_EXECUTIONS=str(executions))
        with background(fixloop_worker(), environment) as worker, background(BARE_WORKER, environment):
            limits = _measured(url, worker.pid, executions, options)
    for limit in limits:
        print(limit)
    sys.exit(0 if all(limit.is_met for limit in limits) else 1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workflows", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 2, help="that make them")
    parser.add_argument("--seconds", type=float, default=30.0, help="for which the sweeper is watched")
    parser.add_argument("--signals", type=int, default=200)
    parser.add_argument("--server", default="", help="the redis-server to use; default: the embedded one's")
    options = parser.parse_args()
    if options.workflows < options.signals:
        parser.error("there are fewer workflows than signals")
    return options


def _measured(url: str, worker: int, executions: Path, options: argparse.Namespace) -> list[Limit]:
    client = Redis.from_url(url)
    signals = _Signals(url, executions)
    # What is loaded with the first work is no cost of waiting.
    waiting = WaitingWorkflows(url)
    for number in range(options.workflows, options.workflows + 20):
        waiting.make(number)
        signals.ours(number)
        signals.bare()
    wait_until(lambda: _sweeper(worker) > 0, seconds=20)
    time.sleep(SETTLE_SECONDS)
    resident, used = _resident_bytes(worker), _used_bytes(client)
    _fill(url, options.workflows, options.processes)
    time.sleep(SETTLE_SECONDS)
    each = (_used_bytes(client) - used) / options.workflows
    busy = cpu_seconds([_sweeper(worker)])
    time.sleep(options.seconds)
    swept = (cpu_seconds([_sweeper(worker)]) - busy) / options.seconds
    grown = (_resident_bytes(worker) - resident) / 1e6
    pairs = [(signals.bare(), signals.ours(number)) for number in range(options.signals)]
    bare, ours = ([pair[side] * 1000 for pair in pairs] for side in (0, 1))
    info: Any = client.info()
    print(f"{options.workflows} workflows; Redis {info['redis_version']}, {info['mem_allocator']}")
    for name, found in (("bare task", bare), ("signal", ours)):
        print(f"{name}: p50 {_share(found, 0.5):.2f} ms, p99 {_share(found, 0.99):.2f} ms")
    return [
        Limit("the worker's processes grew by", grown, WORKER_MB, "MB"),
        Limit("Redis, each", each, REDIS_BYTES, "bytes"),
        Limit("the sweeper, of a core", swept * 100, SWEEPER_PERCENT, "%"),
        *(
            Limit(f"signal to step, of a bare task, p{share:.0%}", ratio, SIGNAL_RATIO, "times")
            for share in (0.5, 0.99)
            for ratio in [_share(ours, share) / _share(bare, share)]
        ),
    ]


class _Signals:
    """Seconds from a call to the start of what it asks for."""

    def __init__(self, url: str, executions: Path) -> None:
        from bench.bare import noted

        self._noted = noted.s().set(queue="bare")
        self._client: Any = Redis.from_url(url)
        self._engine = hinting_engine(url, WaitingWorkflows(url).store)
        self._executions = executions

    def bare(self) -> float:
        began = time.monotonic()
        self._noted.delay()
        _, told = self._client.blpop("bare:began", timeout=30)
        return float(told) - began

    def ours(self, number: int) -> float:
        workflow = workflow_of(number)
        completion = Completion(iteration=1, by="agent", fixes=("it",), files=("a.py",), tip="c1", tree="t1")
        event = FixCompleted(specialist="test-runner", completion=completion)
        began = time.monotonic()
        self._engine.apply(workflow, event, operation="fixed")
        wait_until(lambda: self._started(workflow) > 0, seconds=30, step_seconds=0.001)
        return self._started(workflow) - began

    def _started(self, workflow: str) -> float:
        """By the line that the step wrote as it began; 0 when there is none."""
        if not self._executions.exists():
            return 0.0
        with self._executions.open("rb") as file:
            file.seek(max(0, self._executions.stat().st_size - 2000))
            lines = file.read().decode().splitlines()
        found = [line.split() for line in lines if line.startswith(f"{workflow}.test-runner.recheck.")]
        return float(found[-1][5]) if found else 0.0


def _fill(url: str, workflows: int, processes: int) -> None:
    began = time.monotonic()
    share = -(-workflows // processes)
    command = [sys.executable, "-m", "bench.waiting_workflows", url]
    started = [
        subprocess.Popen([*command, str(first), str(min(first + share, workflows))], cwd=ROOT)
        for first in range(0, workflows, share)
    ]
    failed = [process.args for process in started if process.wait() != 0]
    if failed:
        sys.exit(f"could not make all workflows: {failed}")
    print(f"made {workflows} in {time.monotonic() - began:.0f} s")


def _sweeper(worker: int) -> int:
    return next((pid for pid in below(worker, 1) if role_of(pid) == "sweep"), 0)


def _resident_bytes(worker: int) -> int:
    processes = (worker, *below(worker, 1), *below(worker, 2))
    pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in processes)
    return pages * os.sysconf("SC_PAGE_SIZE")


def _used_bytes(client: "Redis") -> int:
    info: Any = client.info("memory")
    return int(info["used_memory"])


def _share(found: Sequence[float], share: float) -> float:
    if share == 0.5:
        return statistics.median(found)
    return sorted(found)[min(len(found) - 1, int(len(found) * share))]


if __name__ == "__main__":
    main()
