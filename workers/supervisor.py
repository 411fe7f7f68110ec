"""The supervisor: N processes for work, one for control, the sweeper; what dies is started again, with its reason.

A second of Redis being away kills Celery workers with a task in flight (CELERY_FACTS, 4), so somebody has to.
Every second it also gives back the tickets of owners that no longer live on this machine.
"""

import json
import logging
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fixloop.errors import InfrastructureError
from fixloop.store.redis_store import RedisStore
from workers import lifeline
from workers.process import process
from workers.reoffering import SETTLED_SECONDS, release_dead
from workers.sweeper import SHARED_QUEUES
from workers.tidying import tidy, tidy_for_ever

__all__ = ["Child", "queues_for", "supervise"]

log = logging.getLogger("fixloop.supervisor")

BACKOFF_SECONDS: Final = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
STEADY_SECONDS: Final = 30.0
"""Alive so long, its next death is a new story: the backoff begins anew."""
DRAIN_SECONDS: Final = 6.0
"""A running step may take so long to finish; then it is killed, and offered again."""
GONE_SECONDS: Final = 2.0
POLL_SECONDS: Final = 0.2


class Child:
    """One supervised process."""

    def __init__(self, role: str, options: Mapping[str, Any]) -> None:
        self.role = role
        self._options = json.dumps(options)
        self._reading, self._writing = os.pipe()
        # The other way round: held by the process and what it forked, so its end says that they are all gone.
        self._present, self._presence = os.pipe()
        self._deaths = 0
        self._due = 0.0
        self._started = 0.0
        self.process: subprocess.Popen[bytes] | None = None

    def tend(self) -> bool:
        """Start it if it does not run and its backoff is over; True when it has just died."""
        now = time.monotonic()
        if self.process is None:
            if now >= self._due:
                self._start(now)
            return False
        code = self.process.poll()
        if code is None:
            return False
        self._deaths = 0 if now - self._started > STEADY_SECONDS else self._deaths
        pause = BACKOFF_SECONDS[min(self._deaths, len(BACKOFF_SECONDS) - 1)]
        log.warning("%s ended (%s); it is started again in %.1f s", self.role, reason(code), pause)
        self._deaths += 1
        self._due, self.process = now + pause, None
        return True

    def _start(self, now: float) -> None:
        environment = os.environ | {lifeline.VARIABLE: str(self._reading)}
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("launch.py")), self.role, self._options],
            env=environment,
            pass_fds=(self._reading, self._presence),
            stdin=subprocess.DEVNULL,
        )
        self._started = now

    def is_steady(self) -> bool:
        """True when it runs and did not start only just now."""
        # Asked by another thread than the one that tends it.
        running = self.process
        alive = running is not None and running.poll() is None
        return alive and time.monotonic() - self._started > SETTLED_SECONDS

    def stop(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def cut(self) -> None:
        """Close the lifeline: the process and its children end at once. Returns when they have."""
        for descriptor in (self._writing, self._reading, self._presence):
            os.close(descriptor)
        if not select.select([self._present], [], [], GONE_SECONDS)[0]:
            log.warning("%s still runs %.0f s after its end", self.role, GONE_SECONDS)
        os.close(self._present)


def reason(code: int) -> str:
    """`exit code 1` or `killed by SIGKILL`."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def queues_for(own: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Queues of work and of control: the shared ones, or a single workflow's own."""
    if own:
        return (own,), (f"{own}.control",)
    work = tuple(name for name in SHARED_QUEUES if name != "fixloop.control")
    return (*work, "fixloop.prepare"), ("fixloop.control", "celery")


def supervise(options: Mapping[str, Any]) -> int:
    """
    Keep the processes of one worker alive until SIGTERM or SIGINT, then drain.

    Options: `concurrency` (processes for work), `queue` (a single workflow's own; empty for the shared ones).
    """
    own = str(options.get("queue", ""))
    work, control = queues_for(own)
    children = [
        Child("sweep", {"queues": [*work, *control], "control": control[0]}),
        Child("control", {"queues": control}),
        Child("work", {"queues": work, "concurrency": options.get("concurrency", 1)}),
    ]
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    for target, arguments in ((_release_for_ever, (stopped, children[-1])), (tidy_for_ever, (stopped,))):
        threading.Thread(target=target, args=arguments, daemon=True).start()
    while not stopped.wait(POLL_SECONDS):
        for child in children:
            child.tend()
    # A single workflow's worker is stopped when nothing is left to do, or by a person who does not want to wait.
    _drain(children, 0.0 if own else DRAIN_SECONDS)
    return 0


def _release_for_ever(stopped: threading.Event, work: Child) -> None:
    while not stopped.wait(1.0):
        try:
            # Only a death among living fellows may be the step's own fault (K40).
            release_dead(process().store, poison=work.is_steady())
        except InfrastructureError as error:
            log.warning("%s", error)
        except Exception:
            # Without this thread a dead process' step would wait for its lease.
            log.exception("the steps of dead processes could not be offered again")


def _drain(children: Sequence[Child], patience_seconds: float) -> None:
    for child in children:
        child.stop(signal.SIGTERM)
    deadline = time.monotonic() + patience_seconds
    while time.monotonic() < deadline and not all(child.ended() for child in children):
        time.sleep(0.05)
    for child in children:
        child.stop(signal.SIGKILL)
        child.cut()
    try:
        # Without the patience of a worker: whoever stops us waits.
        release_dead(RedisStore(os.environ["FIXLOOP_STATE_URL"]), poison=False)
    except InfrastructureError as error:
        log.warning("%s", error)
    tidy()
