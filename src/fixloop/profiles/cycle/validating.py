"""Results of VAS: blocking failures open the next iteration or, at the limit, an escalation (C50-C56, G23)."""

from collections import defaultdict

from fixloop.profiles.cycle import blockers as text
from fixloop.profiles.cycle import conflicts, escalating
from fixloop.profiles.cycle.documents import open_iteration
from fixloop.profiles.cycle.outcome import Draft
from fixloop.profiles.cycle.phase_result import PhaseResult
from fixloop.profiles.cycle.records import Conflict, ConflictKind, FeedbackEntry, Severity
from fixloop.profiles.cycle.resolving import complete
from fixloop.profiles.cycle.sending import send_feedback, start_ready
from fixloop.profiles.cycle.state import Cycle, Limits
from fixloop.profiles.cycle.statuses import AgentStatus, ResultStatus
from fixloop.profiles.cycle.workers import worker
from fixloop.protocol.agents import ORCHESTRATOR

_TARGETS = {ConflictKind.UNCLEAR_REQUIREMENT: "ra", ConflictKind.PLAN_MISMATCH: "ep"}


def validated(draft: Draft, key: str, result: PhaseResult) -> None:
    """What follows from a validation."""
    found = _found(result, draft.state.limits)
    blocking = tuple(issue for level, issue in found if level is Severity.BLOCKER)
    _end_earlier(draft, blocking)
    if found:
        _record(draft, key, found, blocking)
    if not blocking:
        complete(draft, key, result)
        return
    draft.agent(key, status=AgentStatus.WAITING)
    draft.tell(worker(key).name, f"found {len(blocking)} failures in v{draft.state.version}")
    if draft.state.iteration >= draft.state.max_iterations:
        known = (*draft.state.remaining_issues, *blocking)
        draft.update(remaining_issues=tuple(dict.fromkeys(known)))
        detail = f"{len(blocking)} issues remain after {draft.state.iteration} iterations"
        escalating.escalate(draft, "max_iterations", detail, (key,))
        return
    next_round(draft, key, blocking)


def next_round(draft: Draft, key: str, blocking: tuple[str, ...]) -> None:
    """Open an iteration: each agent that can fix something gets one feedback with all of it (C22, C53)."""
    by_target: dict[str, list[str]] = defaultdict(list)
    for issue in blocking:
        by_target[_target(draft.state, issue)].append(issue)
    open_iteration(draft)
    for target in sorted(by_target, key=[agent.key for agent in draft.state.agents].index):
        before = tuple(
            other for other in by_target if other != target and _upstream(draft.state, other, target)
        )
        draft.agent(target, status=AgentStatus.WAITING, waits_for=before)
        draft.tell(
            ORCHESTRATOR.capitalize(), f"Sending feedback to {worker(target).name}, v{draft.state.version}"
        )
        send_feedback(draft, target, tuple(by_target[target]), key)
        conflicts.took(draft, _conflict_id(draft.state.iteration - 1), "sent", resolver=target)
    _pass_on(draft, by_target)
    draft.agent(key, waits_for=tuple(by_target))
    start_ready(draft)


def _pass_on(draft: Draft, targets: dict[str, list[str]]) -> None:
    """Development goes again after whoever fixes something that it rests on."""
    upstream = tuple(target for target in targets if target != "cd")
    if upstream and "cd" not in targets:
        draft.agent("cd", status=AgentStatus.WAITING, waits_for=upstream)


def _target(state: Cycle, issue: str) -> str:
    """Who fixes it: development, but for requirements and plan."""
    return _TARGETS.get(text.kind_of(issue), "cd") if issue else "cd"


def _upstream(state: Cycle, other: str, target: str) -> bool:
    order = [agent.key for agent in state.agents]
    return order.index(other) < order.index(target)


def _found(result: PhaseResult, limits: Limits) -> list[tuple[Severity, str]]:
    """What a validation found, by severity; a success that its own figures deny is none (U13)."""
    issues = list(map(text.categorised, result.issues))
    if result.status is ResultStatus.SUCCESS:
        below = [(Severity.BLOCKER, reason) for reason in _below(result, limits)]
        return [(text.milder(level), issue) for level, issue in issues] + below
    if not issues:
        failed = result.listed("failed_tests") or (result.summary or "the validation failed",)
        issues = [(Severity.BLOCKER, name) for name in failed]
    return issues


def _below(result: PhaseResult, limits: Limits) -> list[str]:
    reasons = []
    for name, least in (("test_pass_rate", limits.pass_rate_percent), ("coverage", limits.coverage_percent)):
        value = _number(result.field(name))
        if value is not None and value < least:
            reasons.append(f"{name} is {value:g} %, below {least:g} %")
    critical = _number(result.field("critical_issues"))
    if critical:
        reasons.append(f"{critical:g} critical issues are open")
    return reasons


def _number(text_of_it: str) -> float | None:
    try:
        return float(text_of_it.strip().rstrip("%").strip())
    except ValueError:
        return None


def _record(draft: Draft, key: str, found: list[tuple[Severity, str]], blocking: tuple[str, ...]) -> None:
    """Kept whether or not it re-opens work (C47, C55, C56)."""
    content = "\n".join(f"{level}: {issue}" for level, issue in found)
    issues = tuple(issue for _, issue in found)
    present = draft.state.iterations[-1].model_copy(update={"issues_found": issues, "blocking": blocking})
    draft.update(iterations=(*draft.state.iterations[:-1], present))
    draft.append(
        feedback_log=FeedbackEntry(
            at=draft.at,
            source=key,
            target=_target(draft.state, blocking[0]) if blocking else ORCHESTRATOR,
            content=content,
            type="bug_report",
            iteration=draft.state.iteration,
            blocking=bool(blocking),
        )
    )
    conflict = Conflict(
        id=_conflict_id(draft.state.iteration),
        kind=ConflictKind.TEST_FAILURE,
        reporter=key,
        description=content,
    )
    issued = conflicts.listed(
        each for each in draft.state.documents_of(key) if each.at == draft.at and not each.restamped
    )
    steps = ("reported", "issued", "extracted") if issued else ("reported", "extracted")
    conflicts.opened(draft, conflict, *steps, "categorised", documents=issued)
    if not blocking:
        conflicts.closed(draft, conflict.id, "recorded; it blocks nothing")


def _end_earlier(draft: Draft, blocking: tuple[str, ...]) -> None:
    """The failures that were sent to be fixed have been validated again (C53, C55)."""
    version = draft.state.version
    left = f"v{version} was validated: {len(blocking)} blocking issues, see {_conflict_id(draft.state.iteration)}"
    conflicts.validated_again(draft, left if blocking else f"v{version} passed the validation")


def _conflict_id(iteration: int) -> str:
    return f"TST-{iteration:03}"
