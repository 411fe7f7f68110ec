"""Agents that complete, and blockers on the way: sent to who can resolve them, cleared (C46-C49, C52, C54)."""

from fixloop.profiles.cycle import blockers as text
from fixloop.profiles.cycle import conflicts, escalating
from fixloop.profiles.cycle.messages import Input
from fixloop.profiles.cycle.outcome import Draft
from fixloop.profiles.cycle.phase_result import PhaseResult
from fixloop.profiles.cycle.records import Blocker, Conflict, FeedbackEntry, InputKind
from fixloop.profiles.cycle.sending import ask_anew, primary, send, send_ready, start_ready
from fixloop.profiles.cycle.settling import record_decision, resolve
from fixloop.profiles.cycle.state import Cycle
from fixloop.profiles.cycle.statuses import AgentStatus, BlockerStatus
from fixloop.profiles.cycle.workers import worker
from fixloop.protocol.agents import ORCHESTRATOR


def complete(draft: Draft, key: str, result: PhaseResult) -> None:
    """An agent is done: what it resolves is cleared, who waited is told (C40, C46, C49)."""
    agent = draft.state.agent(key)
    iterations = tuple(sorted({*agent.completed_in, draft.state.iteration}))
    draft.agent(key, status=AgentStatus.COMPLETED, completed_at=draft.at, completed_in=iterations)
    version = primary(draft.state, key)[1]
    draft.tell(worker(key).name, f"{result.summary or 'Completed'}, v{version}")
    conflicts.fixed(draft, key)
    if key != "vas":
        _record_issues(draft, key, result.issues)
    for blocker in _given_to(draft.state, key):
        _answer(draft, blocker, key, result)
    for other in draft.state.agents:
        if key in other.waits_for:
            left = tuple(name for name in other.waits_for if name != key)
            draft.agent(other.key, waits_for=left)
    for other in draft.state.agents:
        waits = key in other.depends_on and other.status is not AgentStatus.COMPLETED
        if waits and not other.asked and draft.state.can_start(other.key):
            send_ready(draft, other.key, key)
    start_ready(draft)
    finish_when_complete(draft)


def finish_when_complete(draft: Draft) -> None:
    """The orchestrator ends the cycle when all are completed and nothing is open (C50, C51)."""
    state = draft.state
    open_ = state.open_blockers() or state.escalations
    if not open_ and all(agent.status is AgentStatus.COMPLETED for agent in state.agents):
        draft.ask_to_finish()


def blocked(draft: Draft, key: str, result: PhaseResult) -> None:
    """An agent could not go on: each issue becomes a blocker, and goes to who can clear it (C52, C54, C57, G27)."""
    issues = result.issues or result.listed("blockers") or (result.summary or f"{key} ended {result.status}",)
    draft.agent(key, status=AgentStatus.WAITING)
    for issue in issues:
        _block(draft, key, text.categorised(issue)[1])
    start_ready(draft)


def _block(draft: Draft, key: str, issue: str) -> None:
    kind = text.kind_of(issue)
    blocker = Blocker(
        id=f"BLK-{len(draft.state.blockers) + 1:03}",
        at=draft.at,
        description=issue,
        reported_by=key,
        kind=kind,
    )
    resolver = _resolver(draft.state, blocker)
    if resolver is not None:
        blocker = blocker.model_copy(update={"before": conflicts.content_of(draft.state, resolver)})
    draft.append(blockers=blocker)
    draft.tell(worker(key).name, f"found blocker {blocker.id}: {issue}")
    conflict = Conflict(id=blocker.id, kind=kind, reporter=key, description=issue)
    conflicts.opened(draft, conflict, "reported", "extracted")
    if resolver is None:
        escalating.escalate(draft, "blocker", f"{key}: {issue}", (key,), blockers=(blocker.id,))
        return
    waits = (*draft.state.agent(key).waits_for, resolver)
    draft.agent(key, waits_for=tuple(dict.fromkeys(waits)))
    _ask_resolver(draft, blocker, resolver)


def _resolver(state: Cycle, blocker: Blocker) -> str | None:
    """
    Who can clear it.

    Nobody, where it was cleared before or too often already, whoever could takes no part, is the agent itself, or waits
    for it in turn: both would wait for ever.
    """
    resolver = text.RESOLVERS.get(blocker.kind)
    earlier = [old for old in state.blockers if old.reported_by == blocker.reported_by and old.blocked]
    again = any(old.description == blocker.description for old in earlier)
    taking = [agent.key for agent in state.agents]
    if resolver not in taking or again or len(earlier) >= state.max_iterations:
        return None
    return None if blocker.reported_by in _awaited(state, resolver) else resolver


def _awaited(state: Cycle, key: str) -> set[str]:
    """An agent, and all that it waits for, directly or through others."""
    found, left = set[str](), [key]
    while left:
        agent = left.pop()
        if agent not in found:
            found.add(agent)
            left.extend(state.agent(agent).waits_for)
    return found


def _ask_resolver(draft: Draft, blocker: Blocker, resolver: str) -> None:
    file, version = primary(draft.state, resolver)
    _clarify(draft, resolver, blocker, file, version, (f"Resolve {blocker.id}: {blocker.description}",))
    conflicts.took(draft, blocker.id, "sent", resolver=resolver)
    agent = draft.state.agent(resolver)
    if not agent.asked:
        ask_anew(draft, resolver)


def _given_to(state: Cycle, key: str) -> tuple[Blocker, ...]:
    """The open blockers that this agent was asked to clear."""
    return tuple(
        blocker
        for blocker in state.open_blockers()
        if text.RESOLVERS.get(blocker.kind) == key and key in state.agent(blocker.reported_by).waits_for
    )


def _answer(draft: Draft, blocker: Blocker, key: str, result: PhaseResult) -> None:
    """A new version whose content changed resolves it; whoever changed nothing has resolved nothing (C49, C52)."""
    before, content = blocker.before, conflicts.content_of(draft.state, key)
    if before is not None and set(content) <= set(before):
        detail = f"{key} answered {blocker.id} and changed nothing: {blocker.description}"
        escalating.escalate(draft, "blocker", detail, (blocker.reported_by,), blockers=(blocker.id,))
        return
    decision = result.field("decision") or result.summary
    resolve(draft, blocker, decision, result.field("resolution") or decision)
    reason = (
        result.field("rationale")
        or f"{worker(key).name} resolved {blocker.id} reported by {blocker.reported_by}"
    )
    impact = result.field("impact") or f"Affects what {worker(blocker.reported_by).name} does"
    record_decision(draft, key, blocker.description, decision, reason, impact)
    changed = [each for each in draft.state.documents_of(key) if each.digest not in (before or ())]
    file, version = (f"{key}/{changed[0].name}", changed[0].version) if changed else primary(draft.state, key)
    more_tasks = any(entry.startswith("TASK-") for entry in set(content) - set(before or content))
    steps = ("updated", "issued", "added") if more_tasks else ("updated", "issued")
    conflicts.took(draft, blocker.id, *steps, resolver=key, documents=conflicts.listed(changed))
    _clarify(
        draft, blocker.reported_by, blocker, file, version, (f"Go on with {blocker.id} resolved: {decision}",)
    )
    conflicts.took(draft, blocker.id, "clarified", resolution=decision)


def _record_issues(draft: Draft, key: str, issues: tuple[str, ...]) -> None:
    """What an agent names beside its success re-opens nothing, and nobody may lose it (C47, C55)."""
    found = list(map(text.categorised, issues))
    if not found:
        return
    for level, issue in found:
        remark = Blocker(
            id=f"BLK-{len(draft.state.blockers) + 1:03}",
            at=draft.at,
            description=issue,
            reported_by=key,
            kind=text.kind_of(issue),
            status=BlockerStatus.WORKAROUND,
            resolution=f"named beside a success ({text.milder(level)}); it blocked nothing",
        )
        draft.append(blockers=remark)
        conflict = Conflict(id=remark.id, kind=remark.kind, reporter=key, description=issue)
        conflicts.opened(draft, conflict, "reported", "extracted")
        conflicts.closed(draft, remark.id, "recorded; it blocks nothing")
    entry = FeedbackEntry(
        at=draft.at,
        source=key,
        target=ORCHESTRATOR,
        content="\n".join(f"{text.milder(level)}: {issue}" for level, issue in found),
        type="bug_report",
        iteration=draft.state.iteration,
        blocking=False,
    )
    draft.append(feedback_log=entry)
    known = (*draft.state.remaining_issues, *(issue for _, issue in found))
    draft.update(remaining_issues=tuple(dict.fromkeys(known)))


def _clarify(
    draft: Draft, recipient: str, blocker: Blocker, file: str, version: str, actions: tuple[str, ...]
) -> None:
    body = Input(
        input=InputKind.CLARIFICATION,
        source=worker(blocker.reported_by).name,
        summary=f"{blocker.id}: {blocker.description}",
        file=file,
        version=version,
        actions=actions,
        criteria=(f"{blocker.id} is resolved",),
        next_step="Go on from where you are.\nOutput PHASE_RESULT when complete.",
        previous_iteration=draft.state.iteration,
        current_iteration=draft.state.iteration,
    )
    send(draft, recipient, body, blocker.id)
