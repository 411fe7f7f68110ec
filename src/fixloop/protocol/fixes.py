"""The main agent's side of the loop: report, receipt, completion, and errors (A4-A8, A70-A73)."""

from collections import Counter

from fixloop.protocol import delivery, events as ev, ids, messages as msg
from fixloop.protocol.event import Repeated, Unexpected
from fixloop.protocol.failure_report import listed_failures, report_of, request_of
from fixloop.protocol.failures import count_of
from fixloop.protocol.notices import escalate, say_error, say_recovered
from fixloop.protocol.outcome import Draft
from fixloop.protocol.rendering import render_answer_format
from fixloop.protocol.specialists import WITH_MAIN_AGENT, Role, Status, specialist as slot
from fixloop.protocol.state import Completion, OperationName, PendingError, SpecialistState

LAST_LINES = 3
LAST_CHARACTERS = 300


def report_delivered(draft: Draft, event: ev.ReportDelivered) -> None:
    """Send VFR and FIXREQ together and start the iteration's clock (K6, K9)."""
    state, active = draft.state, draft.state.active
    if (
        (event.specialist, event.iteration) != (active.name, active.iteration)
        or active.status not in (Status.FAIL, Status.ESCALATED)
        or state.paused
    ):
        raise Unexpected(f"{active.name} is {active.status}: there is no failure to report")
    before, who = active.status, slot(active.name)
    draft.move(Status.AWAITING_FIX, Role.ORCHESTRATOR, "failure report sent")
    # One delivery and one line with the request attached, or two lines if the setting says so.
    listed, named = listed_failures(draft.state), ids.request_id(state.issue, active.iteration)
    request = request_of(draft.state, who, listed)
    asks, bundled = f"Fix {count_of(state.failure_count)} of {who.phase}", state.bundle_fix_request
    attached = draft.attachment(request, named, summary=asks, recipient=msg.MAIN_AGENT) if bundled else None
    report = draft.say(
        report_of(draft.state, who, listed),
        ids.report_id(state.issue, active.name, active.iteration),
        summary=f"{count_of(state.failure_count)} in run {active.iteration}/{active.max_iterations}",
        recipient=msg.MAIN_AGENT,
        priority=msg.priority_of(state.severity),
        before=before,
        attached=attached,
    )
    if not bundled:
        draft.say(request, named, summary=asks, recipient=msg.MAIN_AGENT)
    draft.update(reported_clock=draft.clock, attempts=1, answers=0)
    draft.start_iteration(state.limits.iteration_seconds)
    delivery.hand_over(draft, report)


def acknowledged(draft: Draft, event: ev.FixAcknowledged) -> None:
    """A receipt is not a line of the log: AWAITING_FIX becomes FIXING (G1)."""
    active, opened = _awaiting_specialist(draft, event), draft.state.delivery
    if event.uid and opened is not None and event.uid != opened.uid:
        # It names another report than the open one, and acknowledges nothing.
        raise Unexpected(
            f"this is a receipt of message {event.uid}; open is {opened.message_id}, {opened.uid}"
        )
    draft.note(f"receipt by {event.by} of {ids.report_id(draft.state.issue, active.name, active.iteration)}")
    delivery.record_receipt(draft, event.by)
    if draft.state.fixer == "outside" and draft.state.operation is None:
        # The agent read the report from the state before its mailbox had it.
        draft.expect_fix(draft.state.limits.fix_seconds)
    if active.status is Status.AWAITING_FIX:
        draft.move(Status.FIXING, Role.MAIN_AGENT, f"{event.by} has the report")
        if active.error is not None and active.error.error_type is msg.ErrorType.COMMUNICATION:
            say_recovered(draft)
        if draft.state.fixer == "command":
            # A command has the report when it starts (G1): its time in a queue does not count (K34).
            draft.start_iteration(draft.state.limits.iteration_seconds)


def completed(draft: Draft, event: ev.FixCompleted) -> None:
    """Confirm a FIXDONE and trigger the re-validation at once (A6, B33-B37)."""
    active, completion, opened = draft.state.active, event.completion, draft.state.escalation
    if (event.specialist, completion.iteration) != (active.name, active.iteration):
        # No open request: an invalid response (A8); a repetition is ignored (R8).
        state, number = draft.state, completion.iteration
        violation = f"{ids.completion_id(state.issue, number)} of {event.specialist} answers no open request"
        stands = f"{violation}; {active.name} is {active.status} in run {active.iteration}"
        if any(each.name == event.specialist and 1 <= number <= each.iteration for each in state.specialists):
            raise Repeated(stands)
        if active.status not in WITH_MAIN_AGENT:
            raise Unexpected(stands)
        violation += f"; open is {ids.request_id(state.issue, active.iteration)} of {active.name}"
        rejected = ev.AnswerRejected(
            specialist=active.name, iteration=active.iteration, violations=(violation,)
        )
        answer_rejected(draft, rejected)
    elif opened is not None:
        # The escalation interrupted the wait for it: the next extend or manual-fix uses it (K20).
        named = ids.completion_id(draft.state.issue, completion.iteration)
        if opened.interrupted not in WITH_MAIN_AGENT or opened.decision is not None:
            raise Unexpected(
                f"{named} answers no open request: "
                f"{opened.message_id} waits for a person; decide `manual-fix` to bring in a fix"
            )
        if draft.state.kept == completion:
            raise Repeated(f"{named} is kept already")
        draft.note(f"a completion by {completion.by} arrived while paused and is kept")
        draft.update(kept=completion)
    elif active.status in WITH_MAIN_AGENT:
        take_completion(draft, completion)
    else:
        raise _none_awaited(active)


def _awaiting_specialist(draft: Draft, event: ev.FixAcknowledged | ev.FixFailed) -> SpecialistState:
    active = draft.state.active
    asked = (event.specialist, event.iteration) == (active.name, active.iteration)
    if not asked or active.status not in WITH_MAIN_AGENT:
        raise _none_awaited(active)
    return active


def _none_awaited(active: SpecialistState) -> Unexpected:
    return Unexpected(f"no fix is awaited: {active.name} is {active.status} in run {active.iteration}")


def take_completion(draft: Draft, completion: Completion) -> None:
    """Record the completion, trigger run n+1 and restart the clock that a reminder stopped (K6)."""
    state, active = draft.state, draft.state.active
    reminded = state.operation is not None and state.operation.reminded_clock is not None
    if active.status is Status.AWAITING_FIX:
        draft.move(Status.FIXING, Role.MAIN_AGENT, f"{completion.by} has the report")
    delivery.record_receipt(draft, completion.by)
    say_recovered(draft)
    since = state.reported_clock if state.reported_clock is not None else draft.clock
    count = len(completion.files)
    files = f"{count} file" if count == 1 else f"{count} files"
    if completion.unchanged or completion.unnamed:
        files += "; its answer names others"
    draft.say(
        msg.FixCompletion(
            specialist=active.name,
            duration_seconds=draft.clock - since,
            **completion.model_dump(include={"summary", "fixes", "files", "marks", "unchanged", "unnamed"}),
        ),
        ids.completion_id(state.issue, active.iteration),
        summary=f"{completion.summary or 'Fix completed'} ({files})",
        sender=msg.MAIN_AGENT,
        recipient=msg.ORCHESTRATOR,
    )
    record_fix(draft, completion)
    draft.finish_operation()
    if reminded or state.iteration_clock is None:
        draft.start_iteration(state.limits.iteration_seconds)
    trigger(draft, completion.fixes)


def trigger(draft: Draft, fixes: tuple[str, ...]) -> None:
    """Send REVAL n+1 and ask for its run (A35-A37)."""
    active = draft.state.active
    before, last = active.status, active.last_run
    number = active.iteration + 1
    counted = Counter(ref.described for ref in last.failures) if last is not None else {}
    draft.update_specialist(active.name, iteration=number)
    draft.move(Status.RE_CHECKING, Role.SPECIALIST, f"run {number} is asked for")
    draft.say(
        msg.RevalidationTrigger(
            phase=slot(active.name).phase,
            confirms=active.has_passed,
            previous_failures=tuple(f"{line} (×{n})" if n > 1 else line for line, n in counted.items()),
            fixes=fixes,
        ),
        ids.trigger_id(draft.state.issue, active.name, number),
        summary=f"Run {number}/{active.max_iterations} of {slot(active.name).phase}",
        recipient=slot(active.name).handle,
        before=before,
    )
    draft.ask("recheck", operation=OperationName.REVALIDATION)


def record_fix(draft: Draft, completion: Completion) -> None:
    """Store the fix with the run that it answers, and the resulting tree (B60, A93)."""
    active = draft.state.active
    fixes = completion.fixes or ("no change",)
    if active.runs:
        last = active.runs[-1]
        since = draft.state.reported_clock
        spent = draft.clock - since if since is not None else 0.0
        answered = last.with_(
            fixes=(*last.fixes, *fixes),
            fix_seconds=last.fix_seconds + spent,
            diff=completion.diff or last.diff,
            diff_artifacts=(*last.diff_artifacts, *filter(None, [completion.diff_artifact])),
            said="\n".join(filter(None, (completion.summary, completion.said))) or last.said,
        )
        draft.update_specialist(active.name, runs=(*active.runs[:-1], answered))
    marks = tuple(dict.fromkeys((*draft.state.marks, *completion.marks)))
    draft.update(
        tip=completion.tip or draft.state.tip,
        tree=completion.tree or draft.state.tree,
        marks=marks,
        kept=None,
    )


def failed(draft: Draft, event: ev.FixFailed) -> None:
    """A fixer ended without a fix: retry with backoff, then escalate (A70, A73, K5)."""
    state, active = draft.state, _awaiting_specialist(draft, event)
    if state.fixer != "command" or event.attempt < state.attempts:
        raise Unexpected(f"no fixer is running in attempt {event.attempt} of run {event.iteration}")
    draft.note(f"the fixer failed (attempt {event.attempt}): {event.error}")
    kind = msg.ErrorType.COMMUNICATION if event.undelivered else msg.ErrorType.UNRESPONSIVE
    before = active.error.recovery if active.error is not None else ()
    failures = state.attempts - state.answers
    again = not event.fatal and failures < state.limits.fix_attempts
    recovery = (*before, f"the fixer was started again (attempt {failures + 1})") if again else before
    pending = PendingError(
        error_type=kind,
        context=f"fix of {active.name}, run {event.iteration}",
        error=event.error,
        stack_trace=event.output_tail,
        attempts=failures,
        recovery=recovery,
    )
    draft.update_specialist(active.name, error=pending)
    if again:
        _ask_again(draft, state.limits.backoff(failures + 1))
        return
    say_error(draft, pending)
    reason = msg.Reason.COMMUNICATION_ERROR if event.undelivered else msg.Reason.UNRESPONSIVE
    # The fixer's last lines, joined: they say why it failed.
    lines = [" ".join(line.split()) for line in event.output_tail.splitlines() if line.strip()]
    last = " / ".join(lines[-LAST_LINES:])[-LAST_CHARACTERS:]
    escalate(draft, reason, f"{event.error}{f'; it said last: {last}' if last else ''}")


def answer_rejected(draft: Draft, event: ev.AnswerRejected) -> None:
    """Send a protocol violation notice with a new request; the second invalid answer escalates (A71, G2)."""
    state, active = draft.state, draft.state.active
    answered = event.specialist == active.name and event.iteration < active.iteration
    if active.status not in WITH_MAIN_AGENT or answered:
        raise _none_awaited(active)
    answers = state.answers + 1
    draft.update(answers=answers)
    draft.note(f"invalid answer: {'; '.join(event.violations)}")
    if answers >= state.limits.answer_attempts:
        pending = PendingError(
            error_type=msg.ErrorType.INVALID_RESPONSE,
            context=f"fix completion of {active.name}, run {active.iteration}",
            error="; ".join(event.violations),
            recovery=("a protocol violation notice was sent and the answer asked for again",),
        )
        say_error(draft, pending)
        escalate(draft, msg.Reason.INVALID_RESPONSE, "; ".join(event.violations))
        return
    draft.say(
        msg.ProtocolViolation(
            offending=event.offending[:2000],
            violations=event.violations,
            expected=render_answer_format(state.issue, active.iteration, active.name),
        ),
        draft.stamped_id("PVN", "feature-implementer-main"),
        summary=f"The answer does not fit: {'; '.join(event.violations)}",
        recipient=msg.MAIN_AGENT,
    )
    if state.fixer == "command":
        _ask_again(draft, 0.0)


def blocked(draft: Draft, event: ev.BlockerSignalled) -> None:
    """The main agent cannot continue: escalate at once, without further timers (G8, S7)."""
    active = draft.state.active
    if draft.state.paused or active.status not in WITH_MAIN_AGENT:
        raise _none_awaited(active)
    declines = f" declines, {event.declined}" if event.declined else ""
    escalate(draft, msg.Reason.BLOCKER, f"{event.by}{declines}: {event.text}", source=event.source)


def _ask_again(draft: Draft, delay_seconds: float) -> None:
    attempt = draft.state.attempts + 1
    draft.update(attempts=attempt)
    draft.ask("fix", operation=OperationName.FIX, attempt=attempt, delay_seconds=delay_seconds)
