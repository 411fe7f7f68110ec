"""One supervised process: starts it, reads its output, and restarts it when it dies, with the reason for its death.

The kernel does not report that it killed a process for lack of memory, but it counts such kills. The count of the
worker's own control group is certain; that of the machine may concern other processes.
"""

import logging
import os
import re
import select
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from fixloop.machine.health import Part
from fixloop.machine.owner import VARIABLE, identity
from fixloop.profile_table import work_queues
from workers.processes.lifeline import LIFELINE, PRESENCE
from workers.processes.start import Given, Main, Running, forked, spawned

log = logging.getLogger("fixloop.supervisor")

BACKOFF_SECONDS: Final = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
STEADY_SECONDS: Final = 30.0
"""After living this long, a process's next death starts the backoff from the beginning."""
SETTLED_SECONDS: Final = 3.0
"""A death sooner after the start of all processes does not count as the step's fault (K40)."""
GONE_SECONDS: Final = 2.0
SHOWN_CHARACTERS: Final = 300


class Kills(NamedTuple):
    """How many processes the kernel killed since the control group, or the machine, started."""

    ours: int = 0
    anybody: int = 0


NONE: Final = Kills()


def kills(root: Path = Path("/")) -> Kills:
    """The kernel's current counts; zeros if it has none."""
    ours = 0
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers in ("", "memory"):
            name = "memory.oom_control" if controllers else "memory.events"
            top = root / "sys/fs/cgroup" / controllers
            # In a container the group's path is the host's, and its files are at the top.
            ours = max(ours, _count(top / path.strip("/") / name), _count(top / name))
    return Kills(ours, _count(root / "proc/vmstat"))


def _count(file: Path) -> int:
    found = re.search(r"^oom_kill (\d{1,18})$", _text(file), re.MULTILINE)
    return int(found[1]) if found else 0


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


class Child:
    """One supervised process."""

    def __init__(self, role: str, options: Mapping[str, Any]) -> None:
        self.part = Part(role, int(options.get("concurrency", 1)))
        """Its state, for the health check."""
        self._reading, self._writing = os.pipe()
        # The reverse pipe: the process and its forks hold it, so its end means that all of them are gone.
        self._present, self._presence = os.pipe()
        os.set_blocking(self._present, False)
        os.set_blocking(self._presence, False)
        variables = {LIFELINE: str(self._reading), PRESENCE: str(self._presence), VARIABLE: identity()}
        self._given = Given(role, options, variables, kept=(self._reading, self._presence))
        self._deaths_in_a_row = 0
        self._due = 0.0
        self._started = 0.0
        self._kills_before = kills()
        self._said: deque[bytes] = deque(maxlen=1)
        self._stderr = -1
        self._passing: threading.Thread | None = None
        self.process: Running | None = None

    def begin(self, main: Main) -> None:
        """Start it for the first time, see `forked`; then call `pass_on`."""
        self._start(partial(forked, main=main))

    def tend(self) -> bool:
        """Start it if it does not run and its backoff is over; True if it has just died."""
        now = time.monotonic()
        if self.process is None:
            if now >= self._due:
                self._start(spawned)
                self.pass_on()
            return False
        code = self.process.poll()
        if code is None:
            with suppress(BlockingIOError):
                lines = os.read(self._present, 65536).split()
                if lines and lines[-1].isdigit():
                    self.part = replace(self.part, serving=int(lines[-1]), heard_at=now)
            return False
        why = reason(code, self._kills_before, kills())
        if code > 0:
            # Its last line, such as the last of a traceback; a killed process could not write one.
            if self._passing is not None:
                # Its forks may live on for a moment and hold the pipe.
                self._passing.join(0.2)
            said = self._said[-1].decode(errors="replace").strip() if self._said else ""
            why += f": {said[:SHOWN_CHARACTERS]}" if said else ""
        self._died(now, why)
        return True

    def _died(self, now: float, why: str) -> None:
        self._deaths_in_a_row = 0 if now - self._started > STEADY_SECONDS else self._deaths_in_a_row
        pause = pause_after(self._deaths_in_a_row)
        log.warning("%s ended (%s); it is started again in %.1f s", self.part.role, why, pause)
        self.part = replace(self.part, deaths=self.part.deaths + 1, last_death=why, heard_at=None)
        self._deaths_in_a_row += 1
        self._due, self.process = now + pause, None

    def _start(self, way: Callable[[Given, int], Running]) -> None:
        self._started, self._kills_before = time.monotonic(), kills()
        self._said.clear()
        try:
            reading, writing = os.pipe()
            try:
                self.process = way(self._given, writing)
            except OSError:
                os.close(reading)
                os.close(writing)
                raise
            os.close(writing)
            self._stderr = reading
        except OSError as error:  # no memory, or no process left
            self._died(self._started, f"it cannot be started: {error.strerror}")

    def pass_on(self) -> None:
        """Copy its stderr in a thread; the last line is part of the reason for its death."""
        stderr = self._stderr

        def pass_lines() -> None:
            with open(stderr, "rb") as lines:
                for line in lines:
                    if line.strip():
                        self._said.append(line)
                    sys.stderr.buffer.write(line)
                    sys.stderr.buffer.flush()

        if self.process is not None:
            self._passing = threading.Thread(target=pass_lines, daemon=True)
            self._passing.start()

    def is_steady(self) -> bool:
        """Whether it runs and has done so for a while."""
        # Called from another thread than `tend`.
        running = self.process
        alive = running is not None and running.poll() is None
        return alive and time.monotonic() - self._started > SETTLED_SECONDS

    def stop(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def cut(self) -> None:
        """Close the lifeline, so that the process and its children end at once; returns when they have."""
        for descriptor in (self._writing, self._reading, self._presence):
            os.close(descriptor)
        deadline = time.monotonic() + GONE_SECONDS
        while select.select([self._present], [], [], max(0.0, deadline - time.monotonic()))[0]:
            if not os.read(self._present, 65536):
                break
        else:
            log.warning("%s still runs %.0f s after its end", self.part.role, GONE_SECONDS)
        os.close(self._present)
        if self._passing is not None:
            self._passing.join(GONE_SECONDS)


def begun(options: Mapping[str, Any], main: Main) -> list[Child]:
    """Fork the processes of one worker, each with `main`. Options: `concurrency` of work, `queue` (a single workflow's
    own; empty for the shared ones), `queues` (of `work_queues`, those it serves; empty: all)."""
    own = str(options.get("queue", ""))
    work = [own] if own else [f"fixloop.{name}" for name in options.get("queues") or work_queues()]
    control = [f"{own}.control"] if own else ["fixloop.control", "celery"]
    children = [
        Child("work", {"queues": work, "concurrency": options.get("concurrency", 1)}),
        Child("control", {"queues": control}),
        Child("sweep", {"queues": [*work, *control], "control": control[0]}),
    ]
    for child in children:
        child.begin(main)
    # After all forks, because it starts a thread, and a process with threads must not fork.
    for child in children:
        child.pass_on()
    return children


def pause_after(deaths: int) -> float:
    """Seconds before the next start, given the number of earlier deaths in a row."""
    return BACKOFF_SECONDS[min(deaths, len(BACKOFF_SECONDS) - 1)]


def reason(code: int, before: Kills = NONE, after: Kills = NONE) -> str:
    """`exit code 1` or `killed by SIGKILL`, from a `Popen.returncode`, and whether memory was short: `before` and
    `after` are the kernel's counts at the start and after the death of the process."""
    if code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    if -code == signal.SIGKILL and after.ours > before.ours:
        name += ", by the kernel because the memory limit was reached"
    elif -code == signal.SIGKILL and after.anybody > before.anybody:
        name += ", probably by the kernel for want of memory"
    return f"killed by {name}"
