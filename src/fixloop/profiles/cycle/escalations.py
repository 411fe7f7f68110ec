"""Failed, late and invalid runs, the escalations they lead to, and the end (C35, C57, C58, G2, G15, K5)."""

from fixloop.profiles.cycle import conflicts, events as ev, records as rec
from fixloop.profiles.cycle.inputs import send
from fixloop.profiles.cycle.messages import Ended, Escalation, Violation
from fixloop.profiles.cycle.outcome import Draft
from fixloop.profiles.cycle.state import Agent
from fixloop.protocol import agent_decisions
from fixloop.protocol.agent_events import AgentFailed, DeadlineReached, DeliveryFailed
from fixloop.protocol.event import ORCHESTRATOR, USER, Unexpected


def escalate(
    draft: Draft,
    reason: rec.EscalationReason,
    detail: str,
    agents: tuple[str, ...],
    blockers: tuple[str, ...] = (),
) -> None:
    """Ask a person; these agents stop until the decision, all others continue (S22)."""
    opened = rec.OpenEscalation(
        id=f"ESC-{draft.state.cycle_id}-{draft.state.sequence + 1}",
        reason=reason,
        detail=detail,
        agents=agents,
        blockers=blockers,
        at=draft.at,
    )
    for key in agents:
        draft.drop(key)
        if draft.state.agent(key).status is not rec.AgentStatus.COMPLETED:
            draft.agent(key, status=rec.AgentStatus.WAITING)
    draft.append(escalations=opened)
    if draft.state.escalation == opened:
        announce(draft, opened)


def announce(draft: Draft, opened: rec.OpenEscalation) -> None:
    """Send the user the escalation that has to be decided next."""
    body = Escalation(
        escalation_id=opened.id,
        reason=opened.reason,
        detail=opened.detail,
        agents=opened.agents,
        remaining_issues=draft.state.remaining_issues,
    )
    draft.say(body, recipient=USER, summary=f"A decision is needed: {opened.detail}")
    draft.notify()
    draft.tell(ORCHESTRATOR.capitalize(), f"Escalated to the user: {opened.detail}")


def failed(draft: Draft, event: AgentFailed) -> None:
    """A run failed: retry with growing pauses, then ask a person (K5, G19)."""
    agent = asked(draft, event.agent)
    limits = draft.state.limits
    draft.note(f"{event.agent} failed, attempt {agent.attempt}: {event.reason}")
    draft.stop_clock(event.agent)
    if event.fatal or agent.attempt >= limits.attempts:
        draft.agent(event.agent, asked=False, status=rec.AgentStatus.FAILED)
        reason: rec.EscalationReason = "fatal_error" if event.fatal else "retries_exhausted"
        escalate(draft, reason, f"{event.agent}: {event.reason}", (event.agent,))
        return
    draft.agent(event.agent, attempt=agent.attempt + 1, status=rec.AgentStatus.WAITING)
    draft.ask(event.agent, delay_seconds=limits.backoff_seconds(agent.attempt))


def answer_invalid(draft: Draft, event: ev.AnswerInvalid) -> None:
    """There is no valid PHASE_RESULT: ask for it again, then ask a person (C35, G2)."""
    agent = asked(draft, event.agent)
    draft.stop_clock(event.agent)
    invalid = agent.invalid + 1
    draft.say(Violation(problem=event.problem), recipient=event.agent, summary=event.problem)
    if invalid >= draft.state.limits.responses:
        draft.agent(event.agent, invalid=invalid, asked=False)
        escalate(draft, "invalid_response", f"{event.agent}: {event.problem}", (event.agent,))
        return
    draft.agent(event.agent, runs=agent.runs + 1, attempt=1, invalid=invalid, status=rec.AgentStatus.WAITING)
    draft.ask(event.agent)


def asked(draft: Draft, key: str) -> Agent:
    """The agent, if it is asked for work; else Unexpected."""
    agent = draft.state.agent(key)
    if not agent.asked:
        raise Unexpected(f"nothing was asked of {key}; it stands at {agent.status}")
    return agent


def undelivered(draft: Draft, event: DeliveryFailed) -> None:
    """Ask a person about an agent that no mailbox reaches and that has not started by itself (A70, K5, K12)."""
    agent = agent_decisions.unreached(draft, event)
    if agent is not None and agent.status is not rec.AgentStatus.RUNNING:
        escalate(draft, "communication_error", f"{agent.key} was not reached: {event.error}", (agent.key,))


def deadline_reached(draft: Draft, event: DeadlineReached) -> None:
    """A run is late: send one request to converge, then ask a person (G7: a timer acts strictly after; G15, U13)."""
    what, _, key = event.name.partition("/")
    agent = draft.state.agent(key)
    if not agent.asked:
        raise Unexpected(f"{event.name} no longer matters: {key} stands at {agent.status}")
    if what != "run" or agent.converging:
        detail = f"{key} did not report within its time, nor after the request to converge"
        escalate(draft, "timeout", detail, (key,))
        return
    seconds = draft.state.limits.converge_seconds
    send(
        draft,
        key,
        rec.InputKind.CONVERGENCE,
        f"{agent.runs}.{agent.attempt}",
        source=ORCHESTRATOR,
        summary=f"The run's time is over; {seconds / 60:g} minutes are left to come to an end",
        actions=("Finish what you are at, write your documents and report what is left as issues",),
        criteria=("PHASE_RESULT is reported",),
    )
    draft.agent(key, converging=True)
    draft.set_deadline(f"converge/{key}", draft.clock + seconds)


def close(draft: Draft, outcome: str) -> None:
    """End successfully; push the branch before, if that was requested."""
    agent_decisions.close(draft, outcome, lambda how: end(draft, rec.CycleStatus.COMPLETED, how))


def end(draft: Draft, status: rec.CycleStatus, outcome: str) -> None:
    """End the cycle: no work or deadline is left, and every conflict has a resolution (C55)."""
    draft.withdraw()
    for conflict in draft.state.conflicts:
        if not conflict.resolution:
            conflicts.add_steps(draft, conflict.id, resolution=f"open when the cycle ended: {outcome}")
    draft.update(status=status, outcome=outcome, ended_at=draft.at, closing="")
    body = Ended(
        outcome=outcome,
        version=draft.state.version,
        iterations=draft.state.iteration,
        remaining_issues=draft.state.remaining_issues,
    )
    draft.say(body, recipient=USER, summary=f"Cycle {status}, v{draft.state.version}")
    draft.tell(ORCHESTRATOR.capitalize(), f"Cycle {status}, v{draft.state.version}")
