"""Executes one step: claims its ticket, has the work done under a lease, commits the event and hints the next tickets.

Work needs the ticket, and a commit needs its fence. The profile's step handlers define the work.
"""

import logging
import secrets
import traceback
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any, Final

from celery import Task
from celery.exceptions import Retry

from fixloop.engine.bridging import has_word_of, is_given_up, wake
from fixloop.engine.engine import ROUNDS, ProfileApplied, ProfileEngine
from fixloop.engine.profile import AnyOutcome
from fixloop.errors import Damaged, FixloopError, InfrastructureError, NewerVersion
from fixloop.profile_table import loaded, names, registered, registered_in
from fixloop.protocol.event import Event
from fixloop.protocol.ticket import LOOK_AGAIN_SECONDS, Ticket
from fixloop.repository.snapshot import Unseen
from fixloop.store.records import GoesOn
from workers.app import app
from workers.process import process
from workers.steps.going_on import CURRENT, GONE_ON, may_go_on
from workers.steps.hints import FAILURES, FatalError, follow, hint, hint_again, stop_chain
from workers.steps.newer_versions import leave
from workers.steps.step import Injured, PutOff, Step, crew
from workers.steps.step_handlers import POISONED, Failure, StepHandlers, failure

log = logging.getLogger("fixloop.steps")

STEP_HANDLERS: Final[Mapping[str, StepHandlers]] = {name: loaded(registered(name).steps) for name in names()}
"""By profile name."""


def carry_out(task: Task, ticket_id: str) -> str:
    """Do a step once; returns, for the log, `done`, `busy`, `gone`, `early`, `stale`, `cancelled`, `injured`, `put
    off`, `newer` or `damaged`. A failed attempt ends as described in `follow`."""
    try:
        status = _carry_out(task, ticket_id)
    except (Retry, *FAILURES):
        log.info("%s is done", ticket_id)
        raise
    log.info("%s is %s", ticket_id, "done" if status == GONE_ON else status)
    return status


def on_failure(task: Task, exc: Exception, task_id: str, args: Any, kwargs: Any, einfo: Any) -> None:
    """Celery's failure handler of every step (K5, R9): record an attempt whose failure is not in the state yet
    (docs/decisions/0038). If Redis or the broker is away, the step has not failed: its lease ends."""
    held: tuple[StepHandlers, Step] | None = getattr(task.request, "held", None)
    if held is None or isinstance(exc, (InfrastructureError, NewerVersion)):
        return
    handlers, step = held
    try:
        told = told_of(handlers, step, _failure_of(exc, str(einfo.traceback)))
    except Exception:
        # An exception here would hide the task's failure from Celery.
        log.exception("%s failed, and the state could not be told", task_id)
        return
    if told is not None:
        process().announce(handlers.profile, told)
        for ticket in told.steps:
            hint(ticket, told.state)


def _failure_of(exc: Exception, stack_trace: str) -> Failure:
    if isinstance(exc, FAILURES):
        return Failure(str(exc), is_final=isinstance(exc, FatalError))
    return Failure(f"{type(exc).__name__}: {exc}", stack_trace)


def told_of(handlers: StepHandlers, step: Step, why: Failure) -> AnyOutcome[Any] | None:
    """Record a failed attempt whose ticket is still held; None: the ticket was lost, or the step cannot fail."""
    event = failure(handlers, step, why) if step.is_held() else None
    return _finish(handlers, step, event).outcome if event is not None else None


def _carry_out(task: Task, ticket_id: str) -> str:
    here = process()
    going, claim = CURRENT.get(), None
    following = None if going is None else going.present
    try:
        claim = (
            following.claim if following else here.store.claim(ticket_id, here.owner, secrets.token_hex(16))
        )
        if claim.status != "ok" or claim.ticket is None:
            stop_chain(task)
            return claim.status
        handlers = STEP_HANDLERS[registered_in(claim.snapshot).name]
        holding = ProfileEngine.held(
            handlers.profile, claim.ticket, claim, here.owner, following and following.state
        )
        step = Step(here.engine_of(handlers.profile), here.heart, holding, here.mailboxes)
        task.request.held = handlers, step
        if following is None and claim.ticket.queue not in app.amqp.queues.consume_from:
            log.warning("%s is not for this worker; it is offered again", ticket_id)
            step.release(poison=False)
            hint_again(step.store, claim.ticket)
            stop_chain(task)
            return "put off"
        if following is not None and following.is_late() and not step.is_held():
            stop_chain(task)
            return "gone"
        event = None
        if not is_given_up(step.store, here.engine_of, holding.state):
            speaks = handlers.steps[claim.ticket.step].speaks
            try:
                with step.beating(), nullcontext() if going is None or speaks else going.working():
                    event = _event(handlers, step)
            except Injured as injury:
                return _offer_again(task, step, str(injury))
            except PutOff as elsewhere:
                return _delay(task, step, str(elsewhere))
        if event is None:
            stop_chain(task)
            return "cancelled"
        return _commit(task, handlers, step, event)
    except (Damaged, NewerVersion) as error:
        stop_chain(task)
        return leave(here.store, claim, here.owner, error)


def _offer_again(task: Task, step: Step, why: str) -> str:
    """Return the ticket to be offered again; after `POISONED` deaths the step fails by itself (K40)."""
    log.warning("%s was injured: %s; it is offered again", step.holding.ticket.id, why)
    stop_chain(task)
    offered = step.release(poison=True)
    if offered is not None:
        hint_again(step.store, offered)
    return "injured"


def _delay(task: Task, step: Step, why: str) -> str:
    """Delay the ticket until its child workflow wakes it. If the wake-up is lost, the delay ends by itself."""
    ticket = step.holding.ticket.id
    log.info("%s is put off: %s", ticket, why)
    stop_chain(task)
    step.release(poison=False, delay_seconds=LOOK_AGAIN_SECONDS)
    if has_word_of(step.store, ticket):
        # The child reported between the check and the release.
        wake(step.store, ticket, partial(hint_again, step.store))
    return "put off"


def _commit(task: Task, handlers: StepHandlers, step: Step, event: Event) -> str:
    failed, going = handlers.failed(step.holding.state, event), CURRENT.get()

    def goes_on(ticket: Ticket) -> GoesOn:
        served = app.amqp.queues.consume_from
        if going is None or failed is not None:
            return False
        speaks = handlers.steps[ticket.step].speaks
        return may_go_on(
            ticket, serves=served, speaks=speaks, steps=going.steps, own_seconds=going.own_seconds()
        )

    applied = _finish(handlers, step, event, goes_on)
    if applied.status == "refused":
        return _offer_again(task, step, f"{event.kind} is not for it to bring")
    if applied.outcome is None:
        log.warning("%s: the result is %s and dropped", step.holding.ticket.id, applied.status)
        stop_chain(task)
        return applied.status
    state = applied.outcome.state
    try:
        crew().settle(step, state)
    except Exception as error:
        # What could not be written is written later (`resume`); the workflow goes on.
        log.warning("%s is committed, but not written outside: %s", step.holding.ticket.id, error)
    process().announce(handlers.profile, applied.outcome)
    follow(task, step.holding.ticket, state, applied.steps, failed)
    if going is None or applied.claim is None:
        return "done"
    going.take(task.request.chain, applied.claim, state)
    stop_chain(task)
    return GONE_ON


def _finish(
    handlers: StepHandlers,
    step: Step,
    event: Event,
    goes_on: Callable[[Ticket], GoesOn] = lambda ticket: False,
) -> ProfileApplied[Any]:
    applied = step.finish(event, goes_on)
    for _ in range(ROUNDS):
        if applied.status != "moved" or handlers.brought is None:
            break
        with step.beating():
            applied = step.finish(handlers.brought(step, event), goes_on)
    return applied


def _event(handlers: StepHandlers, step: Step) -> Event | None:
    kind, deaths = handlers.steps[step.holding.ticket.step], step.holding.deaths
    # A step that only sends messages kills no process: one that died over it was killed.
    if deaths >= POISONED and not kind.speaks:
        return failure(handlers, step, Failure(f"{deaths} processes died over this step", is_final=True))
    try:
        return kind.do(step)
    except (Injured, NewerVersion, PutOff):
        raise
    except InfrastructureError as error:
        if kind.unfailing or kind.speaks:
            raise
        return failure(handlers, step, Failure(str(error), is_undelivered=isinstance(error, Unseen)))
    except FixloopError as error:
        return failure(handlers, step, Failure(str(error)))
    except Exception as error:
        return failure(handlers, step, _failure_of(error, traceback.format_exc()))
