"""The cost of 100,000 workflows that wait for a fix: memory of the worker and Redis, sweeper CPU, signal latency.

A worker runs the whole time; Redis has the shipped configuration. A signal is an outside agent's fix. Its latency,
until the start of the step that checks it, is measured alternately with that of a bare Celery task from `delay()` to
its start. Exit code 1 if a limit is not met.
"""

import argparse
import os
import random
import re
import sys
import tempfile
import time
import uuid
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from redis import Redis

from bench import stage
from bench.pieces import cpu_seconds
from fixloop.engine.engine import Engine
from fixloop.machine.owner import identity
from fixloop.machine.process_name import role_of
from fixloop.protocol.events import FixCompleted, RunFinished
from fixloop.protocol.failures import Failure
from fixloop.protocol.state import Completion
from fixloop.protocol.ticket import Ticket
from fixloop.repository.snapshot import Snapshot
from fixloop.store.keys import project_hash, workflow_id
from fixloop.store.redis_store import RedisStore
from fixloop.testing.crew import scripted_crew, scripted_workflow
from fixloop.testing.processes import below

WORKER_MB: Final = 20.0
REDIS_BYTES: Final = 2500
SWEEPER_PERCENT: Final = 2.0
SIGNAL_RATIO: Final = 3.0
SETTLE_SECONDS: Final = 5.0
SCRIPT: Final = "a -"
"""The first run fails, the second passes."""
PROJECTS: Final = 20
_TEMPLATE: Final = Path(__file__).with_name("failure.txt").read_text("utf-8")
_WORDS: Final = (
    "order total price basket customer invoice address payment shipping discount item stock parcel refund "
    "account session token cache index parser reader writer buffer socket handler queue event stream"
)


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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workflows", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 2, help="that make them")
    parser.add_argument("--seconds", type=float, default=30.0, help="for which the sweeper is watched")
    parser.add_argument("--signals", type=int, default=200)
    parser.add_argument("--server", default="", help="the redis-server to use; default: the embedded one's")
    options = parser.parse_args()
    if options.workflows < options.signals:
        parser.error("there are fewer workflows than signals")
    with (
        tempfile.TemporaryDirectory(prefix="fixloop-bench-") as folder,
        stage.redis_server(options.server) as url,
    ):
        executions = Path(folder) / "executions"
        environment = stage.scripted_environment(url, FIXLOOP_EXECUTIONS=str(executions))
        with (
            stage.background(stage.fixloop_worker(), environment) as worker,
            stage.background(stage.BARE_WORKER, environment),
        ):
            limits = _measure(url, worker.pid, executions, options)
    for limit in limits:
        print(limit)
    sys.exit(0 if all(limit.is_met for limit in limits) else 1)


def _measure(url: str, worker: int, executions: Path, options: argparse.Namespace) -> list[Limit]:
    client = Redis.from_url(url)
    signals = _Signals(url, executions)
    # Warm up: modules loaded by the first work are not a cost of waiting.
    waiting = WaitingWorkflows(url)
    for number in range(options.workflows, options.workflows + 20):
        waiting.make(number)
        signals.ours(number)
        signals.bare()
    stage.wait_until(lambda: _sweeper(worker) > 0, seconds=20)
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
        p50, p99 = (stage.percentile(found, share) for share in (0.5, 0.99))
        print(f"{name}: p50 {p50:.2f} ms, p99 {p99:.2f} ms")
    return [
        Limit("the worker's processes grew by", grown, WORKER_MB, "MB"),
        Limit("Redis, each", each, REDIS_BYTES, "bytes"),
        Limit("the sweeper, of a core", swept * 100, SWEEPER_PERCENT, "%"),
        *(
            Limit(f"signal to step, of a bare task, p{share:.0%}", ratio, SIGNAL_RATIO, "times")
            for share in (0.5, 0.99)
            for ratio in [stage.percentile(ours, share) / stage.percentile(bare, share)]
        ),
    ]


class _Signals:
    """Measures the seconds from a call to the start of the requested work."""

    def __init__(self, url: str, executions: Path) -> None:
        from bench.bare import noted

        self._noted = noted.s().set(queue="bare")
        self._client: Any = Redis.from_url(url)
        self._engine = stage.hinting_engine(url, WaitingWorkflows(url).store)
        self._executions = executions

    def bare(self) -> float:
        began = time.monotonic()
        self._noted.delay()
        _, started = self._client.blpop("bare:began", timeout=30)
        return float(started) - began

    def ours(self, number: int) -> float:
        workflow = workflow_of(number)
        completion = Completion(iteration=1, by="agent", fixes=("it",), files=("a.py",), tip="c1", tree="t1")
        event = FixCompleted(specialist="test-runner", completion=completion)
        began = time.monotonic()
        self._engine.apply(workflow, event, operation="fixed")
        stage.wait_until(lambda: self._started(workflow) > 0, seconds=30, step_seconds=0.001)
        return self._started(workflow) - began

    def _started(self, workflow: str) -> float:
        """The time that the step recorded at its start; 0 if it has not started."""
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
    starts = range(0, workflows, share)
    ends = [min(first + share, workflows) for first in starts]
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        list(pool.map(make_all, repeat(url), starts, ends))
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


def make_all(url: str, first: int, end: int) -> None:
    waiting = WaitingWorkflows(url)
    for number in range(first, end):
        waiting.make(number)


def workflow_of(number: int) -> str:
    return workflow_id(project_hash(_project(number)), number // PROJECTS + 1, 1)


class WaitingWorkflows:
    """Creates waiting workflows through the engine, as workers do.

    Each has a different project, hashes and failure, so that data compresses no better than in real use.
    """

    def __init__(self, url: str) -> None:
        self.store = RedisStore(url)
        self._made: list[Ticket] = []
        self._engine = Engine(self.store, lambda ticket, _: self._made.append(ticket))
        self._crew = scripted_crew()
        self._owner = identity()

    def make(self, number: int) -> str:
        chance, workflow = random.Random(number), workflow_of(number)
        commit, tree = f"{chance.getrandbits(160):040x}", f"{chance.getrandbits(160):040x}"
        source = f"/srv/git/{_words(chance, 1)}/{_project(number).rpartition('/')[2]}"
        self.store.use_issue(project_hash(_project(number)), number // PROJECTS + 1)
        gates = self.store.put_artifact(workflow, f"gates of {_project(number)}".encode(), shared=True)
        self._engine.start(
            scripted_workflow(
                project_hash(_project(number)),
                number // PROJECTS + 1,
                SCRIPT,
                project=_project(number),
                fixer="outside",
                configuration=gates,
                snapshot=Snapshot(source=source, commit=commit, tree=tree).model_dump_json(),
                tip=commit,
                tree=tree,
            )
        )
        while self._made:
            self._carry_out(self._made.pop(), chance)
        return workflow

    def _carry_out(self, ticket: Ticket, chance: random.Random) -> None:
        claim = self.store.claim(ticket.id, self._owner, uuid.uuid4().hex)
        if claim.status != "ok" or claim.ticket is None:
            raise RuntimeError(f"{ticket.id} is {claim.status}: somebody else works here")
        holding = self._engine.held(self._engine.profile, claim.ticket, claim, self._owner)
        event = self._crew.carried_out(SimpleNamespace(holding=holding, cancelled=lambda: False))
        assert event is not None, "nobody cancels here"
        if isinstance(event, RunFinished):
            event = event.model_copy(update={"failures": (_failure(chance),)})
        applied = self._engine.finish(holding, event, claim.moment)
        if applied.status != "ok":
            raise RuntimeError(f"{ticket.id} ended as {applied.status}")
        self._made.extend(ticket for ticket in applied.steps if ticket not in self._made)


def _project(number: int) -> str:
    return f"github.com/acme/shop-{number % PROJECTS}"


def _words(chance: random.Random, count: int) -> str:
    return "_".join(chance.choices(_WORDS.split(), k=count))


def _failure(chance: random.Random) -> Failure:
    """A failure of about a kilobyte, in the style of pytest."""
    module, test = _words(chance, 1), _words(chance, 3)
    text = _TEMPLATE.replace("MODULE", module).replace("TEST", test)
    # A number stands for so many words, a run of nines for a number.
    text = re.sub(r"\b[1-3]\b", lambda found: _words(chance, int(found[0])), text)
    text = re.sub(r"\b9+\b|(?<=x7f)9+", lambda found: str(chance.randrange(int(found[0]))), text)
    file = f"tests/test_{module}.py"
    return Failure(
        name=f"{file}::test_{test}",
        file=file,
        line=chance.randrange(10, 400),
        error_type="AssertionError",
        check="test-runner",
        message=text,
    )


if __name__ == "__main__":
    main()
