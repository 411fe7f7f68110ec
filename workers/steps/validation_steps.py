"""The steps of a validation loop: run checks, deliver reports, run the fixer, notify people."""

from typing import Any, Final, Literal, cast

from fixloop.profiles.validation.engine import VALIDATION
from fixloop.protocol import events
from fixloop.protocol.checks import RunOutcome
from fixloop.protocol.event import Event
from fixloop.protocol.results import no_result
from fixloop.protocol.roles import worker_of
from fixloop.protocol.state import State
from fixloop.protocol.ticket import ATTEND, Ticket
from workers.steps.delivery import attend, deliver, pushed, undelivered
from workers.steps.step import Step, crew
from workers.steps.step_handlers import Failure, StepHandlers, StepKind, failure_in

NO_MORE: Final = 1000
"""An attempt number above every limit."""


def _fix(step: Step) -> events.Event | None:
    if crew().acknowledges:
        ticket = step.holding.ticket
        # The fixer has the report and is about to start (G1).
        event = events.FixAcknowledged(
            specialist=ticket.specialist, iteration=ticket.iteration, by="fixer", sender=worker_of(ticket)
        )
        step.tell(event, "started")
    return crew().fix(step)


def _failure(step: Step, why: Failure) -> Event | None:
    ticket = step.holding.ticket
    if ticket.step == "fix":
        return fix_failed(
            ticket, why.error, output_tail=why.stack_trace, undelivered=why.is_undelivered, fatal=why.is_final
        )
    if ticket.step == "notify":
        return events.PersonNotified(detail=why.error)
    if ticket.step == "push":
        return events.BranchPushed(attempt=ticket.attempt, error=why.error, fatal=why.is_final)
    if ticket.step in ("deliver", "escalate"):
        return undelivered(step, why.error)
    if ticket.step not in ("validate", "recheck", "confirm"):
        return None
    told = {"error": why.error, "stack_trace": why.stack_trace}
    run = run_finished(ticket, step.holding.state.tree, RunOutcome.ERROR, **told)
    return run.model_copy(update={"attempt": NO_MORE}) if why.is_final else run


def fix_failed(ticket: Ticket, error: str, **more: Any) -> events.FixFailed:
    """The event of a failed fix; `more` are further fields."""
    return events.FixFailed(
        specialist=ticket.specialist, iteration=ticket.iteration, attempt=ticket.attempt, error=error, **more
    )


def run_finished(ticket: Ticket, tree: str, outcome: RunOutcome, **more: Any) -> events.RunFinished:
    """The event of a finished run of checks; `more` are further fields."""
    return events.RunFinished(
        step=cast(Literal["validate", "recheck", "confirm"], ticket.step),
        specialist=ticket.specialist,
        iteration=ticket.iteration,
        attempt=ticket.attempt,
        outcome=cast(Literal["passed", "failed", "error", "skipped"], outcome.value),
        tree=tree,
        **more,
    )


def _failed(state: State, event: Event) -> Failure | None:
    if not isinstance(event, events.RunFinished):
        return failure_in(state, event)
    why = no_result(state, event)
    return Failure(why, is_final=event.is_final) if why else None


STEPS: Final = StepHandlers(
    profile=VALIDATION,
    steps={
        **dict.fromkeys(("validate", "recheck", "confirm"), StepKind(lambda step: crew().check(step), 1)),
        "report": StepKind(
            lambda step: events.ReportDelivered(
                specialist=step.holding.ticket.specialist, iteration=step.holding.ticket.iteration
            ),
            2,
            speaks=True,
        ),
        **dict.fromkeys(("deliver", "escalate"), StepKind(deliver, 2, speaks=True)),
        "fix": StepKind(_fix, 2),
        "notify": StepKind(lambda step: events.PersonNotified(detail=crew().notify(step)), unfailing=True),
        "push": StepKind(lambda step: pushed(step, events.BranchPushed), 2),
        ATTEND: StepKind(attend, speaks=True),
    },
    failure=_failure,
    failed=_failed,
)
