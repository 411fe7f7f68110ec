"""Results of VAS: blocking failures start the next iteration or, at the limit, an escalation (C50-C56, G23)."""

from collections import defaultdict

from fixloop.profiles.cycle import conflicts, records as rec
from fixloop.profiles.cycle.blockers import RESOLVERS, categorised, complete, kind_of, milder
from fixloop.profiles.cycle.documents import open_iteration
from fixloop.profiles.cycle.escalations import escalate
from fixloop.profiles.cycle.inputs import send_feedback, start_ready
from fixloop.profiles.cycle.outcome import Draft
from fixloop.profiles.cycle.phase_result import PhaseResult
from fixloop.profiles.cycle.state import Limits
from fixloop.profiles.cycle.workers import worker
from fixloop.protocol.event import ORCHESTRATOR


def validated(draft: Draft, key: str, result: PhaseResult) -> None:
    """Decide what follows a validation."""
    found = _findings(result, draft.state.limits)
    blocking = tuple(issue for level, issue in found if level is rec.Severity.BLOCKER)
    version, iteration = draft.state.version, draft.state.iteration
    # The failures that were sent to be fixed have been validated again (C53, C55).
    left = f"v{version} was validated: {len(blocking)} blocking issues, see {_conflict_id(iteration)}"
    conflicts.validated_again(draft, left if blocking else f"v{version} passed the validation")
    if found:
        content = "\n".join(f"{level}: {issue}" for level, issue in found)
        issues = tuple(issue for _, issue in found)
        present = draft.state.iterations[-1].with_(issues_found=issues, blocking=blocking)
        draft.update(iterations=(*draft.state.iterations[:-1], present))
        target = RESOLVERS.get(kind_of(blocking[0]), "cd") if blocking else ORCHESTRATOR
        draft.record_feedback(key, target, content, is_blocking=bool(blocking))
        conflict = rec.Conflict(
            id=_conflict_id(draft.state.iteration),
            kind=rec.ConflictKind.TEST_FAILURE,
            reporter=key,
            description=content,
        )
        issued = conflicts.listed(
            each for each in draft.state.documents_of(key) if each.at == draft.at and not each.restamped
        )
        steps = ("reported", "issued", "extracted") if issued else ("reported", "extracted")
        conflicts.opened(draft, conflict, *steps, "categorised", documents=issued)
        if not blocking:
            conflicts.add_steps(draft, conflict.id, resolution="recorded; it blocks nothing")
    if not blocking:
        complete(draft, key, result)
        return
    draft.agent(key, status=rec.AgentStatus.WAITING)
    draft.tell(worker(key).name, f"found {len(blocking)} failures in v{version}")
    if iteration < draft.state.max_iterations:
        next_iteration(draft, key, blocking)
        return
    draft.add_remaining(*blocking)
    escalate(draft, "max_iterations", f"{len(blocking)} issues remain after {iteration} iterations", (key,))


def next_iteration(draft: Draft, key: str, blocking: tuple[str, ...]) -> None:
    """Start an iteration: each agent that can fix something gets one feedback with all of it (C22, C53)."""
    by_target: dict[str, list[str]] = defaultdict(list)
    for issue in blocking:
        by_target[RESOLVERS.get(kind_of(issue), "cd")].append(issue)
    open_iteration(draft)
    order = [agent.key for agent in draft.state.agents]
    for target in sorted(by_target, key=order.index):
        upstream = tuple(other for other in by_target if order.index(other) < order.index(target))
        draft.agent(target, status=rec.AgentStatus.WAITING, waits_for=upstream)
        feedback = f"Sending feedback to {worker(target).name}, v{draft.state.version}"
        draft.tell(ORCHESTRATOR.capitalize(), feedback)
        send_feedback(draft, target, tuple(by_target[target]), key)
        conflicts.add_steps(draft, _conflict_id(draft.state.iteration - 1), "sent", resolver=target)
    if by_target and "cd" not in by_target:
        # Development runs again once its dependencies are fixed.
        draft.agent("cd", status=rec.AgentStatus.WAITING, waits_for=tuple(by_target))
    draft.agent(key, waits_for=tuple(by_target))
    start_ready(draft)


def _findings(result: PhaseResult, limits: Limits) -> list[tuple[rec.Severity, str]]:
    """A validation's findings by severity; figures below the limits make a success a failure (U13)."""
    issues = list(map(categorised, result.issues))
    if result.status is not rec.ResultStatus.SUCCESS:
        failed = result.listed("failed_tests") or (result.summary or "the validation failed",)
        return issues or [(rec.Severity.BLOCKER, name) for name in failed]
    below = []
    for name, least in (("test_pass_rate", limits.pass_rate_percent), ("coverage", limits.coverage_percent)):
        value = _number(result.field(name))
        if value is not None and value < least:
            below.append(f"{name} is {value:g} %, below {least:g} %")
    critical = _number(result.field("critical_issues"))
    if critical:
        below.append(f"{critical:g} critical issues are open")
    denied = [(rec.Severity.BLOCKER, reason) for reason in below]
    return [(milder(level), issue) for level, issue in issues] + denied


def _number(text: str) -> float | None:
    try:
        return float(text.strip().rstrip("%").strip())
    except ValueError:
        return None


def _conflict_id(iteration: int) -> str:
    return f"TST-{iteration:03}"
