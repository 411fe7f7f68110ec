"""Reading what says that something failed: detection, failure report, fix request (A23-A30, B19-B25, G3)."""

import re

from fixloop.protocol.failures import Failure, Severity
from fixloop.protocol.markdown import unescape
from fixloop.protocol.messages import (
    Attempt,
    FailureDetected,
    FailureReport,
    FixItem,
    FixRequest,
)
from fixloop.testing.parsing.document import Document, Part, UnreadableMessage
from fixloop.testing.parsing.values import enumerated, number, seconds


def failure_detected(document: Document) -> FailureDetected:
    part = document.untitled("Phase")
    return FailureDetected(
        phase=part.field("Phase"),
        statement=part.field("Issue"),
        details=part.listed("Failure Details"),
        coverage=part.optional("Coverage"),
    )


def failure_report(document: Document) -> FailureReport:
    header, summary = document.header, document.part("Failure Summary")
    failures, fixes = document.part("Detailed Failures"), document.part("Suggested Fixes")
    blocks, suggestions = failures.parts(4), fixes.parts(4)
    if len(blocks) != len(suggestions):
        raise UnreadableMessage(
            f"{fixes} has {len(suggestions)} blocks for {len(blocks)} failures; there is one for each (B22)"
        )
    limit, window = _timeline(document.part("Required Actions"))
    return FailureReport(
        feature=feature_of(header),
        phase=header.field("Phase"),
        specialist_handle=header.field("Specialist"),
        failure_type=summary.field("Failure Type"),
        severity=enumerated(summary.field("Severity"), Severity, summary, "Severity"),
        next_phase=summary.field("Impact").removeprefix("Blocks progression to "),
        failures=tuple(_failure(block, fix) for block, fix in zip(blocks, suggestions, strict=True)),
        further=_further(failures),
        coverage=summary.optional("Coverage"),
        fix_limit_seconds=limit,
        reminder_window_seconds=window,
        marks=summary.listed("Marks"),
    )


def fix_request(document: Document) -> FixRequest:
    summary, failures = document.part("Request Summary"), document.part("Failures to Fix")
    expected = document.part("Expected Outcome").search(r"After fixes: (.*)", "the words `After fixes:`")
    remaining = summary.field("Remaining Iterations")
    return FixRequest(
        goal=summary.optional("Goal"),
        commands=summary.listed("Commands"),
        older=_counted(summary, "Older Findings"),
        tried=tuple(
            _attempt(block)
            for part in document.parts
            if part.title == "Tried Before"
            for block in part.parts(4)
        ),
        items=tuple(map(_item, failures.points())),
        further=_further(failures),
        # The last one is the protocol's own, in every request.
        approach=document.part("Suggested Approach").items()[:-1],
        expected=unescape(expected[1]),
        remaining_iterations=number(remaining, summary, "Remaining Iterations"),
    )


def feature_of(header: Part) -> str:
    """The feature's name in `**Issue**: #47 - name`."""
    return header.field("Issue").partition(" -")[2].removeprefix(" ")


def _failure(block: Part, fix: Part) -> Failure:
    line, severity = block.field("Line"), block.optional("Severity")
    return Failure(
        name=block.title.partition(":")[2].removeprefix(" "),
        file=block.field("File"),
        line=number(line, block, "Line") if line else None,
        error_type=block.field("Error Type"),
        message=block.field("Error Message"),
        check=block.optional("Check"),
        severity=enumerated(severity, Severity, block, "Severity") if severity else None,
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


def _item(point: Part) -> FixItem:
    line = point.optional("Line")
    return FixItem(
        name=point.title,
        file=point.optional("File"),
        line=number(line, point, "Line") if line else None,
        error=point.optional("Error"),
        suggestion=point.optional("Suggestion"),
        priority=enumerated(point.field("Priority"), Severity, point, "Priority"),
    )


def _timeline(actions: Part) -> tuple[float | None, float | None]:
    """The time for the fix, and from the reminder to the escalation, in seconds."""
    words = actions.field("Expected Timeline")
    if not words:
        return None, None
    limit, _, after = words.removeprefix("Fix within ").partition("; ")
    window = re.fullmatch(r"an escalation follows (.*) after the reminder", after)
    return (
        seconds(limit, actions, "Expected Timeline"),
        seconds(window[1], actions, "Expected Timeline") if window is not None else None,
    )


def _further(failures: Part) -> int:
    return _counted(failures, "Further Failures")


def _counted(part: Part, label: str) -> int:
    """The number that a field begins with; 0 where there is no such field."""
    words = part.optional(label)
    return number(re.split(r"[ ,]", words)[0], part, label) if words else 0


def _attempt(block: Part) -> Attempt:
    result = block.search(r"\*\*Result\*\*: ([0-9]+) resolved, ([0-9]+) left, ([0-9]+) new", "the result")
    return Attempt(
        iteration=number(block.title.rpartition(" ")[2], block, "the run"),
        fixes=block.listed("Fixes"),
        said=block.optional("Said"),
        diff=block.optional("Diff"),
        resolved=int(result[1]),
        left=int(result[2]),
        new=block.listed("New"),
        new_count=int(result[3]),
    )
