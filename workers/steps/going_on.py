"""Decides whether a process does the next step itself instead of hinting it (docs/decisions/0050). The store decides
the rest: tickets that have waited longer than this workflow go first."""

import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from fixloop.protocol.ticket import Ticket
from fixloop.store.limits import LEASE_SECONDS
from fixloop.store.records import Claim, GoesOn

GOES_ON: Final = os.environ.get("FIXLOOP_GO_ON", "1") != "0"
GONE_ON: Final = "gone on"
"""The result of a task whose process continues with the next step; it has already sent the task's success event."""
MOST_STEPS: Final = 16
MOST_SECONDS: Final = 0.05
"""The most of fixloop's own time, without checks and fixers, that may pass before the broker is read again."""


class Following(NamedTuple):
    """A next step that is already claimed."""

    signature: dict[str, Any]
    """Its signature in the chain."""
    chain: list[dict[str, Any]]
    """The rest of the chain, in message order: the next one is last."""
    claim: Claim
    state: Any
    taken_at: float

    def is_late(self) -> bool:
        """Whether so much time passed before it started that its lease may be over."""
        return time.monotonic() - self.taken_at > LEASE_SECONDS / 3


class Going:
    """The steps that a process has done since its last message from the broker, and the step it continues with."""

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        """`clock` runs only while this process works: on a busy machine, others' work is not its own time."""
        self.following: Following | None = None
        self.present: Following | None = None
        """The current step, if it came without a message."""
        self.steps = 1
        self._clock = clock
        self._began = clock()
        self._worked = 0.0

    @contextmanager
    def working(self) -> Iterator[None]:
        """What this process spends on a check or a fixer is not its own time."""
        began = self._clock()
        yield
        self._worked += self._clock() - began

    def own_seconds(self) -> float:
        return self._clock() - self._began - self._worked

    def take(self, chain: list[dict[str, Any]], claim: Claim, state: Any) -> None:
        """Continue with the next signature of `chain`."""
        *rest, signature = chain
        self.following = Following(signature, rest, claim, state, time.monotonic())

    def next(self) -> Following | None:
        """The step to be done now, if any."""
        self.present, self.following = self.following, None
        self.steps += self.present is not None
        return self.present


CURRENT: Final[ContextVar[Going | None]] = ContextVar("going", default=None)
"""Per process; None if it does not continue. Not kept in a task's request, because Celery copies that into retries."""


def may_go_on(
    ticket: Ticket, *, serves: Collection[str], speaks: bool, steps: int, own_seconds: float
) -> GoesOn:
    """Whether a process may do `ticket` at once, given the queues it serves, and the steps and time since it last read
    from the broker. A step that only sends a message is done on the spot, even if others wait; a further attempt is
    left to Celery's retry."""
    is_due = ticket.delay_seconds <= 0 and ticket.attempt == 1
    if not is_due or steps >= MOST_STEPS or own_seconds >= MOST_SECONDS:
        return False
    if speaks:
        return "past waiting"
    return "first" if ticket.queue in serves else False
