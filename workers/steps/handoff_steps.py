"""The steps of a workflow of handoffs: one run of an agent, which returns a result or asks a person (D32-D54)."""

from hashlib import sha256
from typing import Any, Final

from fixloop.profiles.handoff import events
from fixloop.profiles.handoff.engine import HANDOFF
from fixloop.profiles.handoff.records import changed
from fixloop.profiles.handoff.returns import InvalidReturn, Returned, fitting, read_questions, read_return
from fixloop.profiles.handoff.routes import HandoffStatus
from fixloop.profiles.handoff.runs import escalation, rejection
from fixloop.protocol.agent_events import AgentFailed
from fixloop.protocol.event import Event
from fixloop.protocol.ticket import ATTEND
from fixloop.statefiles.agent_run import Played
from workers.steps import agent_runs
from workers.steps.delivery import attend
from workers.steps.step import Step
from workers.steps.step_handlers import StepKind

FAILED: Final = "failed"
"""The status an agent returns when it cannot continue; with `fatal`, a retry is useless (D38)."""


def _work(step: Step) -> Event | None:
    name = step.holding.ticket.specialist
    with agent_runs.heard_of(step, events.Heartbeat(sender=name)):
        played = agent_runs.run_agent(step, events.AgentActivated(agent=name))
    if played is None:
        return None
    # The agent's fields of the shared state: the last write wins; those that the workflow depends on wait (D45, D46).
    for field, value in played.fields.items():
        seen = step.holding.state.written.get(field, 0)
        event = events.StateWritten(sender=name, field=field, value=value, seen=seen, at_once=True)
        step.say(event, f"wrote/{sha256(event.model_dump_json().encode()).hexdigest()[:32]}")
    if played.error:
        return _failed(step, played, played.error, fatal=played.fatal)
    try:
        return _returned(step, played)
    except InvalidReturn as invalid:
        return _failed(step, played, str(invalid))


def _returned(step: Step, played: Played) -> Event:
    """The event for a blocking question, else for the result. InvalidReturn: there is neither, or it is malformed."""
    name = step.holding.ticket.specialist
    questions = [
        escalation(name, {"details": ""} | asked, played.artifacts) for asked in read_questions(played.answer)
    ]
    blocking = next((question for question in questions if question.blocking), None)
    # A question that blocks nothing is asked without ending the run (D42).
    for number, question in enumerate((each for each in questions if not each.blocking), 1):
        step.tell(question, f"asked/{number}")
    if blocking is not None:
        return blocking.model_copy(update=_changes_of(played))
    said = read_return(played.answer)
    if said["status"] == HandoffStatus.REJECTED:
        return rejection(step.holding.state, name, said)
    if said["status"] == FAILED:
        return _failed(
            step, played, str(said.get("reason") or "it cannot go on"), fatal=said.get("fatal") is True
        )
    if played.wrong:
        raise InvalidReturn(played.wrong)
    if not said.get("commit") and name == "builder":
        # The builder's changes are the next commit, whatever name it reported.
        said = said | {"commit": played.brought.tip}
    result = fitting("result", Returned, said)
    event = events.AgentReturned(sender=name, result=result, artifacts=played.artifacts)
    return event.model_copy(update=_changes_of(played))


def _changes_of(played: Played) -> dict[str, Any]:
    """The changes that the run left in the repository, as event fields."""
    return played.brought._asdict() | changed(played.files)


def _failed(step: Step, played: Played, reason: str, *, fatal: bool = False) -> AgentFailed:
    name = step.holding.ticket.specialist
    return AgentFailed(agent=name, reason=reason, fatal=fatal, artifacts=played.artifacts)


STEPS: Final = agent_runs.step_handlers(HANDOFF, _work, {ATTEND: StepKind(attend, speaks=True)})
