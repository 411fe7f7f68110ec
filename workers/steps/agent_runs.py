"""Shared parts of the profiles whose steps are runs of agents (C46, D32): the run, and the steps around it."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from fixloop.engine.profile import Profile, profile_in
from fixloop.errors import FixloopError, UsageError
from fixloop.protocol.agent_events import AgentFailed, BranchPushed, DeliveryFailed, PersonNotified
from fixloop.protocol.event import Event
from fixloop.protocol.ticket import DELIVER, NOTIFY, PUSH, number_of
from fixloop.statefiles.agent_run import Played
from workers.steps.delivery import deliver_letter, pushed
from workers.steps.step import Step, crew
from workers.steps.step_handlers import Failure, StepHandlers, StepKind

RETRIES: Final = 2
"""Celery's retries for a run with the default of three attempts (K5); the state counts the attempts."""
HEARTBEAT_SECONDS: Final = 120.0
END_SECONDS: Final = 5.0
"""How long the end of a run waits for a heartbeat that is being committed."""


def run_agent(step: Step, started: Event) -> Played | None:
    """Commit that the agent starts, and have the crew run it; None if the ticket was withdrawn in the meantime."""
    step.tell(started, "started")
    found = step.store.read(step.holding.ticket.workflow)
    return None if step.cancelled() or found is None else crew().play(step, found.snapshot)


@contextmanager
def heard_of(step: Step, heartbeat: Event, every_seconds: float = HEARTBEAT_SECONDS) -> Iterator[None]:
    """Commit a heartbeat of the agent at intervals while the block runs (D34, G18). A separate thread does it, so that
    neither the work nor the lease waits for a commit."""
    over = threading.Event()

    def beat() -> None:
        number = 0
        while not over.wait(every_seconds):
            number += 1
            # An error is ignored; the next beat tries again.
            with suppress(FixloopError):
                step.tell(heartbeat, f"{step.holding.fence}/beat/{number}")

    thread = threading.Thread(target=beat, name="fixloop-agent", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(END_SECONDS)


def _failure(step: Step, why: Failure) -> Event | None:
    ticket = step.holding.ticket
    if ticket.step == PUSH:
        return BranchPushed(attempt=ticket.attempt, error=why.error, fatal=why.is_final)
    if ticket.step == DELIVER:
        return DeliveryFailed(number=number_of(ticket), error=why.error)
    if ticket.step == NOTIFY:
        return PersonNotified(detail=why.error)
    if not ticket.specialist:
        return None
    return AgentFailed(agent=ticket.specialist, reason=why.error, fatal=why.is_final)


def _rebased(step: Step, event: Any) -> Event:
    """Rebase a result whose base commit has changed in the meantime."""
    ticket = step.holding.ticket
    found = step.store.read(ticket.workflow)
    state = profile_in(found.snapshot).load(found.snapshot) if found is not None else step.holding.state
    try:
        brought = crew().bring_onto(step, state, event.base, event.tip)
    except UsageError as conflict:
        return AgentFailed(agent=ticket.specialist, reason=str(conflict))
    changed: Event = event.model_copy(update=brought._asdict())
    return changed


def step_handlers(
    profile: Profile[Any], work: Callable[[Step], Event | None], further: Mapping[str, StepKind]
) -> StepHandlers:
    """A profile's step handlers: `work` runs an agent, `further` are the profile's own steps."""
    return StepHandlers(
        profile=profile,
        steps={
            "work": StepKind(work, RETRIES),
            DELIVER: StepKind(deliver_letter, RETRIES, speaks=True),
            NOTIFY: StepKind(lambda step: PersonNotified(detail=crew().notify(step)), unfailing=True),
            PUSH: StepKind(lambda step: pushed(step, BranchPushed), RETRIES),
            **further,
        },
        failure=_failure,
        brought=_rebased,
    )
