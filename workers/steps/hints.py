"""Hints the next tickets after a commit. Usually the next task of the chain is the hint."""

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

from celery import Task
from celery.exceptions import MaxRetriesExceededError, TaskError
from kombu.exceptions import OperationalError

from fixloop.engine.hints import arguments, send_hint
from fixloop.engine.profile import profile_in
from fixloop.errors import NewerVersion, ProtocolError
from fixloop.protocol.ticket import Ticket
from fixloop.store.contract import Store
from fixloop.store.limits import FIRST
from workers.app import app
from workers.log_once import say_once
from workers.steps.step_handlers import Failure
from workflows import canvas

log = logging.getLogger("fixloop.following")

REASON_CHARACTERS: Final = 500
"""The most of a failed task's reason that Flower shows; the history has all of it."""


class FatalError(TaskError):  # type: ignore[misc]
    """A step failed, and a retry cannot help (K5)."""


FAILURES: Final = (FatalError, MaxRetriesExceededError)
"""The exceptions of a step whose failure is already in the state."""


def stop_chain(task: Task) -> None:
    """Drop the rest of the chain, so that a copy of this message does not run it."""
    task.request.chain = None


def follow(
    task: Task, done: Ticket, state: Any, steps: Sequence[Ticket], failure: Failure | None = None
) -> None:
    """Hint `steps`, the first through the chain of `task`; `failure` is set if the finished attempt failed. Raises
    Celery's Retry if one of the steps is the next attempt (K5), MaxRetriesExceededError after the last attempt, and
    FatalError if a retry cannot help; the state has recorded what follows (R9)."""
    same_run = (done.step, done.specialist, done.iteration)
    again = next((each for each in steps if (each.step, each.specialist, each.iteration) == same_run), None)
    if again is not None and again.attempt > done.attempt:
        _hint_all(state, (ticket for ticket in steps if ticket is not again))
        # The ticket counts the attempts; Celery's counter is set to match.
        task.request.retries = again.attempt - 2
        raise task.retry(
            exc=TaskError(_reason(failure)) if failure is not None else None,
            task_id=again.id,
            kwargs=arguments(again),
            countdown=again.delay_seconds,
            max_retries=max(task.max_retries or 0, again.attempt - 1),
            throw=False,
        )
    if failure is not None and again is None:
        # A failed task's chain ends with it.
        _hint_all(state, steps)
        _give_up(task, done, failure)
    if not steps:
        stop_chain(task)
        return
    first, *others = steps
    _hint_all(state, others)
    # A report's priority was not known when the chain was built (K13).
    planned = task.request.chain[-1]["options"] if task.request.chain else {}
    if (planned.get("task_id"), planned.get("priority")) != (first.id, first.priority):
        task.request.chain = [dict(entry) for entry in reversed(canvas(app, state, first))]


def hint(ticket: Ticket, state: Any, *, again: bool = False) -> None:
    """Send the canvas that begins with `ticket`; with `again`, it is served first. If the broker is away, the sweeper
    sends it again."""
    first, *rest = canvas(app, state, ticket)
    if again:
        first.set(priority=FIRST)
    following = [dict(entry) for entry in reversed(rest)]
    with suppress(OperationalError):
        first.apply_async(chain=following, countdown=ticket.delay_seconds or None)


def hint_again(store: Store, ticket: Ticket) -> None:
    """Hint a ticket that is offered again, ahead of all others, with the canvas of the current state. A workflow that
    cannot be read must not keep others from being hinted. The hint of a newer version's workflow has no canvas: a
    worker that can read it builds that."""
    now = ticket.model_copy(update={"delay_seconds": 0.0})
    try:
        found = store.read(ticket.workflow)
        if found is None:
            return
        try:
            hint(now, profile_in(found.snapshot).load(found.snapshot), again=True)
        except NewerVersion:
            send_hint(app, now, found.fields.get("profile") or "validation")
    except ProtocolError as error:
        say_once(log, f"{ticket.id} is not hinted: {error}")


def _hint_all(state: Any, tickets: Iterable[Ticket]) -> None:
    for ticket in tickets:
        hint(ticket, state)


def _give_up(task: Task, done: Ticket, failure: Failure) -> None:
    """End the task as Celery does when its counter, set from the ticket, is exhausted."""
    if failure.is_final:
        raise FatalError(_reason(failure))
    task.request.retries = done.attempt - 1
    exhausted = MaxRetriesExceededError(_reason(failure), task_kwargs=arguments(done))
    task.retry(exc=exhausted, kwargs=arguments(done), max_retries=done.attempt - 1)


def _reason(failure: Failure) -> str:
    return " ".join(failure.error.split())[:REASON_CHARACTERS]
