"""What the workers have to know of a profile: what is done in each of its steps, and what follows (R1, R2)."""

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from fixloop.engine.profile import Profile
from fixloop.protocol.event import Event
from fixloop.secrets.redaction import Redaction
from workers.steps.step import Step

POISONED: Final = 5
"""So many processes died over one step: it is the step's own fault (K40)."""


class Failure(NamedTuple):
    """Why a step could not be done."""

    error: str
    stack_trace: str = ""
    is_final: bool = False
    """To be tried no more."""
    is_undelivered: bool = False
    """The one who should have done it was not reached."""


_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "agent-failed": "reason",
        "answer-invalid": "problem",
        "answer-rejected": "violations",
        "branch-pushed": "error",
        "delivery-failed": "error",
        "fix-failed": "error",
    }
)
"""The events that tell of a failed attempt, and where they say why."""


def failure_in(state: Any, event: Event) -> Failure | None:
    """What an event tells of a failed attempt; None where it was none."""
    field = _REASONS.get(event.kind)
    why = getattr(event, field) if field is not None else ""
    if not why:
        return None
    error = why if isinstance(why, str) else "; ".join(why)
    return Failure(error, is_final=getattr(event, "fatal", False))


class StepKind(NamedTuple):
    """How one of a profile's steps is done."""

    do: Callable[[Step], Event | None]
    """None: the ticket was withdrawn meanwhile."""
    retries: int = 0
    """How often Celery counts it again; fixloop's attempts include the first (K5)."""
    unfailing: bool = False
    """What is away makes it late, and is never a failure."""
    speaks: bool = False
    """It only speaks, and is unfailing: it kills nobody, so a process that died over it was killed."""


class StepHandlers(NamedTuple):
    """One profile's side of the workers."""

    profile: Profile[Any]
    steps: Mapping[str, StepKind]
    failure: Callable[[Step, Failure], Event | None]
    """The event that tells of a failed attempt; None of a step that cannot fail, and is offered again."""
    brought: Callable[[Step, Event], Event] | None = None
    """A result that others' work has come between, brought onto that work."""
    failed: Callable[[Any, Event], Failure | None] = failure_in
    """What an event tells of a failed attempt, given the state before it; None where it was none."""


def failure(handlers: StepHandlers, step: Step, why: Failure) -> Event | None:
    """The event of a step that could not be done, without secrets: errors have words of git, commands and files."""
    hide = Redaction.of((), os.environ).text
    return handlers.failure(step, why._replace(error=hide(why.error), stack_trace=hide(why.stack_trace)))
