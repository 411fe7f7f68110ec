"""Leases: one thread in each work process renews the ticket it works on, and learns that it was withdrawn.

A lease lasts 9 s and is renewed every 3 s. A Redis that is away is not a reason to stop: the renewal of the same
fence succeeds later as long as nobody else has claimed.
"""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from fixloop.engine.engine import ProfileHolding
from fixloop.errors import InfrastructureError
from fixloop.store.contract import Store

log = logging.getLogger("fixloop.lease")

# Three beats to a lease of 9 s: one lost beat is noise, two are a pause, three are a lost machine.
BEAT_SECONDS: Final = 3.0


class Lease:
    """The hold on one ticket."""

    def __init__(self, holding: ProfileHolding[Any]) -> None:
        self.holding = holding
        self._withdrawn = threading.Event()
        self.heard_at = time.monotonic()
        """When the state last said that the work may go on."""

    def withdraw(self) -> None:
        self._withdrawn.set()

    def cancelled(self) -> bool:
        """True when the ticket was withdrawn or somebody else has it."""
        return self._withdrawn.is_set()


class Heart:
    """Renews the leases of this process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: dict[str, Lease] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @contextmanager
    def beating(self, lease: Lease) -> Iterator[Lease]:
        """Renew `lease` as long as the block runs."""
        with self._lock:
            self._held[lease.holding.ticket.id] = lease
            if self._thread is None:
                self._thread = threading.Thread(target=self._beat, name="fixloop-heart", daemon=True)
                self._thread.start()
        try:
            yield lease
        finally:
            with self._lock:
                self._held.pop(lease.holding.ticket.id, None)

    def _beat(self) -> None:
        while True:
            time.sleep(BEAT_SECONDS)
            with self._lock:
                leases = list(self._held.values())
            for lease in leases:
                holding = lease.holding
                try:
                    answer = self._store.renew(holding.ticket.id, holding.owner, holding.fence)
                except InfrastructureError:
                    continue
                except Exception:
                    # Without this thread no step of this process could ever commit again.
                    log.exception("the lease of %s could not be renewed", holding.ticket.id)
                    continue
                if answer == "ok":
                    lease.heard_at = time.monotonic()
                else:
                    lease.withdraw()
