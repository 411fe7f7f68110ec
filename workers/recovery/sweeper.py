"""The sweeper: hands out near deadlines and lost hints, and advances the engine's clock.

A sweep costs O(due). One sweeper at a time has a shard; each sweep is one script, so two at once do no harm.
"""

import logging
import signal
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, Final

from kombu.exceptions import OperationalError

from fixloop.errors import Damaged, FixloopError, ProtocolError
from fixloop.machine.owner import identity
from fixloop.servers.broker_url import PRIORITY_STEPS
from fixloop.store.contract import Store
from fixloop.store.keys import SHARDS, issue_of
from fixloop.store.limits import HORIZON_SECONDS, SHARD_LEASE_SECONDS
from fixloop.store.records import Lane, Swept
from workers.app import app
from workers.celery_fast.queue_lengths import lengths
from workers.log_once import say_once
from workers.process import process
from workers.processes.lifeline import attach, beat
from workers.recovery.named_files import Redrawing
from workers.steps.hints import hint_again

log = logging.getLogger("fixloop.sweeper")

PERIOD_SECONDS: Final = 0.5
OUTSTANDING: Final = 200
"""The most deadlines that are handed out and not due yet; more would only fill a worker's memory."""


class Sweeper:
    """Sweeps all shards once per call of `sweep`."""

    def __init__(self, store: Store, queues: Iterable[str], control: str) -> None:
        """Sweeps nothing yet; `queues` are those its worker serves. Deadlines of all workflows go to the queue
        `control` of its own control process, because the one that serves a workflow's own queue may be gone."""
        self._store = store
        self._queues = tuple(queues)
        self._control = control
        self._owner = identity()
        # All lanes until a dead sweeper's lease on the shards has run out; then those where tickets wait.
        everywhere = {Lane(queue, step) for queue in self._queues for step in PRIORITY_STEPS}
        self._lanes: dict[int, Collection[Lane]] = dict.fromkeys(range(SHARDS), everywhere)
        self._until = time.monotonic() + SHARD_LEASE_SECONDS + PERIOD_SECONDS
        self._handed_out: list[float] = []
        self._data = ""
        self._sweepers: Sequence[tuple[str, str]] = ()

    def sweep(self) -> None:
        self.notice_loss()
        control = [Lane(self._control, step) for step in PRIORITY_STEPS]
        sizes = lengths({*control, *chain.from_iterable(self._lanes.values())})
        waiting, now = sum(sizes[lane] for lane in control), time.monotonic()
        self._handed_out = [until for until in self._handed_out if until > now]
        # A limit per shard, so that none starves; lower while the control process still has earlier ones to do.
        most = max(1, (OUTSTANDING - waiting - len(self._handed_out)) // SHARDS)
        empty = sorted(lane for lane, size in sizes.items() if size == 0)
        swept, is_new, others = {}, time.monotonic() < self._until, self.swept_by_others()
        sweep_shard = partial(self._store.sweep, owner=self._owner, horizon_seconds=HORIZON_SECONDS)
        for shard in range(SHARDS):
            if shard in others:
                continue
            try:
                swept[shard] = sweep_shard(shard, most_due=most, empty_lanes=empty)
            except ProtocolError as error:
                # The shard's shared keys are damaged; the clocks of the other shards go on.
                say_once(log, f"shard {shard} is not swept: {error}")
        self._lanes.update((n, found.lanes) for n, found in swept.items() if found.mine or not is_new)
        self._lanes.update((n, ()) for n in others if not is_new)
        self._send_out(swept.values())

    def swept_by_others(self) -> set[int]:
        """The shards that another sweeper has swept since the last call: asking for them would cost each worker more
        than its steps do."""
        before = self._sweepers
        with suppress(ProtocolError):
            self._sweepers = self._store.sweepers()
        pairs = enumerate(zip(before, self._sweepers, strict=False))
        return {shard for shard, (was, now) in pairs if now[0] not in ("", self._owner) and was != now}

    def notice_loss(self) -> None:
        """Log that Redis lost its data; with an empty Redis nothing else would fail."""
        before, self._data = self._data, self._store.data_id()
        if before not in ("", self._data):
            log.error(
                "Redis lost its data, or another one took its place: the workflows that were under way are gone; "
                "restore its backup, or hand them in again"
            )

    def _send_out(self, swept: Iterable[Swept]) -> None:
        gap = 0.0
        for shard in swept:
            gap = max(gap, shard.gap_seconds)
            for workflow in shard.damaged:
                say_once(log, str(Damaged(workflow, "what waits of it cannot be handed out")))
            for due in shard.deadlines:
                rest_seconds = max(0.0, due.clock - shard.moment.clock)
                if rest_seconds:
                    self._handed_out.append(time.monotonic() + rest_seconds)
                workflow, name = due.workflow, "fixloop.validation.deadline"
                told = {"workflow": workflow, "name": due.name, "due": due.clock, "issue": issue_of(workflow)}
                # A task with the remaining time as its countdown, strictly after the instant (A58).
                app.send_task(name, kwargs=told, queue=self._control, countdown=rest_seconds + 0.01)
            # A ticket whose delay is over was hinted with a countdown when it was made. If that hint was lost, the
            # ticket is soon among the unheard ones.
            for ticket in (*shard.lapsed, *shard.unheard):
                hint_again(self._store, ticket)
        if gap:
            log.warning("the engine was away for %.1f s; its clocks stood still", gap)


def sweep(options: Mapping[str, Any]) -> int:
    """Sweep every PERIOD_SECONDS. Options: `queues` and `control`, see `Sweeper`."""
    attach()
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    sweeper = Sweeper(process().store, options["queues"], options["control"])
    redrawing = Redrawing(process().store)
    while True:
        try:
            sweeper.sweep()
            beat()
            redrawing.look()
        except (FixloopError, OperationalError) as error:
            log.warning("sweep: %s", error)
        if stopped.wait(PERIOD_SECONDS):
            return 0
