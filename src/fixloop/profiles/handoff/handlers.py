"""Applies answers, receipts and results from people and outside agents to a workflow of handoffs (D41-D43, D54, G9)."""

import json
from collections.abc import Iterator
from typing import Any, Final

from fixloop.commands.handlers import Answer, Said
from fixloop.commands.outside_agents import Handed, Outside, handlers, refuse_bounds, sender, tell
from fixloop.commands.screen import note
from fixloop.commands.session import Session, look
from fixloop.errors import RefusedError, UsageError
from fixloop.outside.transfer import bring_work
from fixloop.profiles.handoff import events as ev, returns
from fixloop.profiles.handoff.agent_output import missing_specification
from fixloop.profiles.handoff.presenter import options_of
from fixloop.profiles.handoff.questions import ENGINE_REASONS
from fixloop.profiles.handoff.records import changed
from fixloop.profiles.handoff.routes import HandoffStatus, check_agent, sent_by
from fixloop.profiles.handoff.runs import escalation, rejection
from fixloop.protocol.event import USER, Event


def _decide(session: Session, workflow: str, given: Answer) -> None:
    if given.until or given.owner:
        raise UsageError("an expiry and an owner go with skip in a validation workflow")
    state, wanted = look(session, workflow).state, given.escalation
    if not state.questions:
        ended = f": it ended ({state.outcome})" if state.ended else "; `fixloop inbox` lists what does"
        raise RefusedError(f"nothing of issue {state.issue} waits for an answer{ended}")
    names = ", ".join(question.id for question in state.questions)
    if not wanted and len(state.questions) > 1:
        raise UsageError(f"{len(state.questions)} questions are open ({names}); name one with --escalation")
    question = next((each for each in state.questions if wanted in ("", each.id)), None)
    if question is None:
        raise RefusedError(f"escalation {wanted} is not open in issue {state.issue}; open is {names}")
    options = options_of(question)
    if options and given.word not in options:
        raise UsageError(f"{given.word!r} does not answer {question.id}; choose from {', '.join(options)}")
    refuse_bounds(given, "handoffs")
    event: Event
    if question.reason not in ENGINE_REASONS:
        answer = f"{given.word}\n{given.text}".rstrip() if not options else given.word
        event = ev.Answered(sender=sender(USER), question=question.id, answer=answer)
    else:
        facts: dict[str, Any] = {"decision": given.word, "text": given.text, "question": question.id}
        if given.iterations is not None:
            facts["iterations"] = given.iterations
        event = ev.DecisionMade(sender=sender(USER), **facts)
    session.bring(workflow, event)
    tell(look(session, workflow).standing, waits_for="another answer")


def _began(agent: str) -> ev.AgentActivated:
    return ev.AgentActivated(agent=agent, sender=agent)


def _apply_result(handed: Handed) -> None:
    """Apply the agent's questions to a person, and its result; a blocking question ends the run without one."""
    workflow = handed.seen.found.workflow
    try:
        events = list(_events(handed))
    except returns.InvalidReturn as invalid:
        engine, facts = handed.session.engine_of(workflow), (workflow, "agent-returned", str(invalid))
        engine.refuse(*facts, sender=handed.agent, artifacts=handed.artifacts)
        raise
    if not handed.seen.state.agent(handed.agent).started:
        handed.session.bring(workflow, _began(handed.agent))
    for event in events:
        handed.session.bring(workflow, event)


def _events(handed: Handed) -> Iterator[Event]:
    if handed.blocked is not None:
        asked = {"reason": "blocked", "details": handed.blocked}
        yield escalation(handed.agent, asked, handed.artifacts)
        return
    printed = returns.read_questions(handed.text)
    questions = [escalation(handed.agent, asked, handed.artifacts) for asked in printed]
    blocking = [question for question in questions if question.blocking]
    yield from (question for question in questions if not question.blocking)
    if blocking:
        # The workflow waits for the first; the agent repeats the others when it is asked again.
        yield blocking[0].model_copy(update=_left(handed))
        return
    said = returns.read_return(handed.text)
    if said["status"] == HandoffStatus.REJECTED:
        yield rejection(handed.seen.state, handed.agent, said)
        return
    result = returns.fitting("result", returns.Returned, said)
    returns.check_return(handed.agent, result)
    if handed.work:  # without a repository nobody can look for it
        mirror = bring_work(handed.session.store, handed.seen.state, handed.session.settings.cache_dir)
        missing = missing_specification(handed.seen.state, mirror.git, handed.work["tip"], said)
        if missing:
            raise returns.InvalidReturn(missing)
    facts: dict[str, Any] = {"sender": handed.agent, "result": result, "artifacts": handed.artifacts}
    yield ev.AgentReturned(**facts | _left(handed))


def _left(handed: Handed) -> dict[str, Any]:
    return dict(handed.work) | changed(handed.files)


def _reject(session: Session, workflow: str, agent: str, handoff: str, reason: str) -> None:
    seen = look(session, workflow)
    event = rejection(seen.state, OUTSIDE.chosen(seen, agent), {"reason": reason})
    session.bring(workflow, event.model_copy(update={"message_id": handoff or event.message_id}))
    note(f"rejected; issue {seen.standing.issue} waits for a decision: `fixloop inbox`")


def _send(session: Session, workflow: str, said: Said) -> None:
    """Send a handoff before the agent's run ends (D12, D55); the routes determine the recipient."""
    if said.actions or said.criteria or said.about:
        told = "--action, --criterion and --about go with cycles; a handoff passes on one JSON object"
        raise UsageError(told)
    named = said.agent.lower() or sender("")
    if not named:
        raise UsageError("add --agent to say who passes it on")
    check_agent(named)
    try:
        found = json.loads(said.text)
    except ValueError:
        found = said.text
    payload = found if isinstance(found, dict) else {"text": found}
    kind = said.kind or sent_by(named)
    event = ev.HandoffSent(sender=named, to=said.to.lower(), type=kind, payload=payload)
    session.bring(workflow, event)
    note(f"{named} passed it on to {event.to}: {event.type}")


OUTSIDE: Final = Outside(
    began=_began,
    brought=_apply_result,
    accepted=lambda agent, handoff: ev.HandoffAccepted(sender=agent, message_id=handoff),
)
HANDLERS: Final = handlers(OUTSIDE, decide=_decide, send=_send)._replace(reject=_reject)
