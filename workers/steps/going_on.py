"""Whether a process goes on with the step that follows the one it has done, instead of hinting it, and with what
(docs/decisions/0050). The store has the other half of the answer: who waits longer than this workflow goes first.
"""

import os
import time
from collections.abc import Callable, Collection
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from fixloop.protocol.ticket import Ticket
from fixloop.store.limits import LEASE_SECONDS
from fixloop.store.records import Claim, GoesOn

GOES_ON: Final = os.environ.get("FIXLOOP_GO_ON", "1") != "0"
GONE_ON: Final = "gone on"
"""What a task returns whose process goes on: it has told itself that the task succeeded."""
MOST_STEPS: Final = 16
MOST_SECONDS: Final = 0.05
"""Of fixloop's own time, without that of checks and fixers: so long, at most, nobody looks at the broker."""


class Following(NamedTuple):
    """A step that is claimed already."""

    signature: dict[str, Any]
    """What the chain has of it."""
    chain: list[dict[str, Any]]
    """What comes after it, as in a message: the next one last."""
    claim: Claim
    state: Any
    taken_at: float

    def is_late(self) -> bool:
        """Whether so much was to be done before it that its lease may be over."""
        return time.monotonic() - self.taken_at > LEASE_SECONDS / 3


class Going:
    """What a process has done since it took a message off the broker, and the step it goes on with."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.following: Following | None = None
        self.present: Following | None = None
        """The step that is being done, where no message brought it."""
        self.steps = 1
        self._clock = clock
        self._began = clock()
        self._worked = 0.0

    def work(self, seconds: float) -> None:
        """So long a check or a fixer took."""
        self._worked += seconds

    def own_seconds(self) -> float:
        return self._clock() - self._began - self._worked

    def take(self, chain: list[dict[str, Any]], claim: Claim, state: Any) -> None:
        """Go on with the next one of `chain`."""
        *rest, signature = chain
        self.following = Following(signature, rest, claim, state, self._clock())

    def next(self) -> Following | None:
        """The step to be done now, if there is one."""
        self.present, self.following = self.following, None
        self.steps += self.present is not None
        return self.present


CURRENT: Final[ContextVar[Going | None]] = ContextVar("going", default=None)
"""Of the process; None where it does not go on. It is no part of a task's request, which Celery copies into retries."""


def may_go_on(
    ticket: Ticket, *, serves: Collection[str], speaks: bool, steps: int, own_seconds: float
) -> GoesOn:
    """Whether a process that serves these queues, and has done so many steps for so long since it looked at the broker,
    may do `ticket` at once. A step that only speaks is done wherever the workflow is, whoever waits for one of its
    kind; a further attempt is Celery's retry."""
    is_due = ticket.delay_seconds <= 0 and ticket.attempt == 1
    if not is_due or steps >= MOST_STEPS or own_seconds >= MOST_SECONDS:
        return False
    if speaks:
        return "past waiting"
    return "first" if ticket.queue in serves else False
