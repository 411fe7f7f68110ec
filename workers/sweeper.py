"""The sweeper: hands out deadlines that are near and hints that were lost, and lets the engine's clock run.

It costs O(due). Of all sweepers one at a time has a shard; each sweep is one script, so that two at once do no harm.
"""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Final

from kombu.exceptions import OperationalError

from fixloop.errors import FixloopError
from fixloop.owner import identity
from fixloop.protocol.specialists import NAMES
from fixloop.store.contract import Store
from fixloop.store.keys import SHARDS, issue_of
from fixloop.store.records import Due, Swept
from workers.app import app
from workers.following import hint_again

__all__ = ["PERIOD_SECONDS", "SHARED_QUEUES", "Sweeper"]

log = logging.getLogger("fixloop.sweeper")

PERIOD_SECONDS: Final = 0.5
HORIZON_SECONDS: Final = 30.0
OUTSTANDING: Final = 200
"""Countdown tasks handed out at once; more would only wait in a worker's memory."""
SHARED_QUEUES: Final = ("fixloop.control", "fixloop.fix", *(f"fixloop.{name}" for name in NAMES))


class Sweeper:
    """Sweeps all shards once for each `sweep`."""

    def __init__(self, store: Store, queues: Iterable[str]) -> None:
        self._store = store
        self._queues = tuple(queues)
        self._owner = identity()
        self._waiting_in: set[str] = set()
        self._handed_out: dict[tuple[str, str, float], float] = {}

    def sweep(self) -> int:
        """One round over all shards; returns how many messages were sent."""
        empty = _empty({*self._queues, *self._waiting_in})
        self._waiting_in.clear()
        sent = 0
        for shard in range(SHARDS):
            swept = self._store.sweep(
                shard, owner=self._owner, horizon_seconds=HORIZON_SECONDS, empty_queues=empty
            )
            sent += self._pass_on(swept)
        return sent

    def _pass_on(self, swept: Swept) -> int:
        if swept.gap_seconds:
            log.warning("the engine was away for %.1f s; its clocks stood still", swept.gap_seconds)
        self._waiting_in.update(swept.queues)
        sent = sum(self._hand_out(due, swept.moment.clock) for due in swept.deadlines)
        return sent + sum(hint_again(self._store, ticket) for ticket in swept.hints)

    def _hand_out(self, due: Due, clock: float) -> bool:
        """A countdown task with the precise rest; one that is handed out already is left alone."""
        key, now = (due.workflow, due.name, due.clock), time.monotonic()
        self._handed_out = {k: until for k, until in self._handed_out.items() if until > now}
        if key in self._handed_out or len(self._handed_out) >= OUTSTANDING:
            return False
        rest = max(0.0, due.clock - clock)
        self._handed_out[key] = now + rest + 5.0
        app.send_task(
            "fixloop.validation.deadline",
            kwargs={
                "workflow": due.workflow,
                "name": due.name,
                "due": due.clock,
                "issue": issue_of(due.workflow),
            },
            queue=self._control_queue(due.workflow),
            # Strictly after the instant (A58).
            countdown=rest + 0.01,
        )
        return True

    def _control_queue(self, workflow: str) -> str:
        found = self._store.read(workflow)
        own = found.fields.get("queue", "") if found is not None else ""
        return f"{own}.control" if own else "fixloop.control"


def sweep_for_ever(sweeper: Sweeper, stopped: Callable[[float], bool]) -> None:
    """Sweep every PERIOD_SECONDS until `stopped(seconds)`, which waits that long, says so."""
    while not stopped(PERIOD_SECONDS):
        try:
            sweeper.sweep()
        except (FixloopError, OperationalError) as error:
            log.warning("sweep: %s", error)


def _empty(queues: Iterable[str]) -> list[str]:
    """Those of `queues` that hold no message."""
    with app.pool.acquire(block=True) as connection:
        channel = connection.default_channel
        return [name for name in queues if int(channel._size(name)) == 0]
