"""Leaves steps of a newer fixloop to newer workers (docs/decisions/0015), and damaged ones until they are repaired."""

import logging
from collections import OrderedDict
from typing import Final

from fixloop.engine.hints import task_name
from fixloop.errors import Damaged, FixloopError, NewerVersion, UsageError
from fixloop.store.contract import Store
from fixloop.store.keys import workflow_of
from fixloop.store.limits import DAMAGED_AGAIN
from fixloop.store.records import Claim
from workers.log_once import say_once

log = logging.getLogger("fixloop.leaving")

LONGEST_PAUSE_SECONDS: Final = 30.0
MOST_REMEMBERED: Final = 10_000

_left: OrderedDict[str, int] = OrderedDict()


def leave(store: Store, claim: Claim | None, owner: str, why: Damaged | NewerVersion) -> str:
    """Return a claimed ticket with a delay; returns its status for the log."""
    if isinstance(why, NewerVersion):
        return _leave_to_newer(store, claim, owner, str(why))
    say_once(log, str(why))
    if claim is not None and claim.ticket is not None:
        store.release(claim.ticket.id, owner, claim.fence, delay_seconds=DAMAGED_AGAIN)
    return "damaged"


def _leave_to_newer(store: Store, claim: Claim | None, owner: str, why: str) -> str:
    if claim is None or claim.ticket is None:
        return claim.status if claim is not None else "newer"
    pause = pause_seconds(claim.ticket.id)
    level = logging.WARNING if pause == 1.0 else logging.INFO
    log.log(level, "%s is left to newer workers for %.0f s: %s", claim.ticket.id, pause, why)
    store.release(claim.ticket.id, owner, claim.fence, delay_seconds=pause)
    return "newer"


def leave_unknown(store: Store, owner: str, task: str, ticket_id: str) -> None:
    """Delay the ticket of a task that this version does not have: Celery would drop its message, and the sweeper send
    it every second. Raises ValueError: it is not the ticket's task, so no newer fixloop sent it."""
    try:
        found = store.read(workflow_of(ticket_id))
        if found is None:
            raise ValueError(f"there is no workflow for a task {task}")
        profile = found.fields.get("profile") or "validation"
        steps = [held.ticket.step for held in found.tickets if held.ticket.id == ticket_id]
        if steps and task_name(profile, steps[0]) != task:
            raise ValueError(f"{task} is not the task of {ticket_id}")
        claim = store.claim(ticket_id, owner, f"unknown/{ticket_id}")
        _leave_to_newer(store, claim, owner, f"this version has no task {task}")
    except UsageError as error:
        raise ValueError(str(error)) from None
    except FixloopError as error:
        log.warning("a message for %s, which this version has not: %s", task, error)


def pause_seconds(ticket_id: str) -> float:
    """How long this process leaves a ticket alone; the time doubles with each call."""
    times = _left.pop(ticket_id, 0)
    _left[ticket_id] = times + 1
    if len(_left) > MOST_REMEMBERED:
        _left.popitem(last=False)
    return min(LONGEST_PAUSE_SECONDS, 2.0**times)
