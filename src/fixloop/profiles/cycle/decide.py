"""The decisions of the `cycle` profile (C1-C67; K10, K11, K15-K17, K23).

The orchestrator is this function: agents only report (C5, C6).
"""

from typing import Final

from fixloop.errors import UsageError
from fixloop.profiles.cycle import conflicts, escalations, events as ev, records as rec
from fixloop.profiles.cycle.blockers import blocked, complete
from fixloop.profiles.cycle.documents import check_files, keep_report, log_tasks
from fixloop.profiles.cycle.inputs import ask_run, input_requested, send, start_ready
from fixloop.profiles.cycle.iterations import next_iteration, validated
from fixloop.profiles.cycle.messages import Guidance, Reported
from fixloop.profiles.cycle.outcome import Draft, Outcome
from fixloop.profiles.cycle.phase_result import InvalidResult
from fixloop.profiles.cycle.plan import completed, revised
from fixloop.profiles.cycle.state import SCHEMA_VERSION, Agent, Cycle
from fixloop.profiles.cycle.workers import DEFAULT_GRAPH, check_graph, worker
from fixloop.protocol import agent_decisions
from fixloop.protocol.agent_events import AgentFailed, DeadlineReached, DeliveryFailed
from fixloop.protocol.event import ORCHESTRATOR, USER, Event, Moment, Repeated, Unexpected

DECIDE_VERSION: Final = 3
"""Raised when the same event in the same state has another outcome; `audit verify` replays only its own version."""


def decide(state: Cycle | None, event: Event, now: Moment) -> Outcome:
    """Decide `event`. Raises Unexpected: it does not fit; InvalidResult: it is no valid PHASE_RESULT; Moved: its work
    is based on an older commit; UsageError: an impossible cycle, or an agent that takes no part."""
    return agent_decisions.decide(_RULES, state, event, now)


def _start(event: ev.CycleStarted, now: Moment) -> Draft:
    graph = event.graph or DEFAULT_GRAPH
    check_graph(graph)
    unknown = sorted(event.commands.keys() - graph.keys())
    if unknown:
        raise UsageError(f"there is a command for {', '.join(unknown)}, who takes no part in this cycle")
    if event.max_iterations < 1:
        raise UsageError(f"max_iterations is {event.max_iterations}; a cycle needs at least 1")
    agents = tuple(
        Agent(key=key, depends_on=tuple(needed), command=event.commands.get(key, ""))
        for key, needed in graph.items()
    )
    taken = event.model_dump(exclude={"kind", "sender", "graph", "commands", "limits"})
    state = Cycle(
        profile="cycle",
        schema_version=SCHEMA_VERSION,
        **taken,
        limits=event.limits,
        agents=agents,
        iterations=(rec.IterationRecord(number=1, version="1.0.0", started_at=now.at),),
        started_at=now.at,
        last_at=now.at,
    )
    draft = Draft(state, now)
    draft.tell(ORCHESTRATOR.capitalize(), "Created cycle")
    start_ready(draft)
    return draft


def _restored(event: ev.CycleRestored, now: Moment) -> Draft:
    before = Cycle.model_validate(event.state)
    draft = agent_decisions.restored(_RULES, before, now)
    draft.tell(ORCHESTRATOR.capitalize(), f"Rebuilt the cycle from its files, v{before.version}")
    for agent in before.agents:
        if agent.asked and agent.converging and not agent.command:
            draft.set_deadline(f"converge/{agent.key}", draft.clock + before.limits.converge_seconds)
    waits = before.escalations or before.open_blockers() or before.closing
    if before.all_completed and not waits:
        draft.ask_to_finish()
    return draft


def _started(draft: Draft, event: ev.AgentStarted) -> None:
    agent = escalations.asked(draft, event.agent)
    if agent.status is rec.AgentStatus.RUNNING:
        raise Repeated(f"{agent.key} is running already")
    _begin(draft, agent)


def _begin(draft: Draft, agent: Agent) -> None:
    draft.agent(agent.key, status=rec.AgentStatus.RUNNING, started_at=draft.at, completed_at=None, begun=True)
    if not agent.begun:
        rests_on = [
            f"{worker(key).name} v{draft.state.primary(key)[1]}"
            for key in agent.depends_on
            if draft.state.completed(key)
        ]
        after = f" (depends on {', '.join(rests_on)})" if rests_on else ""
        what = "started" if agent.runs - agent.invalid == 1 else "continues"
        draft.tell(worker(agent.key).name, f"{worker(agent.key).role} {what}{after}")
    conflicts.resumed(draft, agent.key)


def _reported(draft: Draft, event: ev.PhaseReported) -> None:
    result, key = event.result, event.result.phase
    if key != event.sender:
        raise InvalidResult(f"{event.sender} reports for phase {key!r}; an agent reports its own phase only")
    agent = draft.state.agent(key)
    if not agent.asked:
        raise Unexpected(f"{key} reports, but nothing was asked of it; it stands at {agent.status}")
    check_files(draft.state, event)
    # EP writes the plan, CD completes its tasks (C54, C61, S19).
    plan = draft.state.plan
    try:
        if event.plan is not None and key == "ep":
            plan = revised(plan, event.plan)
        if key == "cd" and plan:
            plan = completed(plan, event.result.listed("tasks_completed"))
    except UsageError as error:
        raise InvalidResult(str(error)) from None
    before = {task.id for task in draft.state.plan if task.status is rec.TaskStatus.COMPLETED}
    draft.update(plan=plan)
    after = [task.id for task in plan if task.status is rec.TaskStatus.COMPLETED]
    done = [task_id for task_id in after if task_id not in before]
    draft.advance(event.base, event.tip)
    if agent.status is not rec.AgentStatus.RUNNING:
        _begin(draft, agent)
    draft.stop_clock(key)
    draft.agent(key, asked=False, converging=False, invalid=0)
    keep_report(draft, event)
    log_tasks(draft, key, done)
    body = Reported(result=result, version=draft.state.primary(key)[1])
    draft.say(body, sender=key, recipient=ORCHESTRATOR, summary=result.summary)
    if key == "vas":
        validated(draft, key, result)
    elif result.status is rec.ResultStatus.SUCCESS:
        complete(draft, key, result)
    else:
        blocked(draft, key, result)


def _finished(draft: Draft, event: ev.CycleFinished) -> None:
    left = [agent.key for agent in draft.state.agents if agent.status is not rec.AgentStatus.COMPLETED]
    if left:
        raise Unexpected(f"cycle {draft.state.cycle_id} cannot complete: {', '.join(left)} is not completed")
    open_ = [blocker.id for blocker in draft.state.open_blockers()]
    if open_ or draft.state.escalations:
        what = ", ".join(open_) or "an escalation"
        raise Unexpected(f"cycle {draft.state.cycle_id} cannot complete: {what} is open")
    escalations.close(draft, "success")


def _written(draft: Draft, event: ev.StateWritten) -> None:
    what = f" (it changed {event.field})" if event.field else ""
    raise Unexpected(f"only the orchestrator writes the state of a cycle; {event.sender} may read it{what}")


def _decided(draft: Draft, event: ev.DecisionMade) -> None:
    opened = draft.state.escalation
    if opened is None:
        raise Unexpected(f"nothing of cycle {draft.state.cycle_id} waits for a decision")
    if event.sender != USER:
        raise Unexpected(f"{event.sender} cannot decide; the escalation is the user's")
    if event.decision == "manual-fix" and not event.text.strip():
        raise Unexpected("manual-fix goes on with your guidance; say it in a sentence")
    draft.update(escalations=draft.state.escalations[1:])
    body = Guidance(escalation_id=opened.id, decision=event.decision, text=event.text)
    draft.say(body, sender=USER, recipient=ORCHESTRATOR, summary=event.text or event.decision)
    draft.tell(USER.capitalize(), f"Decided {event.decision}: {event.text}".rstrip(": "))
    named = ", ".join(worker(key).name for key in opened.agents)
    reason = event.text or f"the user chose {event.decision} without a reason"
    chosen = event.text or event.decision
    draft.record_decision(USER, opened.detail, chosen, rationale=reason, impact=f"Affects {named}")
    if event.decision == "abort":
        draft.add_remaining(opened.detail)
        escalations.end(draft, rec.CycleStatus.FAILED, "aborted")
    elif event.decision == "skip":
        _skip(draft, opened, event)
    else:
        _go_on(draft, opened, event)
    if not draft.state.ended and draft.state.escalation is not None:
        escalations.announce(draft, draft.state.escalation)


def _go_on(draft: Draft, opened: rec.OpenEscalation, event: ev.DecisionMade) -> None:
    """Continue after guidance or a retry: the stopped agents resume; the others were never stopped (C59)."""
    _settle_blockers(draft, opened, event.text or "go on", rec.BlockerStatus.RESOLVED)
    if opened.reason == "max_iterations":
        more = event.iterations if event.decision == "extend" else 1
        issues = draft.state.iterations[-1].blocking
        known = tuple(issue for issue in draft.state.remaining_issues if issue not in issues)
        if event.decision == "manual-fix":
            issues = (*issues, event.text)
        draft.update(max_iterations=draft.state.max_iterations + more, remaining_issues=known)
        next_iteration(draft, opened.agents[0], issues)
        return
    for key in opened.agents:
        if event.text:
            _guide(draft, key, opened, event.text)
            for identity in opened.blockers:
                conflicts.add_steps(draft, identity, "clarified")
        if not draft.state.agent(key).asked and not draft.state.open_blockers(key):
            ask_run(draft, key)
    start_ready(draft)


def _skip(draft: Draft, opened: rec.OpenEscalation, event: ev.DecisionMade) -> None:
    """Keep the known issues and continue the cycle without fixing them (K20)."""
    _settle_blockers(draft, opened, event.text or "left as it is", rec.BlockerStatus.WORKAROUND)
    if opened.reason == "max_iterations":
        escalations.close(draft, "skipped")
        return
    for key in opened.agents:
        _guide(draft, key, opened, f"Leave it and go on without: {opened.detail}")
        ask_run(draft, key)
    draft.update(remaining_issues=(*draft.state.remaining_issues, opened.detail))
    start_ready(draft)


def _settle_blockers(
    draft: Draft, opened: rec.OpenEscalation, resolution: str, status: rec.BlockerStatus
) -> None:
    for blocker in draft.state.open_blockers():
        if blocker.id in opened.blockers:
            draft.resolve(blocker, resolution, status)
            conflicts.add_steps(draft, blocker.id, resolution=resolution)


def _guide(draft: Draft, key: str, opened: rec.OpenEscalation, guidance: str) -> None:
    send(
        draft,
        key,
        rec.InputKind.CLARIFICATION,
        opened.id,
        source="USER",
        summary=guidance,
        document=draft.state.primary(key),
        actions=(guidance,),
        criteria=("What the guidance says holds",),
        next_step="Go on from where you stopped.",
    )


_RULES: Final[agent_decisions.Rules[Cycle, Draft]] = agent_decisions.Rules(
    noun="cycle",
    called=lambda state: f"cycle {state.cycle_id}",
    draft=Draft,
    starts={ev.CycleStarted: _start, ev.CycleRestored: _restored},
    end=lambda draft, status, outcome: escalations.end(draft, rec.CycleStatus(status), outcome),
    handlers={
        ev.AgentStarted: _started,
        ev.PhaseReported: _reported,
        ev.AnswerInvalid: escalations.answer_invalid,
        AgentFailed: escalations.failed,
        ev.InputRequested: input_requested,
        ev.StateWritten: _written,
        ev.CycleFinished: _finished,
        DeliveryFailed: escalations.undelivered,
        DeadlineReached: escalations.deadline_reached,
        ev.DecisionMade: _decided,
    },
)
