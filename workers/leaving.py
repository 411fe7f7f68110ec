"""Steps of a newer fixloop: this one leaves them to newer workers, and asks less and less often.

A rolling upgrade has workers of both versions on the same queues for a while, and a hint reaches either. What this
process leaves is offered again after 1, 2, 4 … 30 s; in between nothing is sent and nothing claimed. The pause is of
this process' own making, so that a newer worker that is hinted never waits for longer.
"""

import logging
from collections import OrderedDict
from typing import Any, Final

from fixloop.errors import FixloopError
from fixloop.store.contract import Store
from fixloop.store.records import Claim

__all__ = ["leave", "leave_unknown", "pause_seconds"]

log = logging.getLogger("fixloop.leaving")

LONGEST_PAUSE_SECONDS: Final = 30.0
MOST_REMEMBERED: Final = 10_000

_left: OrderedDict[str, int] = OrderedDict()


def leave(store: Store, claim: Claim, owner: str, why: str) -> str:
    """Give a claimed ticket back, not to be taken for a while; returns what became of it, for the log."""
    if claim.ticket is None:
        return claim.status
    pause = pause_seconds(claim.ticket.id)
    level = logging.WARNING if pause == 1.0 else logging.INFO
    log.log(level, "%s is left to newer workers for %.0f s: %s", claim.ticket.id, pause, why)
    store.release(claim.ticket.id, owner, claim.fence, delay_seconds=pause)
    return "newer"


def leave_unknown(store: Store, owner: str, **message: Any) -> None:
    """For a task that this version has not: Celery would drop its message, and the sweeper send it each second."""
    name, ticket_id = str(message.get("name", "")), str(message.get("id", ""))
    if not name.startswith("fixloop."):
        return
    try:
        claim = store.claim(ticket_id, owner, f"unknown/{ticket_id}")
        leave(store, claim, owner, f"this version has no task {name}")
    except FixloopError as error:
        log.warning("a message for %s, which this version has not: %s", name, error)


def pause_seconds(ticket_id: str) -> float:
    """How long this process leaves a ticket alone, twice as long each time."""
    times = _left.pop(ticket_id, 0)
    _left[ticket_id] = times + 1
    if len(_left) > MOST_REMEMBERED:
        _left.popitem(last=False)
    return min(LONGEST_PAUSE_SECONDS, 2.0**times)
