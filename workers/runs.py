"""What the profiles have in common whose steps are runs of agents (C46, D32): the run, and work others went on from."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from fixloop.errors import FixloopError, UsageError
from fixloop.played import Played
from fixloop.profiles.profile import AnyEvent
from fixloop.profiles.table import profile_in
from workers.crew import crew
from workers.step import Step

__all__ = ["RETRIES", "brought_onto", "heard_of", "run_agent", "settle"]

RETRIES: Final = 2
"""Celery's, of a run with the three attempts that are usual (K5); the state counts them."""
HEARTBEAT_SECONDS: Final = 120.0
END_SECONDS: Final = 5.0
"""How long the end of a run waits for a heartbeat that is being told."""


def run_agent(step: Step, started: AnyEvent) -> Played | None:
    """Say that the ticket's agent begins, and have the crew run it; None when the ticket was withdrawn meanwhile."""
    step.tell(started, "started")
    found = step.store.read(step.holding.ticket.workflow)
    if step.cancelled() or found is None:
        return None
    return crew().play(step, found.snapshot)


@contextmanager
def heard_of(step: Step, heartbeat: AnyEvent, every_seconds: float = HEARTBEAT_SECONDS) -> Iterator[None]:
    """
    As long as the block runs, say again and again that the agent is at it (D34, G18).

    In a thread of its own: neither the work nor the lease waits for a commit.
    """
    over = threading.Event()

    def beat() -> None:
        number = 0
        while not over.wait(every_seconds):
            number += 1
            # What is away now is there at the next beat.
            with suppress(FixloopError):
                step.tell(heartbeat, f"{step.holding.fence}/beat/{number}")

    thread = threading.Thread(target=beat, name="fixloop-agent", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(END_SECONDS)


def brought_onto(step: Step, event: Any, failed: Callable[[str], AnyEvent]) -> AnyEvent:
    """
    A result whose agent began from a commit that others went on from, brought onto theirs.

    Args:
        failed: the event where both changed the same lines.
    """
    found = step.store.read(step.holding.ticket.workflow)
    state = profile_in(found.snapshot).load(found.snapshot) if found is not None else step.holding.state
    try:
        brought = crew().bring_onto(step, state, event.base, event.tip)
    except UsageError as conflict:
        return failed(str(conflict))
    changed: AnyEvent = event.model_copy(update=brought._asdict())
    return changed


def settle(step: Step, state: Any) -> None:
    """The branch with the work so far."""
    crew().settle(step, state)
