"""Issues: their kind and who can resolve them; sending and clearing blockers, completing agents (C46-C57, G23)."""

import re
from typing import Any, Final

from fixloop.profiles.cycle import conflicts, records as rec
from fixloop.profiles.cycle.escalations import escalate
from fixloop.profiles.cycle.inputs import ask_run, send, send_ready, start_ready
from fixloop.profiles.cycle.outcome import Draft
from fixloop.profiles.cycle.phase_result import PhaseResult
from fixloop.profiles.cycle.state import Cycle
from fixloop.profiles.cycle.workers import worker
from fixloop.protocol.event import ORCHESTRATOR

RESOLVERS: Final = {rec.ConflictKind.UNCLEAR_REQUIREMENT: "ra", rec.ConflictKind.PLAN_MISMATCH: "ep"}
"""The agents that can resolve an issue without a person (C57)."""

_NAMED: Final = {
    "unclear requirement": rec.ConflictKind.UNCLEAR_REQUIREMENT,
    "requirement": rec.ConflictKind.UNCLEAR_REQUIREMENT,
    "plan mismatch": rec.ConflictKind.PLAN_MISMATCH,
    "plan": rec.ConflictKind.PLAN_MISMATCH,
    "user": rec.ConflictKind.OTHER,
    "decision": rec.ConflictKind.OTHER,
}
_PREFIX: Final = re.compile(r"^\s*[\[(]?([A-Za-z][A-Za-z -]*?)[\])]?\s*:\s*(.*)$", re.DOTALL)
_REQUIREMENT: Final = re.compile(
    r"\b(?:N?FR|AC|EC)-\d+\b|\b(?:unclear|ambiguous)\b.*\brequirement", re.IGNORECASE
)
_PLAN: Final = re.compile(r"\bTASK-\d+\b|\bplan(?:\.json)?\b", re.IGNORECASE)
_SEVERITY: Final = re.compile(
    r"^\s*[\[(]?(?a:(blocker|critical|major|minor|low))[\])]?\s*:?\s+(.*)$", re.IGNORECASE | re.DOTALL
)
_SAME: Final = {"critical": "blocker", "low": "minor"}


def categorised(issue: str) -> tuple[rec.Severity, str]:
    """An issue's severity, and its text without the severity; a blocker if it names none (G23)."""
    found = _SEVERITY.match(issue)
    if found is None:
        return rec.Severity.BLOCKER, issue.strip()
    word = found[1].lower()
    return rec.Severity(_SAME.get(word, word)), found[2].strip()


def milder(level: rec.Severity) -> rec.Severity:
    """Lower the severity of an issue that comes with a success, so that it re-opens no work unless it says so."""
    return rec.Severity.MAJOR if level is rec.Severity.BLOCKER else level


def kind_of(issue: str) -> rec.ConflictKind:
    """Whether it concerns a requirement or the plan: by the word before its colon, else by the ids it contains."""
    prefix = _PREFIX.match(issue)
    named = _NAMED.get(prefix[1].lower().replace("-", " ")) if prefix else None
    if named is not None:
        return named
    if _REQUIREMENT.search(issue):
        return rec.ConflictKind.UNCLEAR_REQUIREMENT
    return rec.ConflictKind.PLAN_MISMATCH if _PLAN.search(issue) else rec.ConflictKind.OTHER


def complete(draft: Draft, key: str, result: PhaseResult) -> None:
    """Complete an agent: clear the blockers it resolves and notify the agents that wait for it (C40, C46, C49)."""
    iterations = tuple(sorted({*draft.state.agent(key).completed_in, draft.state.iteration}))
    draft.agent(key, status=rec.AgentStatus.COMPLETED, completed_at=draft.at, completed_in=iterations)
    version = draft.state.primary(key)[1]
    draft.tell(worker(key).name, f"{result.summary or 'Completed'}, v{version}")
    conflicts.fixed(draft, key)
    if key != "vas" and result.issues:
        found = [(milder(level), issue) for level, issue in map(categorised, result.issues)]
        for level, issue in found:
            remark = _new_blocker(
                draft,
                key,
                issue,
                status=rec.BlockerStatus.WORKAROUND,
                resolution=f"named beside a success ({level}); it blocked nothing",
            )
            conflicts.add_steps(draft, remark.id, resolution="recorded; it blocks nothing")
        content = "\n".join(f"{level}: {issue}" for level, issue in found)
        draft.record_feedback(key, ORCHESTRATOR, content, is_blocking=False)
        draft.add_remaining(*(issue for _, issue in found))
    for blocker in draft.state.open_blockers():
        was_given = RESOLVERS.get(blocker.kind) == key
        if was_given and key in draft.state.agent(blocker.reported_by).waits_for:
            _answer(draft, blocker, key, result)
    for other in draft.state.agents:
        if key in other.waits_for:
            draft.agent(other.key, waits_for=tuple(name for name in other.waits_for if name != key))
    for other in draft.state.agents:
        waits = key in other.depends_on and other.status is not rec.AgentStatus.COMPLETED
        if waits and not other.asked and draft.state.can_start(other.key):
            send_ready(draft, other.key, key)
    start_ready(draft)
    if draft.state.all_completed and not draft.state.open_blockers() and not draft.state.escalations:
        draft.ask_to_finish()


def blocked(draft: Draft, key: str, result: PhaseResult) -> None:
    """An agent is blocked: each issue becomes a blocker, sent to the agent that can clear it (C52, C54, C57, G27)."""
    issues = result.issues or result.listed("blockers") or (result.summary or f"{key} ended {result.status}",)
    draft.agent(key, status=rec.AgentStatus.WAITING)
    for _, issue in map(categorised, issues):
        resolver = _resolver(draft.state, key, issue)
        before = conflicts.content_of(draft.state, resolver) if resolver is not None else None
        blocker = _new_blocker(draft, key, issue, before=before)
        draft.tell(worker(key).name, f"found blocker {blocker.id}: {issue}")
        if resolver is None:
            escalate(draft, "blocker", f"{key}: {issue}", (key,), blockers=(blocker.id,))
            continue
        draft.agent(key, waits_for=tuple(dict.fromkeys((*draft.state.agent(key).waits_for, resolver))))
        _clarify(draft, resolver, blocker, draft.state.primary(resolver), f"Resolve {blocker.id}: {issue}")
        conflicts.add_steps(draft, blocker.id, "sent", resolver=resolver)
        if not draft.state.agent(resolver).asked:
            ask_run(draft, resolver)
    start_ready(draft)


def _resolver(state: Cycle, key: str, issue: str) -> str | None:
    """The agent that can clear an issue. None if the issue was cleared before or too often, or if that agent takes no
    part, is the reporter itself, or waits for the reporter, directly or through others."""
    resolver = RESOLVERS.get(kind_of(issue))
    earlier = [old for old in state.blockers if old.reported_by == key and old.blocked]
    again = any(old.description == issue for old in earlier)
    if resolver not in [agent.key for agent in state.agents] or again or len(earlier) >= state.max_iterations:
        return None
    awaited, left = set[str](), [resolver]
    while left:
        agent = left.pop()
        if agent not in awaited:
            awaited.add(agent)
            left.extend(state.agent(agent).waits_for)
    return None if key in awaited else resolver


def _answer(draft: Draft, blocker: rec.Blocker, key: str, result: PhaseResult) -> None:
    """A version with changed content resolves the blocker; an unchanged one resolves nothing (C49, C52)."""
    before, content = blocker.before, conflicts.content_of(draft.state, key)
    reporter = blocker.reported_by
    if before is not None and set(content) <= set(before):
        detail = f"{key} answered {blocker.id} and changed nothing: {blocker.description}"
        escalate(draft, "blocker", detail, (reporter,), blockers=(blocker.id,))
        return
    decision = result.field("decision") or result.summary
    draft.resolve(blocker, result.field("resolution") or decision)
    reason = f"{worker(key).name} resolved {blocker.id} reported by {reporter}"
    draft.record_decision(
        key,
        blocker.description,
        decision,
        rationale=result.field("rationale") or reason,
        impact=result.field("impact") or f"Affects what {worker(reporter).name} does",
    )
    changed = [each for each in draft.state.documents_of(key) if each.digest not in (before or ())]
    document = (f"{key}/{changed[0].name}", changed[0].version) if changed else draft.state.primary(key)
    more_tasks = any(entry.startswith("TASK-") for entry in set(content) - set(before or content))
    steps = ("updated", "issued", "added") if more_tasks else ("updated", "issued")
    conflicts.add_steps(draft, blocker.id, *steps, resolver=key, documents=conflicts.listed(changed))
    _clarify(draft, reporter, blocker, document, f"Go on with {blocker.id} resolved: {decision}")
    conflicts.add_steps(draft, blocker.id, "clarified", resolution=decision)


def _clarify(
    draft: Draft, recipient: str, blocker: rec.Blocker, document: tuple[str, str], action: str
) -> None:
    send(
        draft,
        recipient,
        rec.InputKind.CLARIFICATION,
        blocker.id,
        source=worker(blocker.reported_by).name,
        summary=f"{blocker.id}: {blocker.description}",
        document=document,
        actions=(action,),
        criteria=(f"{blocker.id} is resolved",),
        next_step="Go on from where you are.",
    )


def _new_blocker(draft: Draft, key: str, issue: str, **facts: Any) -> rec.Blocker:
    blocker = rec.Blocker(
        id=f"BLK-{len(draft.state.blockers) + 1:03}",
        at=draft.at,
        description=issue,
        reported_by=key,
        kind=kind_of(issue),
        **facts,
    )
    draft.append(blockers=blocker)
    conflict = rec.Conflict(id=blocker.id, kind=blocker.kind, reporter=key, description=issue)
    conflicts.opened(draft, conflict, "reported", "extracted")
    return blocker
