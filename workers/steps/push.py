"""The step `push`: the branch of a workflow that went well goes to the URL its repository was given by."""

from collections.abc import Callable

from fixloop.engine.profile import AnyEvent
from fixloop.errors import UsageError
from workers.steps.crew import crew
from workers.steps.step import Step
from workers.steps.step_handlers import Failure


def pushed(step: Step, told: Callable[..., AnyEvent]) -> AnyEvent:
    """
    Push it: one attempt; what is refused is not tried again.

    Args:
        told: the profile's event for what comes of it.
    """
    attempt = step.holding.ticket.attempt
    try:
        return told(branch=crew().push(step), attempt=attempt)
    except UsageError as refused:
        return told(attempt=attempt, error=str(refused), fatal=True)


def not_pushed(step: Step, why: Failure, told: Callable[..., AnyEvent]) -> AnyEvent:
    """The server is away, or worse."""
    return told(attempt=step.holding.ticket.attempt, error=why.error, fatal=why.is_final)
