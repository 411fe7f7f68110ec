"""The steps of a cycle: an agent does one run and reports it; the orchestrator finishes (C6, C15, C18, C35, C50)."""

from typing import Any, Final

from fixloop.played import Played
from fixloop.profiles.cycle import CYCLE
from fixloop.profiles.profile import AnyEvent
from fixloop.protocol.closing import PUSH
from fixloop.protocol.cycle.events import (
    AgentFailed,
    AgentStarted,
    AnswerInvalid,
    BranchPushed,
    CycleFinished,
    DeliveryFailed,
    MessageStored,
    PersonNotified,
    PhaseReported,
)
from fixloop.protocol.cycle.phase_result import InvalidResult, read_result
from fixloop.protocol.letters import DELIVER, number_of
from fixloop.protocol.notifying import NOTIFY
from workers import runs
from workers.crew import crew
from workers.delivering import deliver_letter
from workers.publishing import not_pushed, pushed
from workers.step import Step
from workers.workshop import Failure, Workshop

__all__ = ["SHOP"]


def _work(step: Step) -> AnyEvent | None:
    key = step.holding.ticket.specialist
    played = runs.run_agent(step, AgentStarted(agent=key))
    if played is None:
        return None
    if played.error:
        return AgentFailed(agent=key, reason=played.error, fatal=played.fatal, artifacts=played.artifacts)
    try:
        return _reported(key, played)
    except InvalidResult as invalid:
        return AnswerInvalid(agent=key, problem=str(invalid), artifacts=played.artifacts)


def _reported(key: str, played: Played) -> PhaseReported:
    """
    The report, with what the agent wrote.

    Raises:
        InvalidResult: there is no report, or it wrote what it may not.
    """
    if played.wrong:
        raise InvalidResult(played.wrong)
    event = PhaseReported(
        sender=key,
        result=read_result(played.answer),
        output=played.artifacts[0] if played.artifacts else "",
    )
    return event.model_copy(update=played.writings._asdict() | played.brought._asdict())


def _finish(step: Step) -> AnyEvent | None:
    return CycleFinished()


def _deliver(step: Step) -> AnyEvent | None:
    return deliver_letter(step, MessageStored, DeliveryFailed)


def _notify(step: Step) -> AnyEvent:
    return PersonNotified(detail=crew().notify(step))


def _push(step: Step) -> AnyEvent:
    return pushed(step, BranchPushed)


def _failure(step: Step, why: Failure) -> AnyEvent:
    if step.holding.ticket.step == PUSH:
        return not_pushed(step, why, BranchPushed)
    if step.holding.ticket.step == DELIVER:
        return DeliveryFailed(number=number_of(step.holding.ticket), error=why.error)
    if step.holding.ticket.step == NOTIFY:
        return PersonNotified(detail=why.error)
    return AgentFailed(agent=step.holding.ticket.specialist, reason=why.error, fatal=why.is_final)


def _brought(step: Step, event: Any) -> AnyEvent:
    key = step.holding.ticket.specialist
    return runs.brought_onto(step, event, lambda reason: AgentFailed(agent=key, reason=reason))


SHOP: Final = Workshop(
    profile=CYCLE,
    work={"work": _work, "finish": _finish, DELIVER: _deliver, NOTIFY: _notify, PUSH: _push},
    retries=dict.fromkeys(("work", "finish", DELIVER, PUSH), runs.RETRIES) | {NOTIFY: 0},
    speaking=frozenset(("finish", DELIVER)),
    unfailing=frozenset(("finish", DELIVER, NOTIFY)),
    failure=_failure,
    settle=runs.settle,
    brought=_brought,
)
