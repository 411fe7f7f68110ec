"""Questions to a person, and the effects of the answers (D38-D46, K20, K27, K33)."""

from typing import Final

from fixloop.profiles.handoff import events as ev
from fixloop.profiles.handoff.outcome import Draft
from fixloop.profiles.handoff.records import Question
from fixloop.profiles.handoff.routes import HandoffStatus, HandoffType
from fixloop.profiles.handoff.shared_state import settle
from fixloop.protocol.agent_decisions import unreached
from fixloop.protocol.agent_events import DeliveryFailed
from fixloop.protocol.event import ORCHESTRATOR, USER, Unexpected

ENGINE_REASONS: Final = (
    *("max_iterations", "retries_exhausted", "fatal_error", "timeout"),
    *("handoff_rejected", "communication_error"),
)
"""Settled by a decision, not by an answer."""


def ask_person(draft: Draft, agent: str, reason: str, details: str) -> None:
    """Ask a person about what retries or reviews could not settle; the workflow stops until a decision (D38, D40)."""
    number = draft.state.question_id
    _open(draft, Question(id=number, agent=agent, reason=reason, details=details, blocking=True, at=draft.at))


def undelivered(draft: Draft, event: DeliveryFailed) -> None:
    """Ask a person about an agent that no mailbox reaches and that has not started by itself (A70, K5, K12)."""
    agent = unreached(draft, event)
    if agent is not None and agent.status != "active":
        draft.drop(agent.name)
        draft.record("error_occurred", agent.name, event.error)
        ask_person(draft, agent.name, "communication_error", f"{agent.name} was not reached: {event.error}")


def escalated(draft: Draft, event: ev.AgentEscalated) -> None:
    """An agent asks a question; a person answers it through the orchestrator (D41, D42, K27)."""
    agent = draft.state.agent(event.sender)
    if not agent.started or agent.status != "active":
        raise Unexpected(f"{event.sender} is not at work; only who works can escalate")
    draft.advance(event.base, event.tip)
    draft.keep_files(event)
    if event.blocking:
        draft.drop(agent.name)
    said = event.model_dump(include={"reason", "details", "options", "context", "blocking"})
    _open(draft, Question(id=draft.state.question_id, agent=agent.name, at=draft.at, **said))


def _open(draft: Draft, question: Question) -> None:
    payload = question.model_dump(mode="json", include={"reason", "details", "context", "blocking"})
    payload["options"] = list(question.options)
    draft.send(HandoffType.ESCALATION, question.agent, ORCHESTRATOR, payload)
    draft.notify()
    draft.record("escalation_triggered", question.agent, question.reason)
    draft.update(questions=(*draft.state.questions, question))
    if question.blocking:
        draft.update(status="paused")


def answered(draft: Draft, event: ev.Answered) -> None:
    """A person answers an agent's question, and the agent continues with the answer (D43)."""
    state = draft.state
    question = next((each for each in state.questions if event.question in ("", each.id)), None)
    if question is None:
        what = f"question {event.question}" if event.question else "nothing"
        raise Unexpected(f"{what} of workflow {state.workflow} waits for an answer")
    if event.sender != USER:
        raise Unexpected(f"{event.sender} cannot answer; the question is the user's")
    if question.reason in ENGINE_REASONS:
        raise Unexpected(f"{question.id} ({question.reason}) is settled by manual-fix, skip, abort or extend")
    if question.options and event.answer not in question.options:
        raise Unexpected(f"{event.answer!r} is none of the options: {', '.join(question.options)}")
    if not event.answer.strip():
        raise Unexpected("an empty answer says nothing; give one")
    _close(draft, question)
    if question.field:
        settle(draft, question, event.answer)
    else:
        _resume(draft, question, event.answer)


def decided(draft: Draft, event: ev.DecisionMade) -> None:
    found = (q for q in draft.state.questions if q.reason in ENGINE_REASONS)
    question = next((q for q in found if event.question in ("", q.id)), None)
    if question is None:
        what = f"escalation {event.question}" if event.question else "nothing"
        raise Unexpected(f"{what} of workflow {draft.state.workflow} waits for a decision")
    if event.sender != USER:
        raise Unexpected(f"{event.sender} cannot decide; the escalation is the user's")
    _close(draft, question)
    if event.decision == "abort":
        draft.end("failed", "aborted")
    elif event.decision == "skip":
        draft.update(remaining_issues=tuple(dict.fromkeys((*draft.state.remaining_issues, question.details))))
        draft.close("skipped")
    else:
        if question.reason == "handoff_rejected" and draft.state.pending_for(question.agent) is None:
            # A rejected handoff stays rejected (D16): a copy is sent, with the person's answer.
            received = (m for m in reversed(draft.state.messages) if m.recipient == question.agent)
            last = next((m for m in received if m.status is HandoffStatus.REJECTED), None)
            if last is not None:
                draft.send(last.type, last.sender, last.recipient, last.payload)
        if question.reason != "max_iterations":
            _resume(draft, question, event.text)
            return
        more = event.iterations if event.decision == "extend" else 1
        draft.update(max_iterations=draft.state.max_iterations + more)
        payload = {"issues": list(draft.state.remaining_issues), "priority": draft.state.priority.value}
        draft.send(HandoffType.FIX_REQUEST, "reviewer", "fixer", payload)
        draft.update(remaining_issues=())
        _activate(draft, "fixer", event.text)


def _close(draft: Draft, question: Question) -> None:
    draft.update(questions=tuple(q for q in draft.state.questions if q is not question))
    if draft.state.blocking() is None and draft.state.paused_clock is None:
        draft.update(status="running")


def _resume(draft: Draft, question: Question, answer: str) -> None:
    """Continue the agent that asked with the answer; one that did not wait finds it at its next run."""
    if question.blocking:
        _activate(draft, question.agent, answer)
    else:
        draft.agent(question.agent, answer=answer)


def _activate(draft: Draft, name: str, answer: str) -> None:
    agent = draft.state.agent(name)
    is_at_work = agent.status == "active" and (bool(agent.handoff) or agent.started)
    draft.activate(name, started=is_at_work, answer=answer)
