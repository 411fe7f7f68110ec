"""The flow log of one specialist's loop: who told whom what, step by step, and what it came to (B53-B56).

Made from the lines when it is read; a separate record next to the entries of the full log (K3).
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from fixloop.errors import ProtocolError
from fixloop.protocol.durations import hours_minutes_seconds, id_stamp, minutes_seconds
from fixloop.protocol.log import outcome_text
from fixloop.protocol.messages import (
    MAIN_AGENT,
    ORCHESTRATOR,
    USER,
    ErrorNotification,
    Escalation,
    FailureDetected,
    FailureReport,
    FixCompletion,
    FixRequest,
    Message,
    ProtocolViolation,
    RevalidationResult,
    RevalidationTrigger,
    Success,
    TimeoutReminder,
)
from fixloop.protocol.rendering import fill
from fixloop.protocol.specialists import specialist as slot

NAMED: Final = 3
"""How many failures or fixes a line names."""
_PLACES: Final = {ORCHESTRATOR: "Orchestrator", MAIN_AGENT: "Main Agent", USER: "User"}
_OUTCOMES: Final = {"success": "Success", "escalation": outcome_text("escalated")}


class _Line(NamedTuple):
    at: datetime
    direction: str
    title: str
    details: tuple[tuple[str, str], ...]


def flow_log(lines: Sequence[Message], specialist: str, *, outcome: str = "") -> str:
    """The flow of one specialist's loop as Markdown, from all of a workflow's lines in order. `outcome` is what a
    person's decision made of it; by default what its last line says."""
    own = [line for line in lines if line.specialist == specialist]
    if not own:
        raise ProtocolError(f"{specialist} has no line in this log")
    who, last = slot(specialist), own[-1]
    # From its first run's beginning, where the last line tells it; else from its first line.
    duration = (
        last.body.total_seconds
        if isinstance(last.body, Success | Escalation)
        else (last.at - own[0].at).total_seconds()
    )
    return fill(
        "flow-log",
        entry_id=f"LOG-{last.issue}-{specialist}-{last.iteration}-{id_stamp(last.at)}",
        orchestrator=ORCHESTRATOR,
        main_agent=MAIN_AGENT,
        specialist_title=who.title,
        specialist_handle=who.handle,
        lines=[
            _Line(
                each.at,
                " → ".join(_PLACES.get(end, "Specialist") for end in (each.sender, each.recipient)),
                *_told(each),
            )
            for each in own
        ],
        iterations=max(each.iteration for each in own),
        duration_seconds=duration,
        outcome=outcome or _OUTCOMES.get(last.body.kind, "In progress"),
    )


def _told(m: Message) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The title of a message's line, and its details."""
    run, is_first = f"{m.iteration}/{m.max_iterations}", m.iteration == 1
    match m.body:
        case FailureDetected() as body:
            details = (("Failures", body.statement), ("Details", _few(body.details)))
            return "Validation failure detected", details
        case FailureReport():
            sent = (("Report ID", m.message_id), ("Status", "Awaiting Fix"))
            return f"Failure report sent (Iteration {run})", sent
        case FixRequest() as body:
            asked = (("Request ID", m.message_id), ("Fixes", _few(item.name for item in body.items)))
            return f"Fix request sent (Iteration {run})", asked
        case FixCompletion() as body:
            done = (("Duration", minutes_seconds(body.duration_seconds)), ("Fixes", _few(body.fixes)))
            return "Fix completion signal", done
        case RevalidationTrigger():
            return f"Re-validation triggered (Iteration {run})", (("Status", "Re-checking"),)
        case RevalidationResult(passed=True):
            all_well = "All checks passed" if is_first else "All failures resolved"
            title = f"{'Validation' if is_first else 'Re-validation'} result (PASS)"
            return title, (("Status", f"✅ {all_well}"), ("Final iteration", run))
        case RevalidationResult() as body:
            remain = f"{body.failure_count} failure{' remains' if body.failure_count == 1 else 's remain'}"
            title = f"{'Validation' if is_first else 'Re-validation'} result (FAIL)"
            return title, (("Status", f"❌ {remain}"), ("Iteration", run))
        case Success() as body:
            return "Success notification", (("Status", "Validation passed"), ("Proceed to", body.next_phase))
        case TimeoutReminder() as body:
            late = (("Operation", body.operation), ("Elapsed", minutes_seconds(body.elapsed_seconds)))
            return "Timeout reminder", late
        case ErrorNotification() as body:
            found = (("Error", body.error_type.label), ("Recovered", "Yes" if body.recovered else "No"))
            return "Error notification", found
        case ProtocolViolation() as body:
            return "Protocol violation notice", (("Violations", _few(body.violations)),)
        case Escalation() as body:
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
