"""Delivers events to the endpoints of webhooks: at least once, and in order for each workflow.

There is no queue: an endpoint's pending events are those in the histories after its marks. So no event is lost with a
server, and any server continues where another stopped (decision 0055).
"""

import logging
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from standardwebhooks import Webhook

from fixloop.errors import FixloopError, InfrastructureError
from fixloop.protocol.durations import iso_stamp
from fixloop.serve.background import repeating
from fixloop.serve.follower import Follower
from fixloop.serve.published import Published, ended, published
from fixloop.serve.targets import Refused, Targets
from fixloop.store.contract import Store
from fixloop.store.webhooks import Endpoint, Standing, Webhooks

log = logging.getLogger("fixloop.serve")

DELAYS_SECONDS: Final = (5, 300, 1800, 7200, 18_000, 36_000)
"""The pauses after failed deliveries; after the last one delivery stops."""
TICK_SECONDS: Final = 0.5
BATCH_SECONDS: Final = 20.0
"""How long one endpoint is served before its turn is checked again."""
AT_ONCE: Final = 8
"""Endpoints served at once, so that a slow one does not delay others."""
GONE: Final = 410

Fields = Mapping[str, str]


def after(standing: Standing, failure: str, now: datetime, *, is_final: bool = False) -> tuple[Standing, str]:
    """An endpoint's state after a delivery, and why deliveries stopped, empty if they did not; an empty `failure`: it
    succeeded; `is_final`: a retry cannot help."""
    if not failure:
        return Standing(standing.delivered + 1, iso_stamp(now)), ""
    count = standing.failures + 1
    disabled = is_final or count > len(DELAYS_SECONDS)
    due = "" if disabled else iso_stamp(now + timedelta(seconds=DELAYS_SECONDS[count - 1]))
    stands = standing._replace(failures=count, due=due, error=failure)
    tries = "" if is_final else f" {count} times"
    return stands, f"it was refused{tries}: {failure}" if disabled else ""


class _Known(NamedTuple):
    """What a server that has the turn knows about an endpoint."""

    endpoint: Endpoint
    marks: dict[str, str]
    """Workflow → the number of the last delivered entry, when the workflow had last changed (`-`: more has to be
    delivered), and `ended` if its end was delivered."""
    told: Mapping[str, Fields] | None = None
    """The rows for which everything was delivered."""


class Deliverer:
    """One thread looks for pending events; several endpoints are served at the same time."""

    def __init__(
        self,
        store: Store,
        follower: Follower,
        webhooks: Webhooks,
        targets: Targets,
        source: str,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`source` is the server's address, the source of the events."""
        self._store, self._follower, self._webhooks, self._targets = store, follower, webhooks, targets
        self._source, self._now = source, now
        self._owner = uuid.uuid4().hex
        self._known: dict[str, _Known] = {}
        self._at_work: dict[str, Future[None]] = {}
        self._stopping = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Deliver until the end of the block."""
        with ThreadPoolExecutor(AT_ONCE, "webhook") as pool:

            def look() -> float:
                for each in self._webhooks.all():
                    job = self._at_work.get(each.id)
                    if each.kind == "out" and not each.disabled and (job is None or job.done()):
                        self._at_work[each.id] = pool.submit(self._try, each)
                return TICK_SECONDS

            with repeating("deliverer", look, self._stopping):
                yield
            pool.shutdown()
            for id in self._known:
                self._webhooks.turns.end(id)

    def deliver(self, endpoint: Endpoint) -> None:
        """Deliver pending events to one endpoint for BATCH_SECONDS, if this server has the turn and a delivery is due.
        Raises InfrastructureError."""
        rows = self._follower.rows()
        known = self._known.get(endpoint.id)
        if known is not None and known.endpoint == endpoint and known.told is rows:
            return
        standing = before = self._webhooks.standing(endpoint.id)
        if standing.due > iso_stamp(self._now()):
            return
        if not (turn := self._webhooks.turns.take(endpoint.id, self._owner)):
            return
        if known is None or known.endpoint != endpoint or turn == "taken":
            known = _Known(endpoint, self._webhooks.sent(endpoint.id))
        ends, marks, is_whole = self._now() + timedelta(seconds=BATCH_SECONDS), known.marks, True
        for workflow, fields in _pending(endpoint, rows, marks):
            for event, mark in self._events(endpoint, workflow, fields, marks.get(workflow, "")):
                if event is not None:
                    standing, disabled = self._deliver(endpoint, event, standing)
                    if standing.failures:
                        self._webhooks.stand(endpoint.id, standing)
                        if disabled:
                            log.warning("webhook %s is disabled: %s", endpoint.id, disabled)
                            self._webhooks.disable(endpoint.id, disabled)
                        return
                marks[workflow] = mark
                self._webhooks.tell(endpoint.id, {workflow: mark})
            is_mine = self._webhooks.turns.take(endpoint.id, self._owner)
            if not is_mine or self._stopping.is_set() or self._now() > ends:
                is_whole = False
                break
        if standing != before:
            self._webhooks.stand(endpoint.id, standing)
        if gone := [workflow for workflow in marks if workflow not in rows]:
            self._webhooks.tell(endpoint.id, {}, gone)
        left = {each: mark for each, mark in marks.items() if each in rows} if gone else marks
        self._known[endpoint.id] = _Known(endpoint, left, rows if is_whole else None)

    def _events(
        self, endpoint: Endpoint, workflow: str, fields: Fields, mark: str
    ) -> Iterator[tuple[Published | None, str]]:
        """The pending events of a workflow, each with the mark to set; the last one may be a mark without an event."""
        changed = fields.get("updated_at", "")
        start = int(mark.split()[0]) if mark else 0
        try:
            # The last delivered entry is read again: it has the end time of a workflow whose end was not delivered.
            entries = self._store.history(workflow, max(0, start - 1))
        except FixloopError as error:
            if isinstance(error, InfrastructureError):
                raise
            # `audit verify` reports what cannot be read.
            yield None, f"{start} {changed}"
            return
        for entry in entries:
            if entry.seq <= start or (not mark and entry.body["at"] <= endpoint.since):
                continue
            found = [each for each in published(workflow, fields, entry) if _is_wanted(endpoint, each)]
            for event in found:
                yield event, f"{entry.seq if event is found[-1] else entry.seq - 1} -"
        seq, is_over = entries[-1].seq, mark.endswith(" ended")
        if fields.get("outcome") and not is_over:
            event = ended(workflow, fields, entries[-1])
            yield event if _is_wanted(endpoint, event) else None, f"{seq} {changed} ended"
        else:
            yield None, f"{seq} {changed}{' ended' if is_over else ''}"

    def _deliver(self, endpoint: Endpoint, event: Published, standing: Standing) -> tuple[Standing, str]:
        now = self._now()
        body = event.body(self._source)
        signed = [Webhook(secret).sign(event.id, now, body.decode()) for secret in endpoint.good_secrets(now)]
        headers = {
            "content-type": "application/cloudevents+json",
            "user-agent": "fixloop",
            "webhook-id": event.id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": " ".join(signed),
        }
        try:
            status = self._targets.post(endpoint.url, headers, body)
        except Refused as refused:
            return after(standing, str(refused), now, is_final=True)
        except OSError as error:
            return after(standing, f"no answer ({error})", now)
        failure = "" if 200 <= status < 300 else f"it answers {status}"
        return after(standing, failure, now, is_final=status == GONE)

    def _try(self, endpoint: Endpoint) -> None:
        try:
            self.deliver(endpoint)
        except Exception as error:
            self._known.pop(endpoint.id, None)
            if not isinstance(error, InfrastructureError):
                log.exception("webhook %s cannot be delivered to; it is tried again", endpoint.id)


def _is_wanted(endpoint: Endpoint, event: Published) -> bool:
    return not endpoint.types or any(event.type.startswith(each) for each in endpoint.types)


def _pending(
    endpoint: Endpoint, rows: Mapping[str, Fields], marks: Mapping[str, str]
) -> list[tuple[str, Fields]]:
    """Workflows that have changed since their last delivery, the earliest change first."""
    found = []
    for workflow, fields in rows.items():
        changed, mark = fields.get("updated_at", ""), marks.get(workflow)
        is_new = changed > endpoint.since if mark is None else mark.split()[1] != changed
        if is_new and endpoint.covers(workflow):
            found.append((workflow, fields))
    return sorted(found, key=lambda each: each[1].get("updated_at", ""))
