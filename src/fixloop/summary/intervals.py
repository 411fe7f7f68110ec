"""Who was busy when: a history cut into stretches, one after the other and without gaps.

A validation workflow does one thing at a time, so the stretches add up to its whole duration. Reads entries and
times, no clock. What a stretch was is known from what came before it, how it ended from the entry that ends it.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

from fixloop.protocol.messages import Decision
from fixloop.protocol.moment import Moment
from fixloop.protocol.statuses import Status
from fixloop.summary.history import Recorded

#: Wall time and engine time of one machine differ by less; more means that the engine was away (K34).
_AWAY_SECONDS: Final = 10.0


class Activity(StrEnum):
    """What a stretch of time was spent on."""

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
    # Behind a phase that is done comes the next one's run, or a confirmation, which says nothing (K37).
    Status.PASS: Activity.CHECKS,
    Status.COMPLETED: Activity.CHECKS,
}
#: These end an attempt although the same work goes on.
_ATTEMPTS: Final = frozenset({"run-finished", "fix-failed", "answer-rejected", "decision-made"})
#: After these nobody is at work until the workflow goes on.
_ENDS: Final = frozenset(
    {
        "run-finished",
        "fix-completed",
        "fix-failed",
        "answer-rejected",
        "blocker-signalled",
        "report-delivered",
    }
)


class Interval(NamedTuple):
    """A stretch with one activity for one specialist."""

    activity: Activity
    specialist: str
    start: datetime
    end: datetime
    seconds: float
    """Without what the engine was away."""
    away_seconds: float
    first: int
    """The entry it begins with."""
    last: int
    """The entry that ends it; one behind the last entry while it goes on."""


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
    """What goes on after an entry."""
    entry, following = entries[index], entries[index + 1 : index + 2]
    # In a person's pause what had begun is finished, then all wait.
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
    if entry.kind == "manual-fix-done":
        return Activity.CHECKS
    return before
