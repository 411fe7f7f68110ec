"""Steps per second compared with a bare Celery chain: the median ratio of five interleaved pairs in one run.

Every other pair begins with fixloop, so that a machine that becomes slower or faster favours neither side.

A workflow has seven steps (validate, and two rounds of report, fix, recheck), each with 1 KB of stored output.
Specialists and fixer are scripted and in-process, so that only the engine is measured. A hop of the bare chain has the
same arguments and does nothing. Then it prints the CPU time of each process for both sides, and of the pieces of code
in fixloop's. With `--queued`, it prints how long that many workflows, submitted at once, wait for their first and last
steps, if processes go on with the next step and if each step goes through the broker. The last line is `ratio N.NN`;
exit code 1 if that is below 1.2.
"""

import argparse
import os
import statistics
import sys
import time
from datetime import datetime
from typing import Any

from redis import Redis

from bench import stage
from bench.pieces import cpu_by_role, told_pieces
from fixloop.store.keys import workflow_key
from fixloop.store.records import Entry
from fixloop.store.redis_store import RedisStore
from fixloop.testing.crew import scripted_workflow

STEPS = 7
LEAST = 1.2
FURTHER = 1_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workflows", type=int, default=150)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--alone", type=int, default=30, help="workflows run one at a time, for p50 and p99")
    parser.add_argument("--queued", type=int, default=0)
    options = parser.parse_args()
    for goes_on in (True, False) if options.queued else ():
        _print_waits(options.queued, goes_on)
    with stage.redis_server() as url:
        environment = stage.scripted_environment(url)
        timed = environment | {"FIXLOOP_CREW": "bench.pieces:timed_crew"}
        with stage.background(stage.BARE_WORKER, environment) as bare_worker:
            with stage.background(stage.fixloop_worker(), environment) as worker:
                ratio = _measure(Fixloop(url), Bare(url), options)
                _print_cpu(url, (bare_worker.pid, worker.pid), options.workflows)
            with stage.background(stage.fixloop_worker(), timed):
                _print_pieces(url, options.workflows)
    print(f"ratio {ratio:.2f}")
    sys.exit(0 if ratio >= LEAST else 1)


class Fixloop:
    def __init__(self, url: str, *, first: int = 0) -> None:
        self.store = RedisStore(url)
        self._client = Redis.from_url(url)
        self._engine = stage.hinting_engine(url, self.store)
        self._issue = first
        self.last: list[str] = []

    def run(self, count: int) -> None:
        workflows = self.last = [self._start() for _ in range(count)]
        stage.wait_until(lambda: self._ended(workflows), seconds=120, step_seconds=_pause_seconds(count))

    def steps(self) -> int:
        """The steps of the last run, from the histories: one entry for the start, one for each step."""
        return sum(len(self.store.history(workflow)) - 1 for workflow in self.last)

    def _start(self) -> str:
        self._issue += 1
        event = scripted_workflow("be9c4a11", self._issue, "scripted 3 1 0")
        self._engine.start(event)
        return event.workflow

    def _ended(self, workflows: list[str]) -> bool:
        """Check one field of the last workflow, then of all, which is as cheap as the counter of ended bare chains."""
        if not self._client.hget(workflow_key(workflows[-1]), "outcome"):
            return False
        pipe = self._client.pipeline(transaction=False)
        for workflow in workflows:
            pipe.hget(workflow_key(workflow), "outcome")
        return all(pipe.execute())


class Bare:
    def __init__(self, url: str) -> None:
        self._client = Redis.from_url(url)

    def run(self, count: int) -> None:
        from bench.bare import hop_chain

        self._client.delete("bare:done")
        for issue in range(count):
            hop_chain(STEPS, issue)
        pause = _pause_seconds(count)
        stage.wait_until(
            lambda: int(self._client.get("bare:done") or 0) >= count, seconds=120, step_seconds=pause
        )

    def steps(self) -> int:
        """The hops of the last run, from the count of ended chains."""
        return int(self._client.get("bare:done") or 0) * STEPS


def _pause_seconds(count: int) -> float:
    """The polling interval, long for many workflows because polling also costs the engine time."""
    return 0.05 if count > 1 else 0.002


def _rate(side: Fixloop | Bare, count: int) -> float:
    started = time.perf_counter()
    side.run(count)
    elapsed = time.perf_counter() - started
    steps = side.steps()
    if steps != count * STEPS:
        sys.exit(f"{steps} steps were made instead of {count * STEPS}: the comparison is not fair")
    return steps / elapsed


def _measure(ours: Fixloop, bare: Bare, options: argparse.Namespace) -> float:
    _rate(ours, 10)
    _rate(bare, 10)
    pairs = []
    for turn in range(options.pairs):
        order = (ours, bare) if turn % 2 else (bare, ours)
        rates = {side: _rate(side, options.workflows) for side in order}
        pair = rates[bare], rates[ours]
        pairs.append(pair)
        print(f"bare {pair[0]:6.0f} steps/s   fixloop {pair[1]:6.0f} steps/s   {pair[1] / pair[0]:.2f}")
    alone = [[STEPS / _rate(side, 1) * 1000 for side in (bare, ours)] for _ in range(options.alone)]
    for name, times in zip(("bare", "fixloop"), zip(*alone, strict=True), strict=False):
        p50, p99 = (stage.percentile(times, share) for share in (0.5, 0.99))
        print(f"one workflow alone, {name}: p50 {p50:.0f} ms, p99 {p99:.0f} ms")
    ratios = sorted(fixloop / baseline for baseline, fixloop in pairs)
    print(f"{len(pairs)} pairs of {options.workflows} workflows, ratios {ratios[0]:.2f}-{ratios[-1]:.2f}")
    return statistics.median(ratios)


def _print_cpu(url: str, workers: tuple[int, int], count: int) -> None:
    info: Any = Redis.from_url(url).info("server")
    others = {"sender": os.getpid(), "Redis": int(info["process_id"])}
    spent: list[dict[str, float]] = []
    sides: tuple[Bare | Fixloop, ...] = (Bare(url), Fixloop(url, first=FURTHER))
    for side, worker in zip(sides, workers, strict=True):
        before = cpu_by_role(worker, others)
        side.run(count)
        after = cpu_by_role(worker, others)
        spent.append({name: (after[name] - before.get(name, 0.0)) / count / STEPS for name in after})
    print("CPU per step, ms               bare  fixloop")
    for name in sorted({**spent[0], **spent[1]}):
        shown = (f"{each[name] * 1000:8.2f}" if name in each else " " * 8 for each in spent)
        print(f"  {name:<26} {' '.join(shown)}")


def _print_waits(count: int, goes_on: bool) -> None:
    """Print how long after their start `count` workflows finished their first and last steps."""
    with stage.redis_server() as url:
        environment = stage.scripted_environment(url) | {"FIXLOOP_GO_ON": str(int(goes_on))}
        with stage.background(stage.fixloop_worker(), environment):
            ours = Fixloop(url)
            ours.run(10)
            ours.run(count)
            histories = [ours.store.history(workflow) for workflow in ours.last]
    print(f"{count} at once, " + ("going on" if goes_on else "each step by the broker"))
    for name, number in (("first", 1), ("last", -1)):
        waits = [_timestamp(history[number]) - _timestamp(history[0]) for history in histories]
        p50, p99 = (stage.percentile(waits, share) for share in (0.5, 0.99))
        print(f"  {name} step: p50 {p50:.1f} s, p99 {p99:.1f} s")


def _timestamp(entry: Entry) -> float:
    return datetime.fromisoformat(entry.body["at"]).timestamp()


def _print_pieces(url: str, count: int) -> None:
    """Print the CPU time of each piece of code in work processes, per step; timing slows them down."""
    Fixloop(url, first=2 * FURTHER).run(count)
    print("inside the work processes, CPU per step, ms (timed, so in all somewhat more)")
    pieces = told_pieces(Redis.from_url(url))
    if not pieces:
        raise SystemExit("no process told of its pieces: bench/pieces.py times a function that is gone")
    for name, spent in sorted(pieces.items(), key=lambda each: -each[1]):
        print(f"  {name:<26} {spent / count / STEPS * 1000:8.2f}")


if __name__ == "__main__":
    main()
