"""Reading what each type of message says: one function for each, from its parts to the body (A23-A75, B19-B43)."""

import re

from fixloop.protocol import messages as msg
from fixloop.protocol.checks import Finding
from fixloop.protocol.failures import Comparison, Failure, Severity
from fixloop.protocol.markdown import unescape
from fixloop.protocol.specialists import Status
from tests.parsing.document import Document, Part, UnreadableMessage


def failure_detected(document: Document) -> msg.FailureDetected:
    part = document.untitled("Phase")
    return msg.FailureDetected(
        phase=part.field("Phase"),
        statement=part.field("Issue"),
        details=part.listed("Failure Details"),
        coverage=part.optional("Coverage"),
    )


def failure_report(document: Document) -> msg.FailureReport:
    header, summary = document.header, document.part("Failure Summary")
    failures, fixes = document.part("Detailed Failures"), document.part("Suggested Fixes")
    blocks, suggestions = failures.parts(4), fixes.parts(4)
    if len(blocks) != len(suggestions):
        raise UnreadableMessage(
            f"{fixes} has {len(suggestions)} blocks for {len(blocks)} failures; there is one for each (B22)"
        )
    actions = document.part("Required Actions")
    # The time for the fix, and from the reminder to the escalation.
    timeline = actions.field("Expected Timeline")
    limit, _, after = timeline.removeprefix("Fix within ").partition("; ")
    window = re.fullmatch(r"an escalation follows (.*) after the reminder", after)
    return msg.FailureReport(
        feature=_feature_in(header),
        phase=header.field("Phase"),
        specialist_handle=header.field("Specialist"),
        failure_type=summary.field("Failure Type"),
        severity=summary.enumerated("Severity", Severity),
        next_phase=summary.field("Impact").removeprefix("Blocks progression to "),
        failures=tuple(_failure(block, fix) for block, fix in zip(blocks, suggestions, strict=True)),
        further=_counted(failures, "Further Failures"),
        coverage=summary.optional("Coverage"),
        fix_limit_seconds=actions.seconds("Expected Timeline", limit) if timeline else None,
        reminder_window_seconds=actions.seconds("Expected Timeline", window[1]) if window else None,
        marks=summary.listed("Marks"),
    )


def fix_request(document: Document) -> msg.FixRequest:
    summary, failures = document.part("Request Summary"), document.part("Failures to Fix")
    expected = document.part("Expected Outcome").search(r"After fixes: (.*)", "the words `After fixes:`")
    return msg.FixRequest(
        goal=summary.optional("Goal"),
        commands=summary.listed("Commands"),
        older=_counted(summary, "Older Findings"),
        tried=tuple(
            _attempt(block)
            for part in document.parts
            if part.title == "Tried Before"
            for block in part.parts(4)
        ),
        items=tuple(
            msg.FixItem(
                name=point.title,
                file=point.optional("File"),
                line=point.number_or_none("Line", point.optional("Line")),
                error=point.optional("Error"),
                suggestion=point.optional("Suggestion"),
                priority=point.enumerated("Priority", Severity),
            )
            for point in failures.points()
        ),
        further=_counted(failures, "Further Failures"),
        # The last one is the protocol's own, in every request.
        approach=document.part("Suggested Approach").items()[:-1],
        expected=unescape(expected[1]),
        remaining_iterations=summary.number("Remaining Iterations"),
    )


def _feature_in(header: Part) -> str:
    return header.field("Issue").partition(" -")[2].removeprefix(" ")


def _failure(block: Part, fix: Part) -> Failure:
    severity = block.optional("Severity")
    return Failure(
        name=block.title.partition(":")[2].removeprefix(" "),
        file=block.field("File"),
        line=block.number_or_none("Line"),
        error_type=block.field("Error Type"),
        message=block.field("Error Message"),
        check=block.optional("Check"),
        severity=block.enumerated("Severity", Severity) if severity else None,
        context=block.field("Context"),
        suggestion=fix.field("Recommendation"),
        frame=block.optional("Frame"),
        source=block.optional("Source"),
        rerun=block.optional("Run Alone"),
        id=block.optional("ID"),
        alike=_counted(block, "Failures Alike") if block.has("Failures Alike") else 1,
        others=block.listed("Others"),
        measure=block.optional("Measure"),
    )


def _counted(part: Part, label: str) -> int:
    words = part.optional(label)
    return part.number(label, re.split(r"[ ,]", words)[0]) if words else 0


def _attempt(block: Part) -> msg.Attempt:
    result = block.search(r"\*\*Result\*\*: ([0-9]+) resolved, ([0-9]+) left, ([0-9]+) new", "the result")
    return msg.Attempt(
        iteration=block.number("the run", block.title.rpartition(" ")[2]),
        fixes=block.listed("Fixes"),
        said=block.optional("Said"),
        diff=block.optional("Diff"),
        resolved=int(result[1]),
        left=int(result[2]),
        new=block.listed("New"),
        new_count=int(result[3]),
    )


def fix_completion(document: Document) -> msg.FixCompletion:
    summary, ready = document.part("Completion Summary"), document.part("Ready for Re-validation")
    answer = ready.search(r"(Yes - please|No - not yet ready to) re-run (.*)\.", "the words `Yes` or `No`")
    files = document.part("Files Modified")
    return msg.FixCompletion(
        specialist=unescape(answer[2]),
        summary=unescape(summary.written("Iteration").partition("\n")[2].strip("\n")),
        fixes=document.part("Fixes Applied").items(),
        files=files.items(),
        ready=answer[1].startswith("Yes"),
        duration_seconds=summary.seconds("Fix Duration"),
        marks=summary.listed("Marks"),
        unchanged=files.listed("Named But Not Changed"),
        unnamed=files.listed("Changed But Not Named"),
    )


def revalidation_trigger(document: Document) -> msg.RevalidationTrigger:
    request = document.part("Re-validation Request")
    return msg.RevalidationTrigger(
        phase=request.field("Phase"),
        confirms=request.member("Previous Status", {"Passed": True, "Failed": False}),
        previous_failures=document.part("Previous Failures").items(),
        fixes=document.part("Fixes Applied").items(),
    )


def revalidation_result(document: Document) -> msg.RevalidationResult:
    summary, details = document.part("Result Summary"), document.part("Details")
    passed = summary.member("Status", {"PASS": True, "FAIL": False})
    action = document.part("Next Action")
    count, escalates, next_phase = 0, None, ""
    if passed:
        proceeds = action.search(r"Proceed to next phase:(?: (.*))?", "the words `Proceed to next phase`")
        next_phase = unescape(proceeds[1] or "")
    else:
        words = r"([0-9]{1,9}) failures? remains?\."
        count = int(details.search(words, "the number of failures that remain")[1])
        said = action.search(r"(?:Continue|Escalate).*", "the words `Continue` or `Escalate`")[0]
        escalates = next((each for each in msg.Reason if said.startswith(f"Escalate: {each.text} (")), None)
    return msg.RevalidationResult(
        passed=passed,
        failures=() if passed else document.part("Failure Details").items(),
        failure_count=count,
        comparison=Comparison(
            resolved=details.nested("Failures resolved"),
            persisting=details.nested("Failures persisting"),
            new=details.nested("New failures introduced"),
        ),
        history=details.counts(),
        likely_cause=details.optional("Likely Cause"),
        escalates=escalates,
        fix_seconds=details.seconds("Total Fix Time"),
        next_phase=next_phase,
        coverage=summary.optional("Coverage"),
        evidence=details.listed("Evidence"),
        marks=details.listed("Marks"),
    )


def success(document: Document) -> msg.Success:
    summary, status = document.part("Success Summary"), document.part("Final Status")
    said = summary.search(
        r"Validation phase (.*) completed successfully after (-?[0-9]+) iterations?\.",
        "the phase and its iterations",
    )
    following = document.part("Next Phase").search(r"Proceeding to:(?: (.*))?", "the next phase")
    total = status.search(r"Total time: (.*)", "the total time")[1]
    phases = re.search(
        r"^- Phases completed: (-?[0-9]{1,9}) of (-?[0-9]{1,9})$", status.written(), re.MULTILINE
    )
    return msg.Success(
        phase=unescape(said[1]),
        iterations=summary.number("iterations", said[2]),
        history=summary.counts(),
        total_seconds=status.seconds("Total time", total),
        next_phase=unescape(following[1] or ""),
        phases_done=int(phases[1]) if phases is not None else 0,
        phases_total=int(phases[2]) if phases is not None else 0,
        marks=status.nested("Marks:"),
    )


def escalation(document: Document) -> msg.Escalation:
    header, summary = document.header, document.part("Escalation Summary")
    history, persistent = document.part("Iteration History"), document.part("Persistent Failures")
    actions = document.part("Recommended Actions")
    held = [part for part in document.parts if part.title == "Findings"]
    reasons = {reason.text: reason for reason in msg.Reason}
    options: dict[str, msg.Decision | None] = {"": None} | {option.option: option for option in msg.Decision}
    return msg.Escalation(
        feature=_feature_in(header),
        phase=header.field("Phase"),
        reason=summary.member("Condition", reasons),
        detail=summary.optional("Detail"),
        flags=summary.listed("Flags"),
        iterations=summary.number("Iterations", summary.field("Iterations").partition(" ")[0]),
        total_seconds=summary.seconds("Total Time"),
        history=tuple(
            msg.HistoryRow(
                iteration=history.number("Iteration", iteration),
                failures=history.number("Failures", count),
                fixes=fixes,
                result=result,
            )
            for iteration, count, fixes, result in ((*row, "", "", "", "")[:4] for row in history.rows())
        ),
        pattern=history.field("Pattern Analysis"),
        persistent=tuple(_persistent(block) for block in persistent.parts(4)),
        persistent_count=summary.number("Persistent Failures"),
        recommended=actions.member("Recommended", options, actions.optional("Recommended")),
        rationale=actions.optional("Rationale"),
        findings=tuple(_finding(block) for part in held for block in part.parts(4)),
        source=summary.optional("Test"),
    )


def timeout_reminder(document: Document) -> msg.TimeoutReminder:
    header, reminder = document.header, document.part("Reminder")
    said = reminder.search(r"Operation \[(.*)\] has been running for .*", "the operation")
    statuses = {status.value: status for status in Status}
    follows = reminder.field("Escalation")
    period = follows.removeprefix("If no response within ").removesuffix(", will escalate to user.")
    return msg.TimeoutReminder(
        operation=unescape(said[1]),
        elapsed_seconds=header.seconds("Elapsed"),
        threshold_seconds=header.seconds("Timeout"),
        window_seconds=(
            None if follows == "None follows by itself." else reminder.seconds("Escalation", period)
        ),
        status=reminder.member("Current Status", statuses),
    )


def error_notification(document: Document) -> msg.ErrorNotification:
    header, details = document.header, document.part("Error Details")
    status = document.part("Current Status")
    types = {kind.label: kind for kind in msg.ErrorType}
    return msg.ErrorNotification(
        error_type=header.member("Error Type", types),
        operation=header.field("Context"),
        agent=details.optional("Agent"),
        regarding=details.optional("Regarding"),
        context=details.field("Context"),
        error=details.field("Error Message"),
        stack_trace=details.optional("Stack Trace"),
        recovery=document.part("Recovery Actions Attempted").items(),
        recovered=status.yes("Recovered"),
    )


def protocol_violation(document: Document) -> msg.ProtocolViolation:
    part = document.untitled("Offending message")
    return msg.ProtocolViolation(
        offending=part.field("Offending message"),
        violations=part.listed("Violations"),
        expected=part.field("Expected format"),
    )


def _finding(block: Part) -> Finding:
    return Finding(
        rule=block.title.partition(":")[2].removeprefix(" "),
        text=block.field("What"),
        check=block.field("Check"),
        file=block.field("File"),
        line=block.number_or_none("Line"),
        old=block.optional("Before"),
        new=block.optional("Now"),
    )


def _persistent(block: Part) -> msg.PersistentFailure:
    failed = block.field("Iterations Failed")
    return msg.PersistentFailure(
        name=block.title.partition(":")[2].removeprefix(" "),
        file=block.field("File"),
        line=block.number_or_none("Line"),
        error=block.field("Error"),
        iterations=tuple(
            block.number("Iterations Failed", word) for word in filter(None, failed.split(", "))
        ),
        fixes=block.listed("Fixes Attempted"),
        why=block.field("Why Unresolved"),
    )
