"""The end of a workflow of agents that went well: its branch is pushed first, where that was asked for.

A push decides nothing about the work: whatever comes of it, the outcome stands. A URL that is away is tried again as a
letter is; a refusal is final, and kept where `status` and the last lines show it.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

from fixloop.protocol.refusals import Unexpected
from fixloop.protocol.ticket import Ticket, own_queue

PUSH: Final = "push"
"""The step that does it."""
_WHILE_CLOSING: Final = frozenset(("branch-pushed", "cancelled", "paused", "continued"))


class _Draft(Protocol):
    """What is written on, of either profile."""

    state: Any

    def update(self, **changes: Any) -> None: ...

    def note(self, text: str) -> None: ...

    def push(self, attempt: int = 1, delay_seconds: float = 0.0) -> None: ...

    def withdraw(self) -> None: ...


class _Pushed(Protocol):
    """The event that tells what came of it, of either profile."""

    @property
    def branch(self) -> str: ...

    @property
    def attempt(self) -> int: ...

    @property
    def error(self) -> str: ...

    @property
    def fatal(self) -> bool: ...


def check_closing(state: Any, kind: str) -> None:
    """
    Refuse what comes while a workflow is only waiting for its push.

    Raises:
        Unexpected: naming it.
    """
    if state.closing and kind not in _WHILE_CLOSING:
        raise Unexpected(
            f"{kind} came while workflow {state.workflow} ends ({state.closing}): its branch is pushed"
        )


def close(draft: _Draft, outcome: str, end: Callable[[str], None]) -> None:
    """
    End well; the branch is pushed before, where that was asked for.

    Args:
        end: ends the workflow with an outcome.
    """
    if not draft.state.push:
        end(outcome)
        return
    draft.withdraw()
    draft.update(closing=outcome)
    draft.push()


def branch_pushed(draft: _Draft, event: _Pushed, end: Callable[[str], None]) -> None:
    """
    It is there, or it was refused; also long after the end, when a person has tried again.

    Args:
        end: ends the workflow with an outcome.

    Raises:
        Unexpected: there is no work to push.
    """
    state = draft.state
    if not (state.closing or (state.ended and state.outcome in ("success", "skipped"))):
        raise Unexpected(
            f"workflow {state.workflow} has no work to push: it is {state.outcome or state.status}"
        )
    if state.ended and not event.branch:
        raise Unexpected(f"workflow {state.workflow} has ended, and what is told of it was not pushed")
    draft.note(
        f"pushed as {event.branch}" if event.branch else f"not pushed: {event.error or 'nothing was changed'}"
    )
    if event.error and not event.fatal and event.attempt < state.limits.delivery_attempts:
        draft.push(event.attempt + 1, state.limits.backoff_seconds(event.attempt))
        return
    draft.update(pushed=event.branch, push_error=event.error, closing="")
    if not state.ended:
        end(state.closing)


def push_ticket(state: Any, priority: int, attempt: int, delay_seconds: float = 0.0) -> Ticket:
    """The right to push a workflow's branch once more."""
    return Ticket(
        id=f"{state.workflow}.push.{attempt}",
        workflow=state.workflow,
        step=PUSH,
        queue=own_queue(state),
        priority=priority,
        iteration=state.iteration,
        attempt=attempt,
        delay_seconds=delay_seconds,
    )
