"""The timeline: a history cut into consecutive stretches without gaps, and its bars and marks.

A validation workflow does one thing at a time, so the stretches add up to its whole duration. A stretch's activity
follows from the entries before it, its result from the entry that ends it. Defines what to draw, not where.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

from fixloop.protocol.event import Moment
from fixloop.protocol.messages import Decision
from fixloop.protocol.specialists import Status
from fixloop.summary.history import Recorded
from fixloop.summary.model import Bar, Mark, Phase, one_line

#: Wall time and engine time differ by less on one machine; more means that the engine was away (K34).
_AWAY_SECONDS: Final = 10.0


class Activity(StrEnum):
    """The activity in a stretch of time."""

    CHECKS = "checks"
    AGENT = "agent"
    PERSON = "person"
    ENGINE = "engine"


_BY_STATUS: Final = {
    Status.AWAITING_FIX: Activity.AGENT,
    Status.FIXING: Activity.AGENT,
    Status.IN_PROGRESS: Activity.CHECKS,
    Status.RE_CHECKING: Activity.CHECKS,
    Status.ESCALATED: Activity.PERSON,
    Status.FAIL: Activity.ENGINE,
    # A completed phase is followed by the next one's run, or by a confirmation, which sends no message (K37).
    Status.PASS: Activity.CHECKS,
    Status.COMPLETED: Activity.CHECKS,
}
#: These end an attempt although the same work continues.
_ATTEMPTS: Final = frozenset({"run-finished", "fix-failed", "answer-rejected", "decision-made"})
_FIX_ENDS: Final = {"fix-failed": "failed", "answer-rejected": "rejected", "blocker-signalled": "blocked"}
#: After these no work is done until the workflow continues.
_ENDS: Final = frozenset({"run-finished", "fix-completed", "report-delivered", *_FIX_ENDS})
ERRORS: Final = {
    "timeout-reminder": "reminder",
    "error-notification": "error",
    "protocol-violation": "violation",
}
_MARKS: Final = {"escalation": "escalation", **ERRORS}


class Interval(NamedTuple):
    """A stretch with one activity for one specialist."""

    activity: Activity
    specialist: str
    start: datetime
    end: datetime
    seconds: float
    """Without the time the engine was away."""
    away_seconds: float
    first: int
    """The entry it starts with."""
    last: int
    """The entry that ends it; one after the last entry while it lasts."""


def intervals(entries: Sequence[Recorded], now: Moment | None) -> list[Interval]:
    """The stretches of a whole history, in order; `now` is None for a workflow that has ended."""
    joined: list[Interval] = []
    activity, specialist, interrupted = Activity.ENGINE, "", Activity.ENGINE
    for index, entry in enumerate(entries):
        if entry.kind == "paused":
            interrupted = activity
        activity = _activity(index, entries, interrupted if entry.kind == "continued" else activity)
        if entry.changes:
            specialist = entry.changes[-1].specialist
        following = entries[index + 1] if index + 1 < len(entries) else None
        until = now if following is None else Moment(following.at, following.clock)
        if until is None:
            break
        run = following.run if following is not None else None
        if run is not None:
            specialist = run.specialist
        wall = max(0.0, (until.at - entry.at).total_seconds())
        away = max(0.0, wall - max(0.0, until.clock - entry.clock))
        if away < _AWAY_SECONDS or activity is Activity.PERSON:
            away = 0.0
        end = max(entry.at, until.at)
        stretch = Interval(activity, specialist, entry.at, end, wall - away, away, index, index + 1)
        before = joined[-1] if joined else None
        same = before and (before.activity, before.specialist) == (stretch.activity, stretch.specialist)
        # The entry between them ended nothing: a receipt, a reminder, a note.
        if before and same and entry.kind not in _ATTEMPTS:
            joined[-1] = before._replace(
                end=stretch.end,
                seconds=before.seconds + stretch.seconds,
                away_seconds=before.away_seconds + stretch.away_seconds,
                last=stretch.last,
            )
        else:
            joined.append(stretch)
    return joined


def _activity(index: int, entries: Sequence[Recorded], before: Activity) -> Activity:
    entry, following = entries[index], entries[index + 1 : index + 2]
    # In a person's pause, work in progress is finished, then everything waits.
    if entry.is_kept:
        return Activity.PERSON if entry.kind in _ENDS else before
    if entry.kind == "paused":
        return before if following and following[0].is_kept else Activity.PERSON
    if entry.says("escalation") is not None:
        return Activity.PERSON
    if entry.changes:
        return _BY_STATUS[Status(entry.changes[-1].after)]
    if entry.kind == "decision-made":
        waits = entry.event.get("decision") == Decision.MANUAL_FIX.value
        return Activity.PERSON if waits else Activity.ENGINE
    return Activity.CHECKS if entry.kind == "manual-fix-done" else before


class EndedRun(NamedTuple):
    """The result of a stretch of checks."""

    specialist: str
    number: int
    """The run's number; for a passed confirmation, that of the run it confirms."""
    result: str
    """`passed`, `failed`, `could not run`, `error`, `skipped` or `held`."""
    is_confirmation: bool
    tree: str
    entry: int


def ended_runs(entries: Sequence[Recorded]) -> Iterator[EndedRun]:
    """Every recorded attempt of a specialist, in order."""
    for index, entry in enumerate(entries):
        event = entry.run
        if event is None:
            continue
        effect = entry.effect
        failed = any(change == (event.specialist, Status.FAIL.value) for change in effect.changes)
        confirms = event.step == "confirm"
        # A confirmation that fails is run n+1, unless no run was left for it (K37).
        becomes_run = confirms and effect.says("revalidation-trigger") is not None
        result: str = ("could not run" if event.outcome == "error" else "failed") if failed else event.outcome
        if result == "passed" and effect.says("escalation") is not None:
            result = "held"
        yield EndedRun(event.specialist, event.iteration + becomes_run, result, confirms, event.tree, index)


def bars_of(
    entries: Sequence[Recorded], found: Sequence[Interval], phases: Sequence[Phase]
) -> tuple[Bar, ...]:
    """One bar for each stretch of time, in order."""
    ended = {run.entry: run for run in ended_runs(entries)}
    counts = {(run.specialist, run.number): run.count for phase in phases for run in phase.runs}
    numbers: dict[str, int] = {}
    bars = []
    for interval in found:
        run, number = ended.get(interval.last), numbers.get(interval.specialist, 0)
        following = entries[interval.last] if interval.last < len(entries) else None
        kind, result, count = "engine", "", 0
        if interval.activity is Activity.CHECKS and run is not None:
            kind, result = "confirmation" if run.is_confirmation else "run", run.result
            number = numbers[interval.specialist] = run.number
            count = 0 if result == "passed" else counts.get((run.specialist, number), 0)
        elif interval.activity is Activity.CHECKS:
            kind, result, number = "run", "running" if following is None else "unfinished", number + 1
        elif interval.activity is Activity.AGENT:
            kind, result = "fix", _FIX_ENDS.get(following.kind, "unfinished") if following else "running"
            if following and following.kind == "fix-completed":
                result = "fixed" if following.effect.says("fix-completion") is not None else "rejected"
        elif interval.activity is Activity.PERSON:
            kind, result = "person", "waiting" if following is None else following.kind.replace("-", " ")
            if following is not None and following.kind == "decision-made":
                result = str(following.event.get("decision", "decided"))
        bars.append(Bar(kind=kind, number=number, result=result, count=count, **interval._asdict()))
    return tuple(bars)


def marks_of(entries: Sequence[Recorded], bars: Sequence[Bar], found: Sequence[Interval]) -> tuple[Mark, ...]:
    """Escalations, decisions, reminders, errors and violations, in order."""
    marks, ends = [], [each.last for each in found]
    for index, entry in enumerate(entries):
        # Stretches follow one another without gaps.
        place = bisect_right(ends, index)
        place = place if place < len(found) and found[place].first <= index else len(bars)
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
