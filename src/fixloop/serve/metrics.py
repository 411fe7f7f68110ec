"""`/metrics` for Prometheus, computed from Redis when it is asked for, and whether this process and Redis answer."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Final, NamedTuple

from fastapi import APIRouter, Depends, Response
from fastapi.responses import PlainTextResponse

from fixloop.serve import access
from fixloop.serve.problems import Problem
from fixloop.serve.requests import Known, Serving
from fixloop.serve.service import Service, require

TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
router = APIRouter(include_in_schema=False)


class Metric(NamedTuple):
    """One family of samples."""

    name: str
    kind: str
    help: str
    samples: Sequence[tuple[Mapping[str, str], float]]


@router.get("/healthz")
def healthz() -> Response:
    """This process answers."""
    return PlainTextResponse("ok\n")


def _ready(service: Serving) -> Service:
    service.ping()
    return service


@router.get("/readyz")
def readyz(service: Annotated[Service, Depends(_ready)]) -> Response:
    """Redis answers, and the lists are read. A Problem says what does not."""
    service.follower.rows()
    return PlainTextResponse("ok\n")


@router.get("/metrics")
def metrics(caller: Known, service: Serving) -> Response:
    """The figures, of all projects: a caller who is for some of them gets none."""
    require(caller, access.READ)
    if not caller.covers(()):
        raise Problem("not-allowed", "the figures are of all projects, and this token is for some")
    return Response(exposition(families(service)), media_type=TYPE)


def families(service: Service) -> Iterator[Metric]:
    """What is told. Raises InfrastructureError."""
    figures = service.figures()
    states = Counter((row.document["profile"], row.state) for row in figures.workflows)
    yield _gauge(
        "workflows",
        "Workflows by profile and state: whose turn it is, paused, damaged, or how they ended.",
        [({"profile": profile, "state": state}, count) for (profile, state), count in sorted(states.items())],
    )
    steps = [
        (each.queue, state, getattr(each, state)) for each in figures.queues for state in ("ready", "claimed")
    ]
    yield _gauge(
        "steps",
        "Steps that a worker could take now, and those at work.",
        [({"queue": queue, "state": state}, count) for queue, state, count in steps],
    )
    yield _gauge(
        "oldest_ready_seconds",
        "How long the oldest step that is ready has waited.",
        [({"queue": each.queue}, each.oldest_seconds) for each in figures.queues],
    )
    reasons = Counter(
        (item["waits_for"], item["reason"]) for item in figures.waiting if item["escalation_id"]
    )
    yield _gauge(
        "escalations_open",
        "Escalations and questions that a person has not answered.",
        [({"waits_for": what, "reason": reason}, count) for (what, reason), count in sorted(reasons.items())],
    )
    ages = [figures.age_seconds(item) for item in figures.waiting if item["escalation_id"]]
    yield _gauge(
        "escalation_oldest_seconds", "How long the oldest of them is open.", [({}, max(ages, default=0.0))]
    )
    held = sum(bool(item.get("findings")) for item in figures.waiting)
    yield _gauge("integrity_holds_open", "Runs that passed and are held for a person.", [({}, held)])
    yield _gauge(
        "clock_runs",
        "1 while a worker's sweeper keeps the clocks; 0: nobody sweeps.",
        [({}, not figures.is_away)],
    )
    told = "Broker messages that no worker could take."
    yield Metric("rejected_messages_total", "counter", told, [({}, figures.rejected)])


def exposition(found: Iterable[Metric]) -> str:
    """Prometheus' text."""
    lines = []
    for each in found:
        name = f"fixloop_{each.name}"
        lines += [f"# HELP {name} {each.help}", f"# TYPE {name} {each.kind}"]
        for labels, value in each.samples:
            told = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
            lines.append(f"{name}{{{told}}} {value:g}" if told else f"{name} {float(value):g}")
    return "\n".join(lines) + "\n"


def _gauge(name: str, told: str, samples: Sequence[tuple[Mapping[str, str], float]]) -> Metric:
    return Metric(name, "gauge", told, samples)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
