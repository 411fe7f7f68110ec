"""When a workflow's next deadline is due, and whether its clock runs at all."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from fixloop.protocol.durations import hours_minutes_seconds, minutes_seconds, stamp
from fixloop.protocol.moment import Moment
from fixloop.store.records import Snapshot


def is_away(before: Moment, after: Moment) -> bool:
    """True when no sweep has moved the engine's clock for 5 s (K34): there is no worker to continue."""
    return after.at > before.at and after.clock <= before.clock


def deadline_of(found: Snapshot) -> datetime | None:
    """When the next deadline is due on the wall clock, if the engine keeps running (K34)."""
    if not found.deadlines or found.fields.get("held"):
        return None
    return found.moment.at + timedelta(seconds=min(found.deadlines.values()) - found.moment.clock)


def deadline_line(found: Snapshot, away: bool) -> Iterator[tuple[str, str]]:
    """When the next deadline is due, or how much time is left while clocks are stopped; nothing without one."""
    due = deadline_of(found)
    if due is None:
        return
    left = (due - found.moment.at).total_seconds()
    if away:
        yield "deadline", f"in {minutes_seconds(max(0.0, left))}, but clocks are stopped until a worker runs"
    else:
        yield "deadline", f"{stamp(due)} UTC, {f'in {minutes_seconds(left)}' if left > 0 else 'due'}"


def since(at: datetime, found: Snapshot) -> str:
    """` since` a time, and how long ago that is."""
    waited = max(0.0, (found.moment.at - at).total_seconds())
    return f" since {stamp(at)} UTC ({hours_minutes_seconds(waited)})"
