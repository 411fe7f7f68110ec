"""A real deployment on a Redis database of its own: supervisor, workers, sweeper, and a client that starts workflows.

Everything it starts carries the name of its folder in the environment, so that what is left of it can be found.
"""

import base64
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import redis

from fixloop.engine.engine import Engine
from fixloop.engine.hints import producer, send_hint
from fixloop.engine.history import said
from fixloop.engine.replay import audit
from fixloop.machine.process_name import role_of
from fixloop.protocol.events import Event, WorkflowStarted
from fixloop.protocol.messages import Message
from fixloop.protocol.outcome import Transition
from fixloop.protocol.state import Limits, State
from fixloop.store.keys import workflow_id
from fixloop.store.redis_store import RedisStore
from fixloop.testing.rehearsal import Answer, Story, told

ROOT: Final = Path(__file__).resolve().parents[2]
PROJECT: Final = "be9c4a11"
PATIENCE_SECONDS: Final = 90.0
"""How long a machine that is busy with other tests may take; what has to be quick is measured."""
_databases: Final = itertools.cycle(range(16))


class Execution(NamedTuple):
    """One time that a step was begun."""

    ticket: str
    fence: int
    step: str


class Process(NamedTuple):
    """One process of the deployment."""

    pid: int
    parent: int
    role: str


class Deployment:
    """What a host runs, and a caller of it."""

    def __init__(
        self,
        url: str,
        folder: Path,
        *,
        concurrency: int = 2,
        queue: str = "",
        broker: str = "",
        within: Sequence[str] = (),
        **environment: str,
    ) -> None:
        """
        Nothing is started yet.

        Args:
            broker: where messages are, if not in the Redis of the state.
            within: a command that runs another one, as `unshare --pid` does.
        """
        self.url = url
        self.broker = broker or url
        self.folder = folder
        self.store = RedisStore(url, patience_seconds=20.0)
        self.supervisor: subprocess.Popen[bytes] | None = None
        self._within = within
        self._options = json.dumps({"concurrency": concurrency, "queue": queue})
        self._environment = {
            "FIXLOOP_BROKER_URL": self.broker,
            "FIXLOOP_STATE_URL": url,
            "FIXLOOP_CREW": "fixloop.testing:scripted_crew",
            "FIXLOOP_EXECUTIONS": str(folder / "executions"),
            "FIXLOOP_CACHE_DIR": str(folder / "cache"),
            "FIXLOOP_LOG_LEVEL": "INFO",
            "FIXLOOP_TASK_EVENTS": "0",
            **environment,
        }
        self.producer = producer(self.broker)
        self._hinted = Engine(
            self.store, lambda ticket, state: send_hint(self.producer, ticket, state.profile)
        )
        self.engine = Engine(self.store)
        self._issues = itertools.count(101)

    # Processes.

    def start(self, *, ready: Iterable[str] = ("work", "control", "sweep")) -> "Deployment":
        """Start a supervisor; return when processes of the `ready` roles run."""
        if self.supervisor is not None:
            self.supervisor.wait(PATIENCE_SECONDS)
        with (self.folder / "log").open("ab") as log:
            self.supervisor = subprocess.Popen(
                [
                    *self._within,
                    sys.executable,
                    str(ROOT / "workers" / "launch.py"),
                    "supervise",
                    self._options,
                ],
                env=os.environ | self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
            )
        wanted = set(ready)
        self.until(lambda: wanted <= {process.role for process in self.processes()})
        return self

    def stop(self) -> None:
        """Drain, as a service manager would."""
        if self.supervisor is not None and self.supervisor.poll() is None:
            self.supervisor.send_signal(signal.SIGTERM)
            self.supervisor.wait(PATIENCE_SECONDS)

    def end(self) -> None:
        """Kill what is left, each process by its pid."""
        if self.supervisor is not None and self.supervisor.poll() is None:
            self.supervisor.kill()
            self.supervisor.wait(PATIENCE_SECONDS)
        for process in self.processes():
            _kill(process.pid)
        self.store.close()
        self.producer.close()

    def processes(self, role: str = "") -> list[Process]:
        """What runs of this deployment; `worker` is a process that does work, `work` the one above it."""
        found = [process for process in map(self._process, _pids()) if process is not None]
        mains = {process.pid for process in found if process.role == "work"}
        named = [p._replace(role="worker") if p.parent in mains else p for p in found]
        return [process for process in named if role in ("", process.role)]

    def kill(self, role: str, number: signal.Signals = signal.SIGKILL) -> list[int]:
        """Signal all processes of a role; their pids."""
        found = [process.pid for process in self.processes(role)]
        for pid in found:
            os.kill(pid, number)
        return found

    def _process(self, pid: int) -> Process | None:
        folder = Path(f"/proc/{pid}")
        try:
            if f"FIXLOOP_EXECUTIONS={self.folder}/".encode() not in (folder / "environ").read_bytes():
                return None
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        role = role_of(pid)
        if not role or fields[0] in "ZX":
            return None
        return Process(pid, int(fields[1]), role)

    # Workflows.

    def begin(self, script: str, *, hinted: bool = True, **further: Any) -> WorkflowStarted:
        """Start a workflow that does what `script` says; a short backoff unless limits are given."""
        issue = further.pop("issue", None) or next(self._issues)
        told_: dict[str, Any] = {
            "workflow": workflow_id(PROJECT, issue, 1),
            "issue": issue,
            "name": script,
            "specialists": ("test-runner",),
            "fixer": "command",
            "tip": "commit-0",
            "tree": "tree-0",
            "limits": Limits(backoff_seconds=0.1),
        }
        event = WorkflowStarted(**{**told_, **further})
        engine = self._hinted if hinted else self.engine
        assert engine.start(event).status == "ok"
        return event

    def answer(self, workflow: str, answers: Sequence[Answer]) -> None:
        """Say each answer as soon as its line is the last one."""
        for number, (to, event) in enumerate(answers):
            self.until(lambda to=to: self.last_line(workflow).startswith(to), about=workflow)  # type: ignore[misc]
            self._hinted.apply(workflow, event, operation=f"answer-{number}")

    def tell(self, workflow: str, event: Event) -> None:
        """Say something from outside, once."""
        self._hinted.apply(workflow, event, operation=event.model_dump_json())

    def last_line(self, workflow: str) -> str:
        lines = self.messages(workflow)
        return lines[-1].message_id if lines else ""

    def messages(self, workflow: str) -> list[Message]:
        return [line.message for line in said(self.store.history(workflow))]

    def state(self, workflow: str) -> State:
        return self.engine.state(workflow)

    def story(self, workflow: str) -> Story:
        """What its history tells; that is whole, and every decision in it can be made again."""
        assert audit(self.store, workflow).problems == ()
        changes = [
            Transition.model_validate(change)
            for entry in self.store.history(workflow)
            for change in entry.body.get("transitions", ())
        ]
        return told(self.messages(workflow), changes, self.state(workflow))

    def events(self, workflow: str) -> list[Mapping[str, Any]]:
        """The events of a history, oldest first."""
        return [entry.body["event"] for entry in self.store.history(workflow)]

    def at_rest(self, workflow: str) -> bool:
        """Ended, or waiting for a person, and nothing is left to do."""
        found = self.store.read(workflow)
        assert found is not None
        done = bool(found.fields.get("outcome")) or bool(found.fields.get("paused"))
        return done and not found.tickets

    def finished(self, *workflows: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Return when all are at rest."""
        waiting = list(workflows)

        def none_waits() -> bool:
            while waiting and self.at_rest(waiting[-1]):
                waiting.pop()
            return not waiting

        self.until(none_waits, seconds=seconds, about=workflows[-1])

    def broker_forgets(self) -> None:
        """Every message that waits is lost, and what Celery knows of those that are worked on."""
        client: Any = redis.Redis.from_url(self.url)
        waiting = [name for name in client.scan_iter("fixloop.*") if client.type(name) == b"list"]
        assert waiting, "no message waits; begin more workflows"
        client.delete(*waiting, "unacked", "unacked_index")
        client.close()

    def broker_holds(self) -> list[str]:
        """The messages that workers have and have not acknowledged, decoded."""
        client: Any = redis.Redis.from_url(self.url)
        stored = [json.loads(value)[0] for value in client.hvals("unacked")]
        client.close()
        return [str(message["headers"]) + _body(message) for message in stored]

    # What was done.

    def executions(self, workflow: str = "") -> list[Execution]:
        """Every time that the crew began a step, in order."""
        path = self.folder / "executions"
        lines = path.read_text().splitlines() if path.exists() else []
        words = [line.split()[:3] for line in lines if line.startswith(workflow)]
        return [Execution(ticket, int(fence), step) for ticket, fence, step in words]

    def deliveries(self) -> list[tuple[str, str]]:
        """Every message a worker took: the ticket and what became of it, from the log."""
        lines = [line.partition(" fixloop.steps: ")[2] for line in self.log().splitlines()]
        pairs = [line.rpartition(" is ")[::2] for line in lines if " is " in line]
        return [(ticket, status) for ticket, status in pairs if "." in ticket]

    def log(self) -> str:
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def owner_pid(self, workflow: str) -> int:
        """The process that works on the workflow; waits until its crew has begun."""
        seen: list[str] = []

        def works() -> bool:
            seen.extend(self._owners(workflow) if self.executions(f"{workflow}.") else ())
            return bool(seen)

        self.until(works, about=workflow)
        return int(seen[0].split("/")[-2])

    def _owners(self, workflow: str) -> list[str]:
        return [owner for ticket, (owner, _) in self.store.owners().items() if ticket.startswith(workflow)]

    def until(
        self, condition: Callable[[], bool], *, seconds: float = PATIENCE_SECONDS, about: str = ""
    ) -> float:
        """Poll; the seconds it took. The log and the workflow are shown when it was in vain."""
        try:
            return wait_until(condition, seconds=seconds)
        except TimeoutError as error:
            shown = str(self.store.read(about)) if about else ""
            pytest.fail(f"{error}\n{shown}\n{self.log()[-6000:]}")


@contextmanager
def deployed(url: str, folder: Path, **options: Any) -> Iterator[Deployment]:
    """A deployment with its processes, on an empty database; none is left at the end."""
    deployment = Deployment(fresh_database(url), folder, **options)
    try:
        yield deployment.start()
        deployment.stop()
        assert deployment.processes() == []
    finally:
        deployment.end()


def wait_until(condition: Callable[[], bool], *, seconds: float) -> float:
    """
    Poll until `condition` holds; the seconds that took.

    Raises:
        TimeoutError: it did not within `seconds`.
    """
    started = time.monotonic()
    while not condition():
        if time.monotonic() - started > seconds:
            raise TimeoutError(f"waited {seconds} s in vain")
        time.sleep(0.03)
    return time.monotonic() - started


def fresh_database(url: str) -> str:
    """The URL of an empty database of this Redis, another one each time."""
    chosen = f"{url}?db={next(_databases)}"
    client = redis.Redis.from_url(chosen)
    client.flushdb()
    client.close()
    return chosen


def _body(message: Mapping[str, Any]) -> str:
    return base64.b64decode(message["body"]).decode()


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
