"""Reading what is out of the ordinary: escalation, reminder, error, violation (A44-A48, A59-A60, A74-A75, G2)."""

from fixloop.protocol.markdown import unescape
from fixloop.protocol.messages import (
    Decision,
    ErrorNotification,
    ErrorType,
    Escalation,
    HistoryRow,
    PersistentFailure,
    ProtocolViolation,
    Reason,
    TimeoutReminder,
)
from fixloop.protocol.statuses import Status
from fixloop.testing.parsing.document import Document, Part
from fixloop.testing.parsing.failures import feature_of
from fixloop.testing.parsing.values import labelled, member, number, seconds, yes


def escalation(document: Document) -> Escalation:
    header, summary = document.header, document.part("Escalation Summary")
    history, persistent = document.part("Iteration History"), document.part("Persistent Failures")
    actions = document.part("Recommended Actions")
    reasons = {reason.text: reason for reason in Reason}
    options: dict[str, Decision | None] = {"": None} | {option.option: option for option in Decision}
    return Escalation(
        feature=feature_of(header),
        phase=header.field("Phase"),
        reason=member(summary.field("Condition"), reasons, summary, "Condition"),
        detail=summary.optional("Detail"),
        flags=summary.listed("Flags"),
        iterations=number(summary.field("Iterations").partition(" ")[0], summary, "Iterations"),
        total_seconds=seconds(summary.field("Total Time"), summary, "Total Time"),
        history=tuple(_row(row, history) for row in history.rows()),
        pattern=history.field("Pattern Analysis"),
        persistent=tuple(_persistent(block) for block in persistent.parts(4)),
        persistent_count=number(summary.field("Persistent Failures"), summary, "Persistent Failures"),
        recommended=member(actions.optional("Recommended"), options, actions, "Recommended"),
        rationale=actions.optional("Rationale"),
    )


def timeout_reminder(document: Document) -> TimeoutReminder:
    header, reminder = document.header, document.part("Reminder")
    said = reminder.search(r"Operation \[(.*)\] has been running for .*", "the operation")
    return TimeoutReminder(
        operation=unescape(said[1]),
        elapsed_seconds=seconds(header.field("Elapsed"), header, "Elapsed"),
        threshold_seconds=seconds(header.field("Timeout"), header, "Timeout"),
        window_seconds=_window(reminder),
        status=labelled(reminder.field("Current Status"), Status, reminder, "Current Status"),
    )


def error_notification(document: Document) -> ErrorNotification:
    header, details = document.header, document.part("Error Details")
    status = document.part("Current Status")
    types = {kind.label: kind for kind in ErrorType}
    return ErrorNotification(
        error_type=member(header.field("Error Type"), types, header, "Error Type"),
        operation=header.field("Context"),
        agent=details.optional("Agent"),
        regarding=details.optional("Regarding"),
        context=details.field("Context"),
        error=details.field("Error Message"),
        stack_trace=details.optional("Stack Trace"),
        recovery=document.part("Recovery Actions Attempted").items(),
        recovered=yes(status.field("Recovered"), status, "Recovered"),
    )


def protocol_violation(document: Document) -> ProtocolViolation:
    part = document.untitled("Offending message")
    return ProtocolViolation(
        offending=part.field("Offending message"),
        violations=part.listed("Violations"),
        expected=part.field("Expected format"),
    )


def _window(reminder: Part) -> float | None:
    words = reminder.field("Escalation")
    if words == "None follows by itself.":
        return None
    period = words.removeprefix("If no response within ").removesuffix(", will escalate to user.")
    return seconds(period, reminder, "Escalation")


def _row(row: tuple[str, ...], part: Part) -> HistoryRow:
    cells = (*row, "", "", "", "")
    return HistoryRow(
        iteration=number(cells[0], part, "Iteration"),
        failures=number(cells[1], part, "Failures"),
        fixes=cells[2],
        result=cells[3],
    )


def _persistent(block: Part) -> PersistentFailure:
    line, failed = block.field("Line"), block.field("Iterations Failed")
    return PersistentFailure(
        name=block.title.partition(":")[2].removeprefix(" "),
        file=block.field("File"),
        line=number(line, block, "Line") if line else None,
        error=block.field("Error"),
        iterations=tuple(
            number(word, block, "Iterations Failed") for word in filter(None, failed.split(", "))
        ),
        fixes=block.listed("Fixes Attempted"),
        why=block.field("Why Unresolved"),
    )
