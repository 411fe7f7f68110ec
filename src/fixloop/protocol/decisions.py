"""The decisions of people on escalations: four answers, or six on an integrity hold (A13, A14, K20)."""

from typing import Final

from fixloop.errors import UsageError
from fixloop.protocol import fixes, holds, results
from fixloop.protocol.event import Unexpected
from fixloop.protocol.events import Cancelled, DecisionMade, ManualFixDone
from fixloop.protocol.ids import called
from fixloop.protocol.messages import MAIN_AGENT, Decision, Reason
from fixloop.protocol.outcome import Draft
from fixloop.protocol.roles import WrongParty
from fixloop.protocol.specialists import Role, Status, specialist as slot
from fixloop.protocol.state import Completion, OpenEscalation, OperationName, WorkflowOutcome

# A year: more is a typing error, and no number means no limit.
LONGEST_MINUTES: Final = 366 * 24 * 60
_OF_A_FIX: Final = {"by", "summary", "files", "tip", "tree", "marks", "diff", "diff_artifact"}
"""The fields that a completion and a manual fix share."""


def decision_made(draft: Draft, event: DecisionMade) -> None:
    opened = draft.state.escalation
    if opened is None:
        raise Unexpected(f"workflow {draft.state.workflow} waits for no decision")
    if opened.decision is not None:
        raise Unexpected(
            f"{opened.message_id} was decided already ({opened.decision}); hand the fix in with"
            f" `fixloop fixed {called(draft.state)} --here`"
        )
    if event.escalation not in ("", opened.message_id):
        raise Unexpected(f"{event.escalation} was decided already; open is {opened.message_id}")
    if event.sender == MAIN_AGENT != opened.target:
        told = f"{opened.message_id} is not for {MAIN_AGENT} to decide; it waits for {opened.target}"
        raise WrongParty(told)
    if event.decision not in opened.reason.decisions:
        raise UsageError(
            f"{event.decision} answers an integrity hold, and {opened.message_id} is none; decide "
            f"{', '.join(opened.reason.decisions)}"
        )
    # An extension by nothing would reach its limit at once, or exceed it (A92).
    if event.iterations is not None and event.iterations < 1:
        raise UsageError(f"extend by at least 1 iteration, not by {event.iterations}")
    if event.minutes is not None and not 0 < event.minutes <= LONGEST_MINUTES:
        told = f"extend by more than 0 and at most {LONGEST_MINUTES} minutes, not by {event.minutes}"
        raise UsageError(told)
    if (event.until or event.owner) and event.decision is not Decision.SKIP:
        raise UsageError(f"an expiry and an owner go with skip, not with {event.decision}")
    if event.owner and not event.until:
        raise UsageError(f"{event.owner} looks after it until when; give the last day, too")
    if event.until and event.until <= f"{draft.at:%Y-%m-%d}":
        raise UsageError(f"a skip until {event.until} is over already; use a later day")
    draft.note(f"decision on {opened.message_id} by {event.by}: {event.decision} {event.reason}".rstrip())
    draft.update(epoch=draft.state.epoch + 1)
    _record_decision(draft, f"{event.decision} by {event.by}")
    if opened.reason is Reason.SPECIALIST_ERROR:
        # The person knows what is wrong, perhaps with the environment, and continues with it as it is.
        draft.update(environments={})
    if event.decision is Decision.SKIP:
        _skip(draft, opened, event)
    elif event.decision is Decision.ABORT:
        draft.end(WorkflowOutcome.ABORTED)
        draft.note("returned to the design phase")
    elif event.decision is Decision.EXTEND:
        _extend(draft, opened, event)
    elif event.decision is Decision.ACCEPT:
        # The files of this tree judge from now on.
        state = draft.state
        draft.note(f"accepted tree {state.tree[:12]}: from now on it is {state.tip[:12]} that judges")
        accepted = (*state.accepted, state.tree)
        draft.update(paused=False, escalation=None, trusted=state.tip, accepted=accepted)
        _run_again(draft)
    elif event.decision is Decision.REJECT:
        draft.update(paused=False, escalation=None)
        results.rejected(draft, opened, event.reason)
    else:
        _manual_fix(draft, opened, event)


def _record_decision(draft: Draft, decided: str) -> None:
    # Workflows that began before integrity holds existed have no such list.
    if draft.state.trusted:
        draft.update(decided=(*draft.state.decided, decided))


def _skip(draft: Draft, opened: OpenEscalation, event: DecisionMade) -> None:
    active, last = draft.state.active, draft.state.active.last_run
    found = draft.state.failures if last is None or last.passed else last.failures
    unknown = "never verified" if last is None else "not verified on the final tree"
    named = tuple(failure.name for failure in found) or (unknown,)
    issues = tuple(f"held: {rule}" for rule in holds.rules_of(opened.findings)) or named
    draft.update_specialist(active.name, skipped=True, known_issues=issues)
    draft.note(f"{active.name}: failed but proceeding; known issues: {', '.join(issues)}")
    if event.until:
        owner = event.owner or event.by
        draft.update_specialist(active.name, waiver=f"{event.until} {owner}")
        draft.note(f"{active.name}: accepted until {event.until}; {owner} looks after it")
    draft.move(Status.COMPLETED, Role.ORCHESTRATOR, "skipped by a person: failed but proceeding")
    draft.update(paused=False, escalation=None, failures=(), failure_count=0, kept=None)
    results.go_on(draft)


def _extend(draft: Draft, opened: OpenEscalation, event: DecisionMade) -> None:
    state = draft.state
    minutes = event.minutes if event.minutes is not None else state.limits.extend_minutes
    draft.update(paused=False, escalation=None)
    if opened.reason in (Reason.MAX_ITERATIONS, Reason.DEADLOCK):
        # More runs, a new window for the deadlock check, and the open failure reported again (K7, K20).
        active = state.active
        more = active.max_iterations + (event.iterations or state.limits.extra_iterations)
        draft.update_specialist(active.name, max_iterations=more, window_start=active.iteration)
        draft.update(confirm_rounds=0, confirm_failed=())
        if active.has_passed:
            # A confirmation failed at the last run; it becomes run n+1 now (K37).
            fixes.trigger(draft, ("fixes of later phases",))
        else:
            draft.ask("report")
    elif opened.reason in (Reason.SPECIALIST_ERROR, Reason.INTEGRITY_HOLD):
        _run_again(draft)
    elif opened.reason is Reason.TIMEOUT:
        _give_time(draft, opened, minutes * 60)
    else:
        _resume_fix(draft)


def _resume_fix(draft: Draft) -> None:
    """Continue with a kept completion if there is one, else deliver the open report again."""
    kept = draft.state.kept
    if kept is None:
        draft.ask("report")
        return
    draft.move(Status.AWAITING_FIX, Role.ORCHESTRATOR, "a completion that arrived meanwhile is taken up")
    fixes.take_completion(draft, kept)


def _run_again(draft: Draft, seconds: float | None = None) -> None:
    """Repeat the same run number with fresh attempts (K20); a confirmation stays a confirmation (K37)."""
    step = draft.state.active.step
    status = Status.RE_CHECKING if step == "confirm" else Status.IN_PROGRESS
    draft.move(status, Role.SPECIALIST, "the same run again")
    operation = OperationName.REVALIDATION if step == "recheck" else OperationName.VALIDATION
    draft.ask(step, operation=operation, limit_seconds=seconds)


def _give_time(draft: Draft, opened: OpenEscalation, seconds: float) -> None:
    """Give the interrupted operation, and with it the iteration, `seconds` more (K19, K20)."""
    interrupted, limits = opened.interrupted, draft.state.limits
    if interrupted is Status.IN_PROGRESS or draft.state.active.has_passed:
        _run_again(draft, seconds)
        return
    draft.start_iteration(seconds if limits.iteration_seconds is not None else None)
    if draft.state.kept is not None:
        _resume_fix(draft)
    elif interrupted is Status.RE_CHECKING:
        draft.move(interrupted, Role.SPECIALIST, "more time was given")
        draft.ask("recheck", operation=OperationName.REVALIDATION, limit_seconds=seconds)
    else:
        role = Role.MAIN_AGENT if interrupted is Status.FIXING else Role.ORCHESTRATOR
        draft.move(interrupted, role, "more time was given")
        if draft.state.fixer == "command":
            draft.update(attempts=1, answers=0)
            draft.ask("fix", operation=OperationName.FIX, limit_seconds=seconds)
        else:
            draft.expect_fix(seconds)


def _manual_fix(draft: Draft, opened: OpenEscalation, event: DecisionMade) -> None:
    if opened.reason is Reason.SPECIALIST_ERROR:
        # The error is outside the loop's reach (a missing tool, a wrong command), so the run is repeated at once.
        _trust(draft, event)
        _reread(draft, event)
        draft.update(paused=False, escalation=None)
        _run_again(draft)
        return
    draft.update(escalation=opened.model_copy(update={"decision": Decision.MANUAL_FIX}))
    kept = draft.state.kept
    if kept is not None:
        _record_manual_fix(draft, ManualFixDone(**kept.model_dump(include=_OF_A_FIX)))


def manual_fix_done(draft: Draft, event: ManualFixDone) -> None:
    """A person finished a manual fix: the maximum grows by exactly one and run n+1 is requested (K20, S14)."""
    opened = draft.state.escalation
    if opened is None or opened.decision is not Decision.MANUAL_FIX:
        raise Unexpected(
            f"workflow {draft.state.workflow} waits for no manual fix; "
            "decide `manual-fix` first if an escalation is open"
        )
    _trust(draft, event)
    _record_manual_fix(draft, event)


def _trust(draft: Draft, event: DecisionMade | ManualFixDone) -> None:
    """Trust a tree that only a person has changed since the trusted commit, but none with an agent's changes."""
    state = draft.state
    if event.tip and state.trusted and state.trusted == state.tip:
        draft.update(trusted=event.tip)


def _record_manual_fix(draft: Draft, event: ManualFixDone) -> None:
    active = draft.state.active
    _reread(draft, event)
    summary = f"manual fix by {event.by}" + (f": {event.summary}" if event.summary else "")
    draft.note(f"{summary} ({', '.join(event.files) or 'no file changed'})")
    said = event.model_dump(include=_OF_A_FIX - {"summary"})
    completion = Completion(iteration=active.iteration, fixes=(summary,), **said)
    fixes.record_fix(draft, completion)
    draft.update_specialist(active.name, max_iterations=active.max_iterations + 1)
    draft.update(paused=False, escalation=None, escalate_on_failure=True)
    fixes.trigger(draft, completion.fixes)


def _reread(draft: Draft, event: DecisionMade | ManualFixDone) -> None:
    """Take over changed gates, which the log records, and installed tools."""
    draft.update(environments={})
    if event.tip:
        draft.update(tip=event.tip, tree=event.tree)
    if not event.configuration or event.configuration == draft.state.configuration:
        return
    applicable = {slot(name).name for name in event.specialists}
    _record_decision(draft, f"gates re-read by {event.by}")
    draft.note(f"configuration re-read: {draft.state.configuration[:12]} → {event.configuration[:12]}")
    draft.update(configuration=event.configuration, unverified=event.unverified)
    if event.limits is not None:
        draft.update(limits=event.limits)
    for entry in draft.state.specialists:
        if applicable and entry.status is Status.PENDING:
            draft.update_specialist(entry.name, applicable=entry.name in applicable)


def cancelled(draft: Draft, event: Cancelled) -> None:
    """End the workflow with its current status (K20)."""
    draft.note(f"cancelled by {event.by} {event.reason}".rstrip())
    draft.end(WorkflowOutcome.CANCELLED)
