"""Sends traces of ended workflows to an OpenTelemetry collector: derived from their histories, each sent once.

Redis stores which were sent, so that another server can continue, and a collector that was away gets all of them later.
"""

import logging
import threading
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import islice
from operator import methodcaller
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

from fixloop import __version__
from fixloop.errors import Damaged, NewerVersion
from fixloop.protocol.tracing import trace_id
from fixloop.serve.background import repeating
from fixloop.serve.follower import Follower
from fixloop.store import keys
from fixloop.store.connection import Connection
from fixloop.store.contract import Store
from fixloop.store.locks import Turns
from fixloop.summary.spans import Span, spans_of

log = logging.getLogger("fixloop.serve")

TICK_SECONDS: Final = 2.0
AGAIN_SECONDS: Final = 30.0
"""The pause after a collector rejected a request."""
AT_ONCE: Final = 50
"""Workflows per request."""
_TURN: Final = "traces"
_SCOPE: Final = InstrumentationScope("fixloop", __version__)


class Collector:
    """An endpoint for OTLP over HTTP."""

    def __init__(self, url: str) -> None:
        """`url` is the collector's, such as http://localhost:4318."""
        endpoint = url if url.endswith("/v1/traces") else f"{url.rstrip('/')}/v1/traces"
        self._exporter = OTLPSpanExporter(endpoint=endpoint, timeout=10)
        self._resource = Resource({"service.name": "fixloop", "service.version": __version__})

    def take(self, traces: Iterable[tuple[str, Iterable[Span]]]) -> bool:
        """Send the spans of workflows by their ids; returns whether the collector accepted them."""
        spans = [
            ReadableSpan(
                span.name,
                context=_context(workflow, span.id),
                parent=_context(workflow, span.parent) if span.parent else None,
                resource=self._resource,
                attributes=span.attributes,
                # In nanoseconds.
                start_time=int(span.start.timestamp() * 1_000_000) * 1000,
                end_time=int(span.end.timestamp() * 1_000_000) * 1000,
                status=Status(StatusCode.ERROR) if span.is_failed else Status(),
                instrumentation_scope=_SCOPE,
            )
            for workflow, found in traces
            for span in found
        ]
        return self._exporter.export(spans) is SpanExportResult.SUCCESS


class Tracer:
    """One thread that looks for ended workflows that were not sent."""

    def __init__(
        self, store: Store, connection: Connection, follower: Follower, collector: Collector
    ) -> None:
        self._store, self._connection, self._follower = store, connection, follower
        self._collector = collector
        self._turns, self._owner = Turns(connection), uuid.uuid4().hex
        self._told: set[str] = set()
        self._rows: object = None
        self._stopping = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Send traces until the end of the block."""
        with repeating("tracer", self.tell, self._stopping):
            yield
        self._turns.end(_TURN)

    def tell(self) -> float:
        """Send the workflows that ended since the first call and were not sent; returns the seconds until the next
        call, AGAIN_SECONDS if the collector rejected them. Raises InfrastructureError."""
        rows = self._follower.rows()
        turn = "" if rows is self._rows else self._turns.take(_TURN, self._owner)
        if not turn:
            return TICK_SECONDS
        key, now = keys.served_key("traced", "since"), f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
        _, kept = self._connection.together(lambda pipe: (pipe.set(key, now, nx=True), pipe.get(key)))
        since = kept.decode()
        if turn == "taken":
            stored = self._connection.call(methodcaller("smembers", keys.TRACED))
            self._told = {each.decode() for each in stored}
        due = (
            workflow
            for workflow, fields in rows.items()
            if fields.get("outcome") and fields.get("updated_at", "") > since and workflow not in self._told
        )
        while batch := list(islice(due, AT_ONCE)):
            traces: list[tuple[str, list[Span]]] = []
            for workflow in batch:
                with suppress(Damaged, NewerVersion):
                    if history := self._store.history(workflow):
                        traces.append((workflow, spans_of(workflow, rows[workflow], history, None)))
            if not self._collector.take(traces):
                log.warning("the collector of traces did not take them; they are sent again")
                return AGAIN_SECONDS
            self._connection.call(methodcaller("sadd", keys.TRACED, *batch))
            self._told.update(batch)
            if self._stopping.is_set() or not self._turns.take(_TURN, self._owner):
                return TICK_SECONDS
        if gone := self._told - rows.keys():
            self._connection.call(lambda client: client.srem(keys.TRACED, *gone))
            self._told -= gone
        self._rows = rows
        return TICK_SECONDS


def _context(workflow: str, span: int) -> SpanContext:
    return SpanContext(trace_id(workflow), span, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
