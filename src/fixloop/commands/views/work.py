"""What cycles and handoffs have in common where they are shown: who is at work, since when, until when."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from fixloop.commands.screen import called, short
from fixloop.commands.status import deadline_of
from fixloop.protocol.durations import hours_minutes_seconds, minutes_seconds, stamp
from fixloop.store.records import Snapshot

__all__ = ["AtWork", "asked_at", "away_line", "clocks", "deadline_line", "few"]


class AtWork(NamedTuple):
    """An agent of whom something is asked."""

    name: str
    run: int
    command: str
    began: datetime | None
    """When its present run began; None: it has not."""

    def line(self, found: Snapshot) -> str:
        """How its run stands."""
        who = f"{self.name}, run {self.run}"
        if not self.command:
            return f"{who}: asked of somebody outside{', who began' * (self.began is not None)}"
        if self.began is None:
            claimed = any(
                held.status == "claimed" and held.ticket.specialist == self.name for held in found.tickets
            )
            return f"{who}: {'running' if claimed else 'waiting for a worker'}"
        return f"{who}: for {minutes_seconds((found.moment.at - self.began).total_seconds())}"


def clocks(found: Snapshot, state: Any, at_work: Iterable[AtWork], turn: str) -> str:
    """One line of times; `turn` says whose turn it is, or that it is paused."""
    now = state.ended_at or found.moment.at
    parts = [f"elapsed {hours_minutes_seconds((now - state.started_at).total_seconds())}"]
    parts += [each.line(found) for each in at_work]
    due = deadline_of(found)
    if due is not None:
        parts.append(f"deadline in {minutes_seconds((due - found.moment.at).total_seconds())}")
    return " · ".join(parts if state.ended else [*parts, turn])


def deadline_line(found: Snapshot) -> Iterator[tuple[str, str]]:
    """When the next deadline falls due, if there is one."""
    due = deadline_of(found)
    if due is not None:
        left = (due - found.moment.at).total_seconds()
        yield "deadline", f"{stamp(due)} UTC, {f'in {minutes_seconds(left)}' if left > 0 else 'due'}"


def away_line(state: Any) -> tuple[str, str]:
    """That no worker is there to go on."""
    again = f" or `fixloop resume {called(state)}`" if state.queue else ""
    return "engine", f"away: no worker is running; `fixloop worker`{again} goes on"


def asked_at(found: Snapshot, state: Any, agent: str, otherwise: datetime | None) -> datetime:
    """When the clock of an agent's run began; where it has none, `otherwise` or the last change."""
    due, limit = found.deadlines.get(f"run/{agent}"), state.limits.seconds_of(agent)
    if due is None or limit is None:
        last: datetime = state.last_at
        return otherwise if otherwise is not None else last
    return found.moment.at - timedelta(seconds=found.moment.clock - (due - limit))


def few(names: Sequence[str], limit: int = 5) -> str:
    """The first of them on one line, and how many more there are."""
    shown = ", ".join(short(name, 80) for name in names[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown
