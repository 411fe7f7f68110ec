"""One step: claim its ticket, have the work done under a lease, commit what happened, hint what follows.

A delivery that is late, doubled or lost changes nothing: without the ticket there is no work, and without the
fence no commit.
"""

import logging
import time
import traceback
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Literal, cast

from celery import Task

from fixloop.engine import Applied, Holding, hold
from fixloop.errors import FixloopError, InfrastructureError, NewerVersion, UsageError
from fixloop.protocol.events import (
    BranchPushed,
    Event,
    FixAcknowledged,
    FixFailed,
    PersonNotified,
    ReportDelivered,
    RunFinished,
)
from fixloop.protocol.refusals import Unexpected
from fixloop.protocol.roles import worker_of
from fixloop.protocol.state import State
from fixloop.protocol.ticket import Ticket
from fixloop.repository.snapshot import Unseen
from fixloop.store.contract import Store
from workers.crew import Injured, crew
from workers.delivering import announce, deliver
from workers.following import follow, hint_again, stop_chain
from workers.guard import GuardedResult, run_guarded
from workers.lease import Lease
from workers.leaving import leave
from workers.process import Process, process

__all__ = ["POISONED", "Step", "carry_out"]

log = logging.getLogger("fixloop.steps")

SPEAKING: Final = ("report", "deliver", "escalate")
POISONED: Final = 5
"""So many processes died over one step: it is the step's own fault (K40)."""


class Step:
    """A claimed step as its crew sees it."""

    def __init__(self, here: Process, holding: Holding) -> None:
        self.holding = holding
        self.lease = Lease(holding)
        self._here = here
        self._since = time.monotonic()

    @property
    def store(self) -> Store:
        return self._here.store

    def cancelled(self) -> bool:
        return self.lease.cancelled()

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        unheard_seconds: float,
        stdin: bytes = b"",
    ) -> GuardedResult | None:
        """See `Work`."""
        result = run_guarded(
            argv,
            cwd=cwd,
            env=env,
            stdin=stdin,
            timeout_seconds=unheard_seconds,
            since=lambda: self.lease.heard_at,
            cancelled=self.cancelled,
        )
        if result.cancelled or self.cancelled():
            return None
        if result.injured:
            raise Injured(f"{argv[0]} was killed by signal {result.signal}")
        return result

    def beating(self) -> AbstractContextManager[Lease]:
        """Renew the lease as long as the block runs."""
        return self._here.heart.beating(self.lease)

    def acknowledge(self) -> None:
        """Say that the fixer has the report: it is about to start (G1)."""
        ticket = self.holding.ticket
        event = FixAcknowledged(
            specialist=ticket.specialist, iteration=ticket.iteration, by="fixer", sender=worker_of(ticket)
        )
        try:
            # Once for each attempt: whoever takes it over from a dead process receives nothing new.
            self._here.engine.apply(ticket.workflow, event, operation=f"{ticket.id}/started")
        except Unexpected:
            self.lease.withdraw()

    def finish(self, event: Event) -> Applied:
        """Commit the step's event at the time it happened."""
        moment = self.holding.moment.plus(time.monotonic() - self._since)
        return self._here.engine.finish(self.holding, event, moment)

    def release(self, *, poison: bool) -> Ticket | None:
        """Give the ticket back: same attempt, next fence, no message (K40)."""
        return self.store.release(
            self.holding.ticket.id, self.holding.owner, self.holding.fence, poison=poison
        )


def carry_out(task: Task, ticket_id: str) -> str:
    """
    Do the step of `ticket_id`, once.

    Returns:
        What became of it, for the log: `done`, `busy`, `gone`, `early`, `stale`, `cancelled`, `injured` or `newer`.
    """
    status = _carry_out(task, ticket_id)
    log.info("%s is %s", ticket_id, status)
    return status


def _carry_out(task: Task, ticket_id: str) -> str:
    here = process()
    claim = here.store.claim(ticket_id, here.owner, uuid.uuid4().hex)
    if claim.status != "ok" or claim.ticket is None:
        stop_chain(task)
        return claim.status
    try:
        return _done(task, Step(here, hold(claim.ticket, claim, here.owner)))
    except NewerVersion as newer:
        stop_chain(task)
        return leave(here.store, claim, here.owner, str(newer))


def _done(task: Task, step: Step) -> str:
    try:
        with step.beating():
            event = _event(step, step.holding.ticket)
    except Injured as injury:
        return _offer_again(task, step, str(injury))
    if event is None:
        stop_chain(task)
        return "cancelled"
    return _commit(task, step, event)


def _offer_again(task: Task, step: Step, why: str) -> str:
    """Give the ticket back; after `POISONED` times it fails by itself (K40)."""
    log.warning("%s was injured: %s; it is offered again", step.holding.ticket.id, why)
    stop_chain(task)
    offered = step.release(poison=True)
    if offered is not None:
        hint_again(step.store, offered)
    return "injured"


def _commit(task: Task, step: Step, event: Event) -> str:
    applied = step.finish(event)
    if applied.status == "refused":
        return _offer_again(task, step, f"{event.kind} is not for it to bring")
    if applied.outcome is None:
        log.warning("%s: the result is %s and dropped", step.holding.ticket.id, applied.status)
        stop_chain(task)
        return applied.status
    _settle(step, applied.outcome.state)
    announce(applied.outcome)
    follow(task, step.holding.ticket, applied.outcome.state, applied.steps)
    return "done"


def _settle(step: Step, state: State) -> None:
    """What cannot be written outside is written later (`resume`); the workflow goes on."""
    try:
        crew().settle(step, state)
    except Exception as error:
        log.warning("%s is committed, but not written outside: %s", step.holding.ticket.id, error)


def _event(step: Step, ticket: Ticket) -> Event | None:
    # What only speaks kills nobody; whoever died over it was killed.
    if step.holding.deaths >= POISONED and ticket.step not in SPEAKING:
        return _failure(step, f"{step.holding.deaths} processes died over this step", "", final=True)
    try:
        return _WORK[ticket.step](step)
    except (Injured, NewerVersion):
        raise
    except InfrastructureError as error:
        if ticket.step in (*SPEAKING, "notify"):
            raise
        return _failure(step, str(error), "", undelivered=isinstance(error, Unseen))
    except FixloopError as error:
        return _failure(step, str(error), "")
    except Exception as error:
        return _failure(step, f"{type(error).__name__}: {error}", traceback.format_exc())


def _failure(
    step: Step, error: str, stack_trace: str, *, final: bool = False, undelivered: bool = False
) -> Event:
    ticket = step.holding.ticket
    if ticket.step == "fix":
        return FixFailed(
            specialist=ticket.specialist,
            iteration=ticket.iteration,
            attempt=ticket.attempt,
            error=error,
            output_tail=stack_trace,
            undelivered=undelivered,
            fatal=final,
        )
    if ticket.step == "notify":
        return PersonNotified(detail=error)
    if ticket.step == "push":
        return BranchPushed(attempt=ticket.attempt, error=error, fatal=final)
    return RunFinished(
        step=cast(Literal["validate", "recheck", "confirm"], ticket.step),
        specialist=ticket.specialist,
        iteration=ticket.iteration,
        attempt=1000 if final else ticket.attempt,
        outcome="error",
        tree=step.holding.state.tree,
        error=error,
        stack_trace=stack_trace,
    )


def _check(step: Step) -> Event | None:
    return crew().check(step)


def _report(step: Step) -> Event | None:
    ticket = step.holding.ticket
    return ReportDelivered(specialist=ticket.specialist, iteration=ticket.iteration)


def _fix(step: Step) -> Event | None:
    if crew().acknowledges:
        step.acknowledge()
    return crew().fix(step)


def _notify(step: Step) -> Event | None:
    return PersonNotified(detail=crew().notify(step))


def _push(step: Step) -> Event | None:
    attempt = step.holding.ticket.attempt
    try:
        return BranchPushed(branch=crew().push(step), attempt=attempt)
    except UsageError as refused:
        return BranchPushed(attempt=attempt, error=str(refused), fatal=True)


_WORK: Final[dict[str, Callable[[Step], Event | None]]] = {
    "validate": _check,
    "recheck": _check,
    "confirm": _check,
    "report": _report,
    "deliver": deliver,
    "escalate": deliver,
    "fix": _fix,
    "notify": _notify,
    "push": _push,
}
