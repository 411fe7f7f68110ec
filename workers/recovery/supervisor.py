"""The supervisor: restarts its processes when they die, and logs why (docs/decisions/0003)."""

import logging
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fixloop.errors import InfrastructureError
from fixloop.machine.health import Health, forget, note
from fixloop.machine.owner import identity
from fixloop.servers.redis_url import shown_url
from fixloop.servers.settings import load_settings, named_urls
from fixloop.store.redis_store import RedisStore
from workers.processes.child import Child
from workers.processes.start import Stop
from workers.recovery.cleanup import tidy, tidy_for_ever
from workers.recovery.release import release_dead, release_for_ever

log = logging.getLogger("fixloop.supervisor")

DRAIN_SECONDS: Final = 6.0
"""How long a running step may take to finish before it is killed and offered again."""
POLL_SECONDS: Final = 0.2
NOTE_SECONDS: Final = 1.0


def supervise(children: Sequence[Child], own: str, stop: Stop) -> int:
    """Keep a worker's processes running until told to stop, then drain. `own` is the queue of a single workflow."""
    stopped, hastened = stop
    is_steady = next(child for child in children if child.part.role == "work").is_steady
    for target, arguments in ((release_for_ever, (stopped, is_steady)), (tidy_for_ever, (stopped,))):
        threading.Thread(target=target, args=arguments, daemon=True).start()
    notes = _HealthNotes(own)
    while not stopped.wait(POLL_SECONDS):
        for child in children:
            child.tend()
        notes.note(children)
    notes.note(children, stopping=True)
    # A single workflow's worker is stopped when nothing is left to do, or by a person who does not want to wait.
    deadline = time.monotonic() + (0.0 if own else DRAIN_SECONDS)
    for child in children:
        child.stop(signal.SIGTERM)
    while time.monotonic() < deadline and not all(child.ended() for child in children):
        if hastened.wait(0.05):
            break
    for child in children:
        child.stop(signal.SIGKILL)
        child.cut()
    try:
        # With a store that does not retry, because somebody waits for the end.
        release_dead(RedisStore(named_urls().state), identity(), poison=False)
    except InfrastructureError as error:
        log.warning("%s", error)
    tidy()
    notes.end()
    return 0


class _HealthNotes:
    """Writes the health of the processes to a file once a second."""

    def __init__(self, queue: str) -> None:
        self._cache = load_settings().cache_dir
        self._known = Health(identity(), shown_url(named_urls().state), queue)
        self._failed = False

    def note(self, children: Sequence[Child], *, stopping: bool = False) -> None:
        now = time.monotonic()
        if now - self._known.at < NOTE_SECONDS and not stopping:
            return
        parts = tuple(child.part for child in children)
        self._known = replace(self._known, at=now, stopping=stopping, parts=parts)
        try:
            note(self._cache, self._known)
            self._failed = False
        except OSError as error:
            if not self._failed:
                log.warning("the health check will fail: %s cannot be written: %s", self._cache, error)
            self._failed = True

    def end(self) -> None:
        forget(self._cache, self._known.owner)
