"""A workflow as a trace: the whole, each phase, and in it each run, each fix and each wait for a person, with true
times.

Attribute names are OpenTelemetry's semantic conventions for CI/CD if there are any, else `fixloop.*`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from fixloop.protocol.event import Moment
from fixloop.protocol.tracing import span_id
from fixloop.store.records import Entry
from fixloop.summary.history import Recorded, recorded
from fixloop.summary.timeline import Activity, Interval, intervals

Attributes = Mapping[str, str | int | bool]
_RESULTS: Final = {"success": "success", "passed": "success", "failed": "failure", "error": "error"}
"""fixloop's results → the conventions'; others are used unchanged."""
_FIX_ATTEMPTS: Final = ("fix-failed", "answer-rejected")


class Span(NamedTuple):
    """A stretch of a trace."""

    id: int
    parent: int
    """0: it is the whole."""
    name: str
    start: datetime
    end: datetime
    attributes: Attributes
    is_failed: bool = False


def spans_of(
    workflow: str, fields: Mapping[str, str], history: Sequence[Entry], now: Moment | None
) -> list[Span]:
    """
    The spans of a workflow, the whole first.

    Args:
        fields: its plain fields.
        now: the end of the trace; None if the workflow has ended.
    """
    entries = recorded(history)
    began, ended = entries[0].at, now.at if now is not None else entries[-1].at
    root = span_id(workflow, "workflow")
    outcome = fields.get("outcome", "")
    project, issue, number = workflow.split("-")
    whole: dict[str, str | int | bool] = {
        "cicd.pipeline.name": fields.get("project") or project,
        "cicd.pipeline.run.id": workflow,
        "fixloop.issue": int(issue),
        "fixloop.number": int(number),
        "fixloop.name": fields.get("name", ""),
    }
    if outcome:
        whole |= {"cicd.pipeline.result": _RESULTS.get(outcome, outcome), "fixloop.outcome": outcome}
    if tree := fields.get("tree"):
        whole["fixloop.tree"] = tree
    if tip := next((str(entry.event["tip"]) for entry in entries if entry.event.get("tip")), ""):
        whole["vcs.ref.head.revision"] = tip
    found = [Span(root, 0, f"validate #{issue}", began, ended, whole, outcome in ("aborted", "cancelled"))]
    if entries[0].kind != "workflow-started":
        # The steps of other profiles are concurrent runs of agents.
        return found
    parts = [each for each in intervals(entries, now) if each.activity is not Activity.ENGINE]
    for specialist in dict.fromkeys(part.specialist for part in parts if part.specialist):
        own = [part for part in parts if part.specialist == specialist]
        told = {"cicd.pipeline.task.name": specialist}
        phase = span_id(workflow, "phase", specialist)
        found.append(Span(phase, root, specialist, own[0].start, own[-1].end, told))
        found += _parts(workflow, phase, own, entries)
    return found


def _parts(workflow: str, phase: int, own: Iterable[Interval], entries: Sequence[Recorded]) -> Iterable[Span]:
    attempts: Counter[int] = Counter()
    asked: Counter[str] = Counter()
    iteration = 1
    for part in own:
        last = entries[part.last] if part.last < len(entries) else None
        run, told = last.run if last is not None else None, {"cicd.pipeline.task.name": part.specialist}
        key: tuple[str | int, ...]
        result = ""
        if part.activity is Activity.CHECKS:
            step = run.step if run is not None else "validate" if iteration == 1 else "recheck"
            iteration, attempt = (run.iteration, run.attempt) if run is not None else (iteration, 0)
            key, result = (step, part.specialist, iteration, attempt), run.outcome if run is not None else ""
            name = f"{'confirm' if step == 'confirm' else 'check'} {part.specialist} {iteration}"
        elif part.activity is Activity.AGENT:
            attempts[iteration] += 1
            key = ("fix", part.specialist, iteration, attempts[iteration])
            kind = "" if last is None else last.kind
            name = f"fix {part.specialist} {iteration}"
            result = "success" if kind == "fix-completed" else kind
            if last is not None and (by := last.event.get("completion", last.event).get("by")):
                told |= {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": str(by)}
            iteration += last is not None and last.kind == "fix-completed"
        else:
            asked[part.specialist] += 1
            key, name = ("person", part.specialist, asked[part.specialist]), f"decide {part.specialist}"
            result = str(last.event.get("decision", last.kind)) if last is not None else ""
        told |= {"cicd.pipeline.task.run.result": _RESULTS.get(result, result)} if result else {}
        facts: Attributes = {**told, "fixloop.iteration": int(key[2]), "fixloop.kind": str(key[0])}
        failed = result in ("failed", "error", *_FIX_ATTEMPTS)
        yield Span(span_id(workflow, *key), phase, name, part.start, part.end, facts, failed)


def as_json(spans: Iterable[Span], trace: int) -> list[dict[str, Any]]:
    """The spans for a person or a program; ids in hex, times in ISO 8601."""
    return [
        {
            "trace_id": f"{trace:032x}",
            "span_id": f"{each.id:016x}",
            "parent_span_id": f"{each.parent:016x}" if each.parent else None,
            "name": each.name,
            "start": each.start.isoformat(),
            "end": each.end.isoformat(),
            "seconds": (each.end - each.start).total_seconds(),
            "failed": each.is_failed,
            "attributes": dict(each.attributes),
        }
        for each in spans
    ]
