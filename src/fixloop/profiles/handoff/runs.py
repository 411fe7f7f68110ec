"""Runs of agents: activated, working, done or failed (D32-D40, D54-D56, K5)."""

from collections.abc import Mapping
from typing import Any, Final

from fixloop.profiles.handoff import events as ev
from fixloop.profiles.handoff.outcome import Draft
from fixloop.profiles.handoff.questions import ask_person
from fixloop.profiles.handoff.records import Message
from fixloop.profiles.handoff.returns import InvalidReturn, Returned, check_return, fitting
from fixloop.profiles.handoff.routes import HandoffStatus, HandoffType, check_agent, receiver, sent_by
from fixloop.profiles.handoff.state import Agent, Handoffs
from fixloop.protocol.agent_events import AgentFailed, DeadlineReached
from fixloop.protocol.event import ORCHESTRATOR, Unexpected

_SAID: Final = ("reason", "details", "options", "context", "blocking")
"""The fields of an agent's question."""
_PAYLOADS: Final = {
    HandoffType.TASK_HANDOFF: ("spec", "priority", "context"),
    HandoffType.REVIEW_REQUEST: ("spec", "commit", "files_changed", "tests_added"),
    HandoffType.FIX_REQUEST: ("issues", "priority"),
    HandoffType.REREVIEW_REQUEST: ("issues_fixed", "commits", "iteration"),
}


def activated(draft: Draft, event: ev.AgentActivated) -> None:
    """An agent starts an attempt and accepts its pending handoff (D32); the planner has none (D33)."""
    agent = _asked(draft, event.agent)
    waiting = draft.state.pending_for(agent.name)
    if waiting is not None and not agent.handoff:
        _take(draft, waiting)
    _begin(draft, agent.name)


def accept(draft: Draft, event: ev.HandoffAccepted) -> None:
    """An agent accepts a handoff: only its recipient may, and only once (D17, D18); else Unexpected."""
    message = _addressed(draft, event, "accept")
    if message.status is not HandoffStatus.PENDING:
        raise Unexpected(f"handoff {message.message_id} is {message.status} already")
    if draft.state.agent(event.sender).handoff:
        raise Unexpected(f"{event.sender} works on another handoff; it is completed first")
    _take(draft, message)
    if draft.state.agent(event.sender).asked:
        _begin(draft, event.sender)


def _addressed(draft: Draft, event: ev.HandoffAccepted | ev.HandoffRejected, verb: str) -> Message:
    check_agent(event.sender)
    message = draft.state.message(event.message_id)
    if message.recipient != event.sender:
        ends = f"{message.recipient}; {event.sender} cannot {verb} it"
        raise Unexpected(f"handoff {message.message_id} is for {ends}")
    return message


def _take(draft: Draft, message: Message) -> None:
    draft.move(message, HandoffStatus.ACCEPTED)
    draft.agent(message.recipient, handoff=message.message_id)
    draft.record("handoff_accepted", message.recipient, message.message_id)


def _begin(draft: Draft, name: str) -> None:
    agent = draft.agent(name, status="active", last_active=draft.at)
    draft.update(current_agent=name)
    if not agent.started:
        draft.record("agent_started", name)
        draft.agent(name, started=True)


def reject(draft: Draft, event: ev.HandoffRejected) -> None:
    """A handoff is refused: notify the orchestrator, and let a person decide (G9)."""
    message = _addressed(draft, event, "reject")
    draft.move(message, HandoffStatus.REJECTED, event.reason)
    draft.drop(event.sender)
    draft.agent(event.sender, status="idle", handoff="")
    draft.note(f"{event.sender} rejected handoff {message.message_id}: {event.reason}")
    ask_person(draft, event.sender, "handoff_rejected", event.reason)


def rejection(state: Handoffs, name: str, said: Mapping[str, Any]) -> ev.HandoffRejected:
    """The event by which an agent rejects its current or pending handoff. InvalidReturn: no handoff, or no reason."""
    handoff, waiting = state.agent(name).handoff, state.pending_for(name)
    message_id = handoff or (waiting.message_id if waiting is not None else "")
    if not message_id:
        told = f"{name} has no handoff that it could reject; status failed says that it cannot go on"
        raise InvalidReturn(told)
    reason = str(said.get("reason") or "").strip()
    if not reason:
        raise InvalidReturn(f"{name} rejects its handoff without a reason; give one")
    return ev.HandoffRejected(sender=name, message_id=message_id, reason=reason)


def escalation(name: str, asked: Mapping[str, Any], artifacts: tuple[str, ...]) -> ev.AgentEscalated:
    """The event by which an agent asks a person (D41). InvalidReturn: the question or the reason is missing."""
    said = {key: asked[key] for key in _SAID if key in asked}
    return fitting("escalation", ev.AgentEscalated, said | {"sender": name, "artifacts": artifacts})


def sent(draft: Draft, event: ev.HandoffSent) -> None:
    """An agent sends a handoff by itself, which activates the recipient (D55)."""
    agent = draft.state.agent(event.sender)
    if not agent.started or agent.status != "active":
        raise Unexpected(f"{event.sender} is not at work; whoever passes something on has done it")
    draft.send(event.type, event.sender, event.to, event.payload)
    draft.agent(agent.name, last_active=draft.at)


def returned(draft: Draft, event: ev.AgentReturned) -> None:
    """An agent is done: handoff to the next one, its status, its result, in this order (D35). InvalidReturn: the result
    does not fit this agent (D56); Moved: its work is based on an older commit."""
    agent = _asked(draft, event.sender)
    check_return(agent.name, event.result)
    draft.advance(event.base, event.tip)
    if not agent.started:
        activated(draft, ev.AgentActivated(agent=agent.name))
    draft.keep_files(event)
    result = event.result
    draft.update(spec=result.spec or draft.state.spec, commit=result.commit or draft.state.commit)
    following = sent_by(agent.name) if result.status != "approved" else None
    used_up = following is HandoffType.FIX_REQUEST and draft.state.iteration >= draft.state.max_iterations
    if following is not None and not used_up:
        if following is HandoffType.REREVIEW_REQUEST:
            draft.update(iteration=draft.state.iteration + 1)
        # The agent may have sent its handoff already.
        passed_on = (agent.name, following, HandoffStatus.PENDING)
        if all((m.sender, m.type, m.status) != passed_on for m in draft.state.messages):
            draft.send(following, agent.name, receiver(following), payload(draft, following, result))
    handoff = draft.state.agent(agent.name).handoff
    if handoff:
        draft.move(draft.state.message(handoff), HandoffStatus.COMPLETED)
    draft.clear_deadlines(f"run/{agent.name}")
    draft.agent(agent.name, status="completed", last_active=draft.at, handoff="", asked=False, answer="")
    draft.record("agent_completed", agent.name, result.status)
    facts = result.model_dump(mode="json", exclude_defaults=True)
    draft.send(HandoffType.COMPLETION, agent.name, ORCHESTRATOR, facts)
    if following is None:
        draft.close("success")
    elif used_up:
        left = () if isinstance(result.issues, int) else map(str, result.issues)
        draft.update(remaining_issues=tuple(left) or (f"{result.issue_count} issues",))
        detail = f"{result.issue_count} issues are left after {draft.state.iteration} reviews"
        ask_person(draft, "reviewer", "max_iterations", detail)
    else:
        draft.activate(receiver(following))


def payload(draft: Draft, kind: HandoffType, result: Returned) -> Mapping[str, Any]:
    """The payload of each kind of handoff (U15)."""
    state, issues = draft.state, result.issues
    facts = {
        "spec": state.spec,
        "commit": result.commit,
        "priority": state.priority.value,
        "issues": issues if isinstance(issues, int) else list(issues),
        "iteration": state.iteration,
    }
    given = {"context": {}} | result.further | facts
    return {name: given.get(name, []) for name in _PAYLOADS[kind]}


def failed(draft: Draft, event: AgentFailed) -> None:
    """Retry a recoverable error with growing pauses; after a fatal or the last one, ask a person (D37-D40). The handoff
    stays accepted, so that nothing is lost (D36)."""
    agent, limits = _asked(draft, event.agent), draft.state.limits
    draft.record("error_occurred", agent.name, event.reason)
    draft.clear_deadlines(f"run/{agent.name}")
    if event.fatal or agent.attempt >= limits.attempts:
        draft.agent(agent.name, asked=False, last_active=draft.at)
        ask_person(draft, agent.name, "fatal_error" if event.fatal else "retries_exhausted", event.reason)
        return
    draft.agent(agent.name, attempt=agent.attempt + 1, last_active=draft.at)
    draft.ask(agent.name, delay_seconds=limits.backoff_seconds(agent.attempt))


def heartbeat(draft: Draft, event: ev.Heartbeat) -> None:
    """An agent is still working; this extends no lock (D34, G18)."""
    agent = draft.state.agent(event.sender)
    if agent.status != "active":
        raise Unexpected(f"{event.sender} is {agent.status}; only who is active has a heartbeat")
    draft.agent(event.sender, last_active=draft.at)


def overdue(draft: Draft, event: DeadlineReached) -> None:
    """An agent's run took longer than a lock's lease (G15)."""
    name = event.name.partition("/")[2]
    agent = draft.state.agent(name)
    if not agent.asked:
        raise Unexpected(f"{event.name} no longer matters: {name} is {agent.status}")
    draft.drop(name)
    draft.record("error_occurred", name, "timeout")
    seconds = draft.state.limits.seconds_of(name) or 0.0
    ask_person(draft, name, "timeout", f"{name} did not return within {seconds / 60:g} minutes")


def _asked(draft: Draft, name: str) -> Agent:
    agent = draft.state.agent(name)
    if not agent.asked:
        raise Unexpected(f"nothing was asked of {name}; it is {agent.status}")
    return agent
