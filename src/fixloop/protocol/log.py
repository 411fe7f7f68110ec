"""Renders the communication log as text and as data (A77-A85), and the flow log of a specialist's loop (B53-B56).

Works on a workflow's lines in their order (A84). Counts are computed from the lines and never stored, so header and
statistics agree (A83). K39 defines what is a line.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from fixloop.errors import ProtocolError
from fixloop.protocol import messages as msg
from fixloop.protocol.durations import hours_minutes_seconds, id_stamp, minutes_seconds
from fixloop.protocol.event import Value
from fixloop.protocol.rendering import fill
from fixloop.protocol.specialists import specialist as slot

_NAMES: Final = {
    "revalidation-trigger": "Re-validation Trigger",
    "revalidation-result": "Re-validation Result",
    "success": "Success Notification",
    "escalation": "Escalation Report",
    "protocol-violation": "Protocol Violation Notice",
}
"""The names of messages that are not named like their kind."""
_OUTCOMES: Final = {
    None: "In progress",
    "escalated": "Escalated (awaiting decision)",
    "success": "Success (all validations passed)",
    "skipped": "Skipped (failed but proceeding)",
    "aborted": "Aborted (returned to design)",
    "cancelled": "Cancelled",
    "unverified": "Not verified (what ran has passed)",
}
NAMED: Final = 3
"""The number of failures or fixes that a line of the flow log names."""
_PLACES: Final = {msg.ORCHESTRATOR: "Orchestrator", msg.MAIN_AGENT: "Main Agent", msg.USER: "User"}


class Statistics(Value):
    """The statistics block (A82); a fix request counts whether it is sent alone or attached (K9)."""

    total_messages: int
    failure_reports: int
    fix_requests: int
    fix_completions: int
    revalidation_triggers: int
    revalidation_results: int
    """Without the Validation Result of a first run (G16)."""
    success_notifications: int
    iterations: str
    """`2 (1 initial + 1 retry)`, summed over the specialists."""
    outcome: str


def statistics(lines: Sequence[msg.Message], *, outcome: str | None) -> Statistics:
    """Count `lines` (A82), which are in order. The outcome is `escalated` while a person decides and None while it
    runs; unknown outcomes are shown unchanged."""
    runs = _runs(lines)
    total, retries = sum(runs.values()), sum(runs.values()) - len(runs)
    attached = [line.attached for line in lines if line.attached is not None]
    counts = Counter(line.body.kind for line in (*lines, *attached) if not _is_first_result(line))
    return Statistics(
        total_messages=len(lines),
        failure_reports=counts["failure-report"],
        fix_requests=counts["fix-request"],
        fix_completions=counts["fix-completion"],
        revalidation_triggers=counts["revalidation-trigger"],
        revalidation_results=counts["revalidation-result"],
        success_notifications=counts["success"],
        iterations=f"{total} ({len(runs)} initial + {retries} {'retries' if retries > 1 else 'retry'})",
        outcome=outcome_text(outcome),
    )


def outcome_text(outcome: str | None) -> str:
    """`Success (all validations passed)`; None is a running workflow, and unknown outcomes are shown unchanged."""
    return _OUTCOMES.get(outcome, outcome or "")


def render_entry(message: msg.Message) -> str:
    """The log entry of one line (A77)."""
    return fill("log-entry", m=message, message_type=_name(message))


def _name(message: msg.Message) -> str:
    if _is_first_result(message):
        return "Validation Result"
    return _NAMES.get(message.body.kind) or message.body.kind.replace("-", " ").title()


def full_log(
    lines: Sequence[msg.Message],
    *,
    issue: int,
    feature: str,
    outcome: str | None,
    started: datetime | None = None,
    completed: datetime | None = None,
) -> str:
    """The whole log as Markdown (A79-A83); by default from the first line's time to the last line's."""
    began = started or (lines[0].at if lines else None)
    latest = completed or (lines[-1].at if lines else began)
    return fill(
        "full-log",
        issue=issue,
        feature=feature,
        started=began,
        # Only for a workflow that has ended.
        completed=latest if outcome not in (None, "escalated") else None,
        duration_seconds=(latest - began).total_seconds() if began and latest else 0,
        total_iterations=sum(_runs(lines).values()),
        lines=[(line, title(line)) for line in lines],
        statistics=statistics(lines, outcome=outcome),
    )


def title(message: msg.Message) -> str:
    """`Re-validation result (PASS)`: a line's title in the chronological list (A80)."""
    name = _name(message).capitalize()
    if isinstance(message.body, msg.RevalidationResult):
        name += f" ({'PASS' if message.body.passed else 'FAIL'})"
    return name


def _is_first_result(message: msg.Message) -> bool:
    return message.body.kind == "revalidation-result" and message.iteration == 1


def _runs(lines: Iterable[msg.Message]) -> dict[str, int]:
    """The number of runs of each specialist: an iteration is a run's number (K2)."""
    runs: dict[str, int] = {}
    for line in lines:
        if line.specialist and line.iteration > 0:
            runs[line.specialist] = max(line.iteration, runs.get(line.specialist, 0))
    return runs


class _Line(NamedTuple):
    at: datetime
    direction: str
    title: str
    details: tuple[tuple[str, str], ...]


def flow_log(lines: Sequence[msg.Message], specialist: str, *, outcome: str = "") -> str:
    """The flow of one specialist's loop as Markdown, from all of a workflow's lines in order. `outcome` is the result
    of a person's decision; by default it follows from the last line."""
    own = [line for line in lines if line.specialist == specialist]
    if not own:
        raise ProtocolError(f"{specialist} has no line in this log")
    who, last = slot(specialist), own[-1]
    # From the beginning of its first run if the last line has the total, else from its first line.
    duration = (
        last.body.total_seconds
        if isinstance(last.body, msg.Success | msg.Escalation)
        else (last.at - own[0].at).total_seconds()
    )
    ended = {"success": "Success", "escalation": _OUTCOMES["escalated"]}
    return fill(
        "flow-log",
        entry_id=f"LOG-{last.issue}-{specialist}-{last.iteration}-{id_stamp(last.at)}",
        orchestrator=msg.ORCHESTRATOR,
        main_agent=msg.MAIN_AGENT,
        specialist_title=who.title,
        specialist_handle=who.handle,
        lines=[
            _Line(
                each.at,
                " → ".join(_PLACES.get(end, "Specialist") for end in (each.sender, each.recipient)),
                *_flow_entry(each),
            )
            for each in own
        ],
        iterations=max(each.iteration for each in own),
        duration_seconds=duration,
        outcome=outcome or ended.get(last.body.kind, _OUTCOMES[None]),
    )


def _flow_entry(m: msg.Message) -> tuple[str, tuple[tuple[str, str], ...]]:
    run, is_first = f"{m.iteration}/{m.max_iterations}", m.iteration == 1
    match m.body:
        case msg.FailureDetected() as body:
            details = (("Failures", body.statement), ("Details", _few(body.details)))
            return "Validation failure detected", details
        case msg.FailureReport():
            sent = (("Report ID", m.message_id), ("Status", "Awaiting Fix"))
            return f"Failure report sent (Iteration {run})", sent
        case msg.FixRequest() as body:
            asked = (("Request ID", m.message_id), ("Fixes", _few(item.name for item in body.items)))
            return f"Fix request sent (Iteration {run})", asked
        case msg.FixCompletion() as body:
            done = (("Duration", minutes_seconds(body.duration_seconds)), ("Fixes", _few(body.fixes)))
            return "Fix completion signal", done
        case msg.RevalidationTrigger():
            return f"Re-validation triggered (Iteration {run})", (("Status", "Re-checking"),)
        case msg.RevalidationResult(passed=True):
            all_well = "All checks passed" if is_first else "All failures resolved"
            title = f"{'Validation' if is_first else 'Re-validation'} result (PASS)"
            return title, (("Status", f"✅ {all_well}"), ("Final iteration", run))
        case msg.RevalidationResult() as body:
            remain = f"{body.failure_count} failure{' remains' if body.failure_count == 1 else 's remain'}"
            title = f"{'Validation' if is_first else 'Re-validation'} result (FAIL)"
            return title, (("Status", f"❌ {remain}"), ("Iteration", run))
        case msg.Success() as body:
            return "Success notification", (("Status", "Validation passed"), ("Proceed to", body.next_phase))
        case msg.TimeoutReminder() as body:
            late = (("Operation", body.operation), ("Elapsed", minutes_seconds(body.elapsed_seconds)))
            return "Timeout reminder", late
        case msg.ErrorNotification() as body:
            found = (("Error", body.error_type.label), ("Recovered", "Yes" if body.recovered else "No"))
            return "Error notification", found
        case msg.ProtocolViolation() as body:
            return "Protocol violation notice", (("Violations", _few(body.violations)),)
        case msg.Escalation() as body:
            why = (
                ("Escalation ID", m.message_id),
                ("Reason", body.reason.text),
                ("Total time", hours_minutes_seconds(body.total_seconds)),
            )
            return "Escalation", why
    raise ProtocolError(f"a flow log has no line for {m.body.kind}")


def _few(items: Iterable[str]) -> str:
    listed = list(items)
    rest = len(listed) - NAMED
    return "; ".join(listed[:NAMED]) + (f"; and {rest} more" if rest > 0 else "") or "none"
