"""The timeline as bars and marks: what to draw, not where."""

from collections.abc import Sequence
from typing import Final

from fixloop.summary.history import Recorded
from fixloop.summary.intervals import Activity, Interval
from fixloop.summary.model import Bar, Mark, Phase
from fixloop.summary.phases import EndedRun, ended_runs
from fixloop.summary.plain_text import one_line

ERRORS: Final = {
    "timeout-reminder": "reminder",
    "error-notification": "error",
    "protocol-violation": "violation",
}
_MARKS: Final = {"escalation": "escalation", **ERRORS}
_FIX_ENDS: Final = {"fix-failed": "failed", "answer-rejected": "rejected", "blocker-signalled": "blocked"}


def bars_of(
    entries: Sequence[Recorded], found: Sequence[Interval], phases: Sequence[Phase]
) -> tuple[Bar, ...]:
    """One bar for each stretch of time, in order."""
    ended = {run.entry: run for run in ended_runs(entries)}
    counts = {(run.specialist, run.number): run.count for phase in phases for run in phase.runs}
    numbers: dict[str, int] = {}
    bars = []
    for interval in found:
        run = ended.get(interval.last)
        if interval.activity is Activity.CHECKS and run is not None:
            numbers[interval.specialist] = run.number
        bars.append(_bar(interval, run, entries, counts, numbers.get(interval.specialist, 0)))
    return tuple(bars)


def _bar(
    interval: Interval,
    run: EndedRun | None,
    entries: Sequence[Recorded],
    counts: dict[tuple[str, int], int],
    number: int,
) -> Bar:
    following = entries[interval.last] if interval.last < len(entries) else None
    kind, result, count = "engine", "", 0
    if interval.activity is Activity.CHECKS and run is not None:
        kind = "confirmation" if run.is_confirmation else "run"
        result, count = run.result, counts.get((run.specialist, run.number), 0)
        count = 0 if result == "passed" else count
    elif interval.activity is Activity.CHECKS:
        kind, result, number = "run", "running" if following is None else "unfinished", number + 1
    elif interval.activity is Activity.AGENT:
        kind, result = "fix", "unfinished"
        if following is None:
            result = "running"
        elif following.kind == "fix-completed":
            result = "fixed" if following.effect.says("fix-completion") is not None else "rejected"
        else:
            result = _FIX_ENDS.get(following.kind, result)
    elif interval.activity is Activity.PERSON:
        kind, result = "person", "waiting" if following is None else following.kind.replace("-", " ")
        if following is not None and following.kind == "decision-made":
            result = str(following.event.get("decision", "decided"))
    return Bar(
        kind=kind,
        specialist=interval.specialist,
        number=number,
        result=result,
        count=count,
        start=interval.start,
        end=interval.end,
        seconds=interval.seconds,
        away_seconds=interval.away_seconds,
    )


def marks_of(entries: Sequence[Recorded], bars: Sequence[Bar], found: Sequence[Interval]) -> tuple[Mark, ...]:
    """Escalations, decisions, reminders, errors and violations, in order."""
    marks = []
    for index, entry in enumerate(entries):
        place = next((n for n, each in enumerate(found) if each.first <= index < each.last), len(bars))
        told = [
            (_MARKS[message.body.kind], message.specialist, f"{message.message_id}: {message.summary}")
            for message in (said.message for said in entry.lines)
            if message.body.kind in _MARKS
        ]
        if entry.kind in ("decision-made", "cancelled"):
            decided = str(entry.event.get("decision", "cancel"))
            text = f"{decided} by {entry.event.get('by', 'User')} {entry.event.get('reason', '')}"
            before = bars[min(max(place - 1, 0), len(bars) - 1)].specialist if bars else ""
            told.append(("decision", before, text))
        marks += [
            Mark(kind=kind, specialist=specialist, at=entry.at, bar=place, text=one_line(text, 400))
            for kind, specialist, text in told
        ]
    return tuple(marks)
