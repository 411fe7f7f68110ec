"""`/metrics` for Prometheus, computed from Redis when it is asked for, and whether this process and Redis answer."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Final, cast

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from fixloop.serve import access
from fixloop.serve.problems import Problem, require
from fixloop.serve.requests import Hooked, Known, Serving
from fixloop.serve.service import Figures

TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_HISTOGRAMS: Final = {
    "iterations_to_pass": ("specialist", "In which run a specialist passed."),
    "fix_seconds": ("agent", "From a request to its fix."),
    "decision_seconds": ("reason", "From an escalation to its answer."),
    "workflow_seconds": ("outcome", "From the start of a workflow to its end."),
}
router = APIRouter(include_in_schema=False)


@router.get("/healthz")
def healthz() -> Response:
    """This process answers."""
    return PlainTextResponse("ok\n")


@router.get("/readyz")
def readyz(service: Serving) -> Response:
    """Redis answers, and the lists are read. A Problem says what does not."""
    service.ping()
    service.follower.rows()
    return PlainTextResponse("ok\n")


@router.get("/metrics")
def metrics(caller: Known, service: Serving, hooks: Hooked) -> Response:
    """The figures, of all projects: a caller who is for some of them gets none."""
    require(caller, access.READ)
    if not caller.covers(()):
        raise Problem("not-allowed", "the figures are of all projects, and this token is for some")
    failures = {
        (each.id,): hooks.webhooks.standing(each.id).failures
        for each in hooks.webhooks.all()
        if each.kind == "out"
    }
    told = gauge("webhook_failures", "Deliveries that failed in a row, by endpoint.", ("webhook",), failures)
    return Response(exposition([*families(service.figures()), told]), media_type=TYPE)


def exposition(found: Iterable[Metric]) -> bytes:
    """The text format of Prometheus."""
    return generate_latest(cast(Collector, SimpleNamespace(collect=lambda: found)))


def families(figures: Figures) -> Iterator[Metric]:
    """The metrics."""
    states = Counter((row.document["profile"], row.state) for row in figures.workflows)
    told = "Workflows by profile and state: whose turn it is, paused, damaged, or how they ended."
    yield gauge("workflows", told, ("profile", "state"), states)
    steps = {
        (each.queue, state): getattr(each, state) for each in figures.queues for state in ("ready", "claimed")
    }
    yield gauge("steps", "Steps that a worker could take now, and those at work.", ("queue", "state"), steps)
    waits = {(each.queue,): each.oldest_seconds for each in figures.queues}
    told = "How long the oldest step that is ready has waited."
    yield gauge("oldest_ready_seconds", told, ("queue",), waits)
    open_ = [item for item in figures.waiting if item["escalation_id"]]
    asked = Counter((item["waits_for"], item["reason"]) for item in open_)
    told = "Escalations and questions that a person has not answered."
    yield gauge("escalations_open", told, ("waits_for", "reason"), asked)
    now = datetime.now(UTC)
    ages = [(now - datetime.fromisoformat(item["since"])).total_seconds() for item in open_]
    oldest = max(ages, default=0.0)
    held = sum(bool(item.get("findings")) for item in figures.waiting)
    for name, told, value in (
        ("escalation_oldest_seconds", "How long the oldest of them is open.", oldest),
        ("integrity_holds_open", "Runs that passed and are held for a person.", held),
        ("clock_runs", "1 while a worker's sweeper keeps the clocks; 0: nobody sweeps.", not figures.is_away),
        ("redis_memory_used_bytes", "What Redis has taken.", figures.memory_bytes[0]),
        ("redis_memory_max_bytes", "What Redis may take; 0: it has no limit.", figures.memory_bytes[1]),
        ("histories_unread", "Workflows whose changes are not in the histograms yet.", figures.unread),
    ):
        yield gauge(name, told, (), {(): value})
    rejected = CounterMetricFamily("fixloop_rejected_messages", "Broker messages that no worker could take.")
    rejected.add_metric([], figures.rejected)
    yield rejected
    holds = CounterMetricFamily("fixloop_integrity_holds", "How often a rule held a run.", labels=["rule"])
    for rule, count in sorted(figures.times.holds.items()):
        holds.add_metric([rule], count)
    yield holds
    for kind, (label, told) in _HISTOGRAMS.items():
        family = HistogramMetricFamily(f"fixloop_{kind}", told, labels=[label])
        for (what, which), histogram in sorted(figures.times.histograms.items()):
            if what == kind:
                family.add_metric([which], histogram.buckets(), histogram.sum)
        yield family


def gauge(name: str, told: str, labels: Sequence[str], values: Mapping[Any, float]) -> GaugeMetricFamily:
    """A metric family; the keys of `values` are the values of its labels, a tuple for several."""
    family = GaugeMetricFamily(f"fixloop_{name}", told, labels=labels)
    for each, value in sorted(values.items()):
        family.add_metric(each, float(value))
    return family
