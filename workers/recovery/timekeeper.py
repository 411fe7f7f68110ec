"""The timekeeper of an embedded deployment: runs the clocks of workflows that wait for outsiders (A56, A66, A73).

To use little memory, it loads neither Celery nor any profile (docs/decisions/0037).
"""

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from subprocess import DEVNULL
from typing import Any, Final

from fixloop.errors import FixloopError
from fixloop.files.locks import Lock
from fixloop.machine.timekeeper import LOCK, Clocks, Kept
from fixloop.servers.embedded import embedded_redis
from fixloop.servers.keeper import password_in
from fixloop.servers.redis_place import SEAL_KEY, Place

log = logging.getLogger("fixloop.timekeeper")

PERIOD_SECONDS: Final = 3.0
"""Less than AWAY_AFTER, so that clocks run; more than a shard's lease, so that a worker's sweeper can take over."""
LIMIT_SECONDS: Final = 120.0
"""How long a `remind` process may run."""
BACKOFF_SECONDS: Final = (5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Pauses before due work that failed is retried; after the last one it is left to a worker."""
_LAUNCH: Final = str(Path(__file__).parents[1] / "launch.py")


def keep(options: Mapping[str, Any]) -> int:
    """Detach from the starter, write this process's id to stdout, and keep time while something waits. Options:
    `project` (the folder with `.fixloop`), `charge` and `user` (open files with the locks of the timekeeper and of the
    user of the embedded Redis)."""
    if os.fork() > 0:
        os._exit(0)
    os.write(1, b"%d" % os.getpid())
    os.dup2(2, 1)
    os.chdir("/")
    place, user = Place(Path(options["project"])), Lock.held(options["user"])
    charge = Lock.held(options["charge"])
    try:
        while charge.is_of(place.data / LOCK):
            with embedded_redis(place.project) as url, closing(Timekeeper(url, place, charge)) as keeper:
                user.close()
                keeper.keep()
                if not charge.is_of(place.data / LOCK):
                    break
                # Later commits find the lock free; earlier ones are seen here.
                charge.close()
                charge = Lock(place.data / LOCK)
                if not keeper.waits() or not charge.take():
                    charge.close()
                    break
    except (FixloopError, OSError) as error:
        log.error("the clocks stand still: %s", error)
        return 1
    return 0


class Timekeeper:
    """Advances the clocks of one embedded Redis."""

    def __init__(self, url: str, place: Place, charge: Lock) -> None:
        self._url = url
        self._place = place
        self._charge = charge
        self._reminding: subprocess.Popen[bytes] | None = None
        self._reminding_until = 0.0
        self._reading, self._lifeline = os.pipe()
        self._said = ""
        self._tried: dict[str, tuple[int, float]] = {}
        """Workflow → how often in a row its due work was tried, and when it may be tried again."""

    def keep(self) -> None:
        """Run rounds until nothing waits, or the project's data was removed or replaced."""
        while self._charge.is_of(self._place.data / LOCK):
            try:
                rest = self._round()
            except (FixloopError, OSError) as error:
                # The `embedded_redis` context in `keep` restarts Redis.
                if str(error) != self._said:
                    self._said = str(error)
                    log.warning("%s", error)
                rest = PERIOD_SECONDS
            if rest is None:
                return
            time.sleep(rest)

    def waits(self) -> bool:
        """Whether any workflow needs the clock."""
        with suppress(FixloopError, OSError), closing(self._clocks()) as clocks:
            return bool(self._worth_trying(clocks.kept()))
        return False

    def close(self) -> None:
        os.close(self._lifeline)
        os.close(self._reading)
        if self._reminding is not None:
            self._reminding.wait()

    def _clocks(self) -> Clocks:
        # A new connection each time, because a restarted Redis has another socket at the same path.
        return Clocks(str(self._place.recorded_socket()), password_in(self._place.data))

    def _round(self) -> float | None:
        """Advance the clocks and have due work done; returns how long to sleep, or None if nothing waits."""
        busy = self._is_reminding()
        with closing(self._clocks()) as clocks:
            kept = self._worth_trying(clocks.kept())
            mine = {shard for shard in {each.shard for each in kept} if clocks.sweep(shard)}
        if not kept and not busy:
            return None
        due = [each.workflow for each in kept if each.shard in mine and (each.due < 0 or each.tells)]
        for workflow in {each.workflow for each in kept} - set(due):
            self._tried.pop(workflow, None)
        ready = [workflow for workflow in due if self._tried.get(workflow, (0, 0.0))[1] <= time.monotonic()]
        if ready and not busy:
            self._remind(ready)
        soonest = min((each.due for each in kept if each.due > 0), default=PERIOD_SECONDS)
        # Strictly after the instant (A58).
        return min(PERIOD_SECONDS, soonest + 0.01) if not self._is_reminding() else min(1.0, PERIOD_SECONDS)

    def _worth_trying(self, kept: Iterable[Kept]) -> list[Kept]:
        """Without workflows whose work failed so often that only a worker, perhaps a newer one, can help."""
        return [each for each in kept if self._tried.get(each.workflow, (0, 0.0))[0] <= len(BACKOFF_SECONDS)]

    def _remind(self, workflows: Sequence[str]) -> None:
        now = time.monotonic()
        for workflow in workflows:
            times = self._tried.get(workflow, (0, 0.0))[0]
            self._tried[workflow] = times + 1, now + BACKOFF_SECONDS[min(times, len(BACKOFF_SECONDS) - 1)]
        words = [sys.executable, _LAUNCH, "remind", json.dumps({"workflows": workflows})]
        env = os.environ | dict.fromkeys(("FIXLOOP_STATE_URL", "FIXLOOP_BROKER_URL"), self._url)
        env["FIXLOOP_SEAL_KEY_FILE"] = str(self._place.data / SEAL_KEY)
        env["FIXLOOP_LIFELINE"] = str(self._reading)
        self._reminding = subprocess.Popen(words, env=env, pass_fds=(self._reading,), stdin=DEVNULL)
        self._reminding_until = now + LIMIT_SECONDS

    def _is_reminding(self) -> bool:
        if self._reminding is None:
            return False
        if self._reminding.poll() is None:
            if time.monotonic() < self._reminding_until:
                return True
            self._reminding.send_signal(signal.SIGKILL)
            self._reminding.wait()
        self._reminding = None
        return False
