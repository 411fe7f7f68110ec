"""What the workers need from a profile: how each of its steps is done, and its failure events (R1, R2)."""

import os
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from fixloop.engine.profile import Profile
from fixloop.protocol.event import Event
from fixloop.secrets.redaction import Redaction
from workers.steps.step import Step

POISONED: Final = 5
"""If so many processes died over one step, the step itself is at fault (K40)."""


class Failure(NamedTuple):
    """Why a step failed."""

    error: str
    stack_trace: str = ""
    is_final: bool = False
    """Do not try again."""
    is_undelivered: bool = False
    """The recipient could not be reached."""


_REASONS: Final[Mapping[str, str]] = {
    "agent-failed": "reason",
    "answer-invalid": "problem",
    "answer-rejected": "violations",
    "branch-pushed": "error",
    "delivery-failed": "error",
    "fix-failed": "error",
}
"""The events of failed attempts, and the field that holds the reason."""


def failure_in(state: Any, event: Event) -> Failure | None:
    """The failure that an event reports; None if it reports none."""
    field = _REASONS.get(event.kind)
    why = getattr(event, field) if field is not None else ""
    if not why:
        return None
    error = why if isinstance(why, str) else "; ".join(why)
    return Failure(error, is_final=getattr(event, "fatal", False))


class StepKind(NamedTuple):
    """How one of a profile's steps is done."""

    do: Callable[[Step], Event | None]
    """Returns the step's event; None: the ticket was withdrawn in the meantime."""
    retries: int = 0
    """The retries that Celery counts; fixloop's attempts include the first (K5)."""
    unfailing: bool = False
    """An unreachable service delays the step and never fails it."""
    speaks: bool = False
    """The step only sends messages and never fails; a process that died over it was killed from outside."""


class StepHandlers(NamedTuple):
    """What the workers need from one profile."""

    profile: Profile[Any]
    steps: Mapping[str, StepKind]
    failure: Callable[[Step, Failure], Event | None]
    """The event of a failed attempt; None for a step that cannot fail and is offered again."""
    brought: Callable[[Step, Event], Event] | None = None
    """Rebases a result onto work that was committed in the meantime."""
    failed: Callable[[Any, Event], Failure | None] = failure_in
    """The failure that an event reports, given the state before it; None if it reports none."""


def failure(handlers: StepHandlers, step: Step, why: Failure) -> Event | None:
    """The event of a failed step, with secrets removed: errors may quote git, commands and files."""
    hide = Redaction.of((), os.environ).text
    return handlers.failure(step, why._replace(error=hide(why.error), stack_trace=hide(why.stack_trace)))
