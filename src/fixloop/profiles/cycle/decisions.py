"""A person's answer to an escalation and what follows from it (C57-C59, G11, K20)."""

from fixloop.profiles.cycle import conflicts
from fixloop.profiles.cycle import events as ev
from fixloop.profiles.cycle.escalations import announce, close, end
from fixloop.profiles.cycle.inputs import ask_run, send, start_ready
from fixloop.profiles.cycle.iterations import next_iteration
from fixloop.profiles.cycle.messages import Guidance
from fixloop.profiles.cycle.outcome import Draft
from fixloop.profiles.cycle.records import BlockerStatus, CycleStatus, InputKind, OpenEscalation
from fixloop.profiles.cycle.workers import worker
from fixloop.protocol.agents import ORCHESTRATOR, USER
from fixloop.protocol.refusals import Unexpected


def decided(draft: Draft, event: ev.DecisionMade) -> None:
    """A person decided (C57, K20). Unexpected: nothing waits for it, somebody else answers, or guidance is empty."""
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
        end(draft, CycleStatus.FAILED, "aborted")
    elif event.decision == "skip":
        _skip(draft, opened, event)
    else:
        _go_on(draft, opened, event)
    if not draft.state.ended and draft.state.escalation is not None:
        announce(draft, draft.state.escalation)


def _go_on(draft: Draft, opened: OpenEscalation, event: ev.DecisionMade) -> None:
    """Guidance, or another try: the agents that stood still resume, all others were never stopped (C59)."""
    _settle_blockers(draft, opened, event.text or "go on", BlockerStatus.RESOLVED)
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


def _skip(draft: Draft, opened: OpenEscalation, event: ev.DecisionMade) -> None:
    """The known issues stay known, and the cycle goes on without fixing them (K20)."""
    _settle_blockers(draft, opened, event.text or "left as it is", BlockerStatus.WORKAROUND)
    if opened.reason == "max_iterations":
        close(draft, "skipped")
        return
    for key in opened.agents:
        _guide(draft, key, opened, f"Leave it and go on without: {opened.detail}")
        ask_run(draft, key)
    draft.update(remaining_issues=(*draft.state.remaining_issues, opened.detail))
    start_ready(draft)


def _settle_blockers(draft: Draft, opened: OpenEscalation, resolution: str, status: BlockerStatus) -> None:
    for blocker in draft.state.open_blockers():
        if blocker.id in opened.blockers:
            draft.resolve(blocker, resolution, status)
            conflicts.closed(draft, blocker.id, resolution)


def _guide(draft: Draft, key: str, opened: OpenEscalation, guidance: str) -> None:
    send(
        draft,
        key,
        InputKind.CLARIFICATION,
        opened.id,
        source="USER",
        summary=guidance,
        document=draft.state.primary(key),
        actions=(guidance,),
        criteria=("What the guidance says holds",),
        next_step="Go on from where you stopped.",
    )
