"""How soon the step of a killed work process starts again: `python -m tests.crash.recovery --kills 50 [--backlog 100]`.

Real workers on a Redis of their own; each kill is a `kill -9` of a process in the middle of its step, at random. With
a backlog, so many workflows at least wait for one of the processes all the time. At the end each history has to be
that of a run that nothing disturbed.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from fixloop.machine.owner import pid_of
from fixloop.protocol.events import WorkflowStarted
from fixloop.testing.rehearsal import undisturbed
from tests.crash.figures import Begun, Report, begun, percentile
from tests.fixtures.deployment import Deployment, deployed
from tests.fixtures.redis_server import RedisServer

P95_SECONDS, WORST_SECONDS = 3.0, 10.0
MOST_INJURIES = 4
"""Of one ticket: the fifth death would be its own fault (K40)."""


class Recovery:
    """A busy deployment and its injuries."""

    def __init__(self, own: Deployment, options: argparse.Namespace) -> None:
        self.took: list[float] = []
        self.started: list[WorkflowStarted] = []
        self._own = own
        self._options = options
        self._random = random.Random(options.seed)
        self._injured: Counter[str] = Counter()
        self._unended: list[str] = []

    def fill(self) -> None:
        """Start workflows until as many wait as should; two more than processes keep these busy."""
        self._unended = [name for name in self._unended if not self._own.at_rest(name)]
        wanted = self._options.backlog + self._options.concurrency + 2
        while len(self._unended) < wanted:
            one = self._own.begin(f"a~{self._options.step} -~{self._options.step}")
            self.started.append(one)
            self._unended.append(one.workflow)

    def kill_one(self) -> None:
        """Kill a process in mid-step; measure until the step starts again."""
        victim = self._victim()
        pause = self._random.uniform(0.0, self._options.step * 0.6)
        time.sleep(max(0.0, victim.at + pause - time.monotonic()))
        if not self._holds(victim):
            return
        self._kill(victim)
        killed = time.monotonic()
        self._injured[victim.ticket] += 1
        again: list[Begun] = []

        def has_begun() -> bool:
            again.extend(b for b in self._begun() if b.ticket == victim.ticket and b.fence > victim.fence)
            return bool(again)

        self._own.until(has_begun, about=victim.ticket.partition(".")[0])
        self.took.append(again[0].at - killed)

    def _kill(self, victim: Begun) -> None:
        """Alone, or together with the process above it."""
        found = self._own.processes("work") if self._options.main else []
        os.kill(found[0].pid if found else victim.pid, signal.SIGKILL)

    def _victim(self) -> Begun:
        found: list[Begun] = []

        def is_there() -> bool:
            recent = [b for b in self._begun() if b.at > time.monotonic() - self._options.step * 0.3]
            found.extend(b for b in recent if self._injured[b.ticket] < MOST_INJURIES and self._holds(b))
            return bool(found)

        self._own.until(is_there)
        return self._random.choice(found)

    def _holds(self, one: Begun) -> bool:
        owner, fence = self._own.store.owners().get(one.ticket, ("", 0))
        return fence == one.fence and pid_of(owner) == one.pid

    def _begun(self) -> list[Begun]:
        return list(begun(self._own.folder / "executions"))


def main() -> int:
    """Measure and print; 1 if a limit is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--backlog", type=int, default=0, help="workflows that wait for a process at least")
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--step", type=float, default=0.5, help="seconds that a step takes")
    parser.add_argument("--main", action="store_true", help="kill the process above it: all that work die")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    server = RedisServer().start()
    try:
        with tempfile.TemporaryDirectory(prefix="fixloop-") as folder:
            return measure(server.url, Path(folder), options)
    finally:
        server.end()


def measure(url: str, folder: Path, options: argparse.Namespace) -> int:
    """Kill, wait for all ends, print."""
    with deployed(url, folder, concurrency=options.concurrency) as own:
        recovery = Recovery(own, options)
        while len(recovery.took) < options.kills:
            recovery.fill()
            recovery.kill_one()
        names = [one.workflow for one in recovery.started]
        own.finished(*names, seconds=600)
        other = [one.workflow for one in recovery.started if own.story(one.workflow) != undisturbed(one)]
    report, took = Report(), recovery.took
    print(f"{len(took)} kills, backlog {options.backlog}: p50 {percentile(took, 50):.2f} s", flush=True)
    report.at_most("resumed, p95", percentile(took, 95), P95_SECONDS)
    report.at_most("resumed, worst", max(took), WORST_SECONDS)
    report.exactly(f"histories of {len(names)} that differ from an undisturbed run", len(other), 0)
    return report.code


if __name__ == "__main__":
    sys.exit(main())
