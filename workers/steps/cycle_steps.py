"""The steps of a cycle: one run of an agent and its report; the orchestrator finishes (C6, C15, C18, C35, C50)."""

from typing import Final

from fixloop.profiles.cycle import events
from fixloop.profiles.cycle.agent_output import Writings
from fixloop.profiles.cycle.engine import CYCLE
from fixloop.profiles.cycle.phase_result import InvalidResult, read_result
from fixloop.protocol.agent_events import AgentFailed
from fixloop.protocol.event import Event
from workers.steps import agent_runs
from workers.steps.step import Step
from workers.steps.step_handlers import StepKind


def _work(step: Step) -> Event | None:
    key = step.holding.ticket.specialist
    played = agent_runs.run_agent(step, events.AgentStarted(agent=key))
    if played is None:
        return None
    if played.error:
        return AgentFailed(agent=key, reason=played.error, fatal=played.fatal, artifacts=played.artifacts)
    try:
        if played.wrong:
            raise InvalidResult(played.wrong)
        output = played.artifacts[0] if played.artifacts else ""
        event = events.PhaseReported(sender=key, result=read_result(played.answer), output=output)
    except InvalidResult as invalid:
        return events.AnswerInvalid(agent=key, problem=str(invalid), artifacts=played.artifacts)
    return event.model_copy(update=(played.writings or Writings())._asdict() | played.brought._asdict())


STEPS: Final = agent_runs.step_handlers(
    CYCLE, _work, {"finish": StepKind(lambda step: events.CycleFinished(), agent_runs.RETRIES, speaks=True)}
)
