"""Monitoring: how long operations have run (A90), and the main agent's status every two minutes (B30).

A tick is not stored: it is derived from the waiting interval when the log is read (K39). The interval is engine time,
which stands still while the engine is away and while a person has paused the workflow (K34).
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final, NamedTuple

from fixloop.protocol.messages import MAIN_AGENT
from fixloop.protocol.specialists import WITH_MAIN_AGENT, Status
from fixloop.protocol.state import OperationName, State

TICK_SECONDS: Final = 120.0
"""The interval of the checks on the main agent's status (B30)."""


class Look(NamedTuple):
    """A workflow's state after an entry of its history."""

    entry: int
    at: datetime
    clock: float
    status: Status
    """The status of the active specialist."""
    stands: bool = False
    """Whether it was paused by a person, or had ended."""


class Tick(NamedTuple):
    """One check on the main agent."""

    at: datetime
    agent: str
    elapsed_seconds: float
    """Engine time since the failure report."""
    status: Status
    entry: int
    """The last history entry before the check."""


def ticks(looks: Iterable[Look], present: Look) -> Iterator[Tick]:
    """Every check on the main agent from the first entry until the time of `present`, whose status is not used."""
    waited: float | None = None
    for look, following in pairwise((*looks, present)):
        if look.status not in WITH_MAIN_AGENT:
            waited = None
            continue
        waited = 0.0 if waited is None else waited
        if not look.stands:
            until = waited + max(0.0, following.clock - look.clock)
            elapsed = (waited // TICK_SECONDS + 1) * TICK_SECONDS
            while elapsed < until:
                # If the engine was away, wall time advanced more than its clock: a tick is never later than the entry
                # that follows it.
                at = min(look.at + timedelta(seconds=elapsed - waited), following.at)
                yield Tick(at, MAIN_AGENT, elapsed, look.status, look.entry)
                elapsed += TICK_SECONDS
            waited = until


class Running(NamedTuple):
    """A running operation with its limit."""

    name: OperationName
    specialist: str
    iteration: int
    elapsed_seconds: float | None
    """Engine time; None: the work has not started, or has no limit, and only its worker knows its start."""
    limit_seconds: float | None
    reminded: bool = False


def running(state: State, clock: float, deadlines: Mapping[str, float]) -> tuple[Running, ...]:
    """Every running operation, and their iteration (A90); `deadlines` are those in the store."""
    now = state.held.clock if state.held is not None else clock
    operation, found = state.operation, []
    if operation is not None:
        started, limit = operation.started_clock, operation.limit_seconds
        due = deadlines.get(operation.name.value)
        if started is None and due is not None and limit is not None:
            # The claim set the operation's first deadline this far ahead; its start is recorded nowhere else (K34).
            started = due - state.limits.reminds_after(limit)
        found.append(
            Running(
                operation.name,
                operation.specialist,
                operation.iteration,
                now - started if started is not None else None,
                limit,
                operation.reminded_clock is not None,
            )
        )
    if state.iteration_clock is not None:
        since, due = state.iteration_clock, state.iteration_due
        limit = due - since if due is not None else None
        found.append(
            Running(OperationName.ITERATION, state.current, state.active.iteration, now - since, limit)
        )
    return tuple(found)
