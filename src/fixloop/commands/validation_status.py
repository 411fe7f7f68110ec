"""What `status` shows of one validation workflow: a document for programs, text for people."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from fixloop.commands import outcome
from fixloop.commands.agent_work import away_line
from fixloop.commands.choices import choice_lines, choices, finding_lines, fix_choices, no_fixer
from fixloop.commands.presenter import deadline_line, deadline_of, since
from fixloop.commands.screen import row, table
from fixloop.commands.verdict import blocking
from fixloop.protocol.durations import iso_stamp, minutes_seconds, stamp
from fixloop.protocol.failures import count_of
from fixloop.protocol.monitoring import running
from fixloop.protocol.specialists import WITH_MAIN_AGENT, Status, specialist as slot
from fixloop.protocol.state import OperationName, State
from fixloop.store.records import Snapshot

if TYPE_CHECKING:
    from rich.table import Table

_STYLES: Final = {
    Status.COMPLETED: "green",
    Status.PASS: "green",
    Status.FAIL: "red",
    Status.ESCALATED: "red",
    Status.PENDING: "dim",
}
WAITS: Final = "WAITS"
"""The label of what a person must do."""


def status_document(found: Snapshot, state: State) -> dict[str, Any]:
    """`status ISSUE --json`."""
    active, held = state.active, state.held
    due = deadline_of(found)
    return {
        "issue": state.issue,
        "name": state.name,
        "workflow_id": state.workflow,
        "profile": state.profile,
        "status": state.status.value,
        "paused": state.paused or held is not None,
        "held": None
        if held is None
        else {"by": held.by, "reason": held.reason, "since": iso_stamp(held.at), "kept": len(held.events)},
        "verdict": state.verdict,
        "outcome": state.outcome.value if state.outcome is not None else None,
        "owner": state.owner,
        "phase": slot(active.name).phase,
        "specialist": active.name,
        "iteration": active.iteration,
        "max_iterations": active.max_iterations,
        "deadline": iso_stamp(due) if due is not None else None,
        "operations": [
            each._asdict() | {"name": each.name.value}
            for each in running(state, found.moment.clock, found.deadlines)
        ],
        "report": _report(state),
        "tree": state.tree,
        "updated_at": iso_stamp(state.last_at),
        "unverified": [each.model_dump() for each in state.unverified],
        "specialists": [
            {
                "name": entry.name,
                "phase": slot(entry.name).phase,
                "applicable": entry.applicable,
                "status": entry.status.value,
                "iteration": entry.iteration,
                "max_iterations": entry.max_iterations,
                # With the field names of `read --json`; the full message is in the log.
                "failures": [
                    ref.model_dump(include={"name", "file", "line", "error_type"}) | {"message": ref.headline}
                    for ref in (entry.last_run.failures if entry.last_run is not None else ())
                ],
                "old": entry.old,
                "evidence": [evidence.model_dump(mode="json") for evidence in entry.evidence],
            }
            for entry in state.specialists
        ],
    }


def _report(state: State) -> dict[str, Any] | None:
    """The open failure report and its receipt (A5)."""
    delivery, run = state.delivery, state.active.last_run
    if delivery is None or state.active.status not in WITH_MAIN_AGENT:
        return None
    receipt = run.receipt if run is not None else None
    if receipt is not None and receipt.uid != delivery.uid:
        receipt = None
    return {
        "message_id": delivery.message_id,
        "uid": delivery.uid,
        "agent": state.agent or None,
        "delivery_attempt": delivery.attempt,
        "acknowledged_at": iso_stamp(receipt.at) if receipt is not None else None,
        "acknowledged_by": receipt.by if receipt is not None else None,
    }


def phases_table(state: State) -> "Table":
    """The specialists in phase order, with current and previous failures."""
    made = table("", "phase", "specialist", "status", "run", "failures")
    for entry in state.specialists:
        if entry.applicable:
            current = entry.name == state.current and not state.ended
            counts = [run.count for run in entry.runs[-2:]]
            before = f" (before: {counts[0]})" if len(counts) > 1 else ""
            row(
                made,
                ">" if current else "",
                slot(entry.name).phase,
                entry.name,
                "skipped" if entry.skipped else entry.status.value,
                f"{entry.iteration}/{entry.max_iterations}",
                f"{counts[-1]}{before}" if counts else "",
                style="yellow" if current and entry.status not in _STYLES else _STYLES.get(entry.status, ""),
            )
    return made


def details(found: Snapshot, state: State, away: bool = False) -> Iterator[tuple[str, str]]:
    """The facts above the table of phases, as label and text."""
    yield from _waits(found, state)
    yield "workflow", f"{state.workflow} ({state.profile}, project {state.project or state.workflow[:8]})"
    if state.outcome is not None:
        yield "status", f"{state.status}, {state.outcome}, {state.verdict}"
    else:
        yield "status", f"{state.status}, {state.current} run {state.active.iteration}, {state.owner}'s turn"
    held, report = state.held, _report(state)
    if held is not None:
        kept = f"; events kept meanwhile: {len(held.events)}" if held.events else ""
        yield "paused", f"by {outcome.pause_of(held)}; clocks are stopped{kept}"
    if report is not None:
        to = f" to {report['agent']}" if report["agent"] else ""
        attempt = f", delivery attempt {report['delivery_attempt']}" if report["delivery_attempt"] > 1 else ""
        by, at = report["acknowledged_by"], report["acknowledged_at"]
        taken = (
            f"acknowledged by {by} at {stamp(datetime.fromisoformat(at))} UTC" if at else "not acknowledged"
        )
        yield "report", f"{report['message_id']}{to}{attempt}, {taken}"
    # Work on a request to somebody outside cannot be seen.
    working = "clock" if outcome.waits_for_agent(state) else "at work"
    for each in running(state, found.moment.clock, found.deadlines):
        label = "iteration" if each.name is OperationName.ITERATION else working
        if each.elapsed_seconds is not None:
            # How long it has run, and its limit (A90).
            limit = f" of {minutes_seconds(each.limit_seconds)}" if each.limit_seconds is not None else ""
            reminded = ", reminded" if each.reminded else ""
            stands = f"for {minutes_seconds(each.elapsed_seconds)}{limit}{reminded}"
        elif any(held.status == "claimed" for held in found.tickets):
            stands = "running"
        else:
            stands = "waiting for a worker"
        yield label, f"{each.name} of {each.specialist}, {stands}"
    at_rest = state.ended or state.paused or held is not None
    if away and not at_rest and not outcome.waits_for_agent(state):
        yield away_line(state)
    yield from deadline_line(found, away)
    yield "tree", state.tree
    for missing in blocking(state.unverified):
        where = f"{missing.name} of {missing.specialist}: {missing.reason}"
        yield "missing", "; ".join(filter(None, (where, missing.remedy)))
    yield from (("note", remark) for remark in outcome.remarks(state))
    if outcome.is_fixed(state):
        yield "branch", f"fixloop/{state.issue}"
    yield "updated", f"{stamp(state.last_at)} UTC"
    yield "next", outcome.next_command(state)


def _waits(found: Snapshot, state: State) -> Iterator[tuple[str, str]]:
    """What somebody must do before work continues, since when, and the commands for it; the first fact shown."""
    opened = state.escalation
    if state.held is not None:
        return
    if opened is not None:
        what = "a manual fix" if opened.decision is not None else "a decision"
        yield WAITS, f"for {what}{since(opened.at, found)}: {outcome.reason_of(opened)}"
        yield from (("", line) for line in finding_lines(opened.findings))
        yield from (("", line) for line in choice_lines(choices(state)))
    elif outcome.waits_for_agent(state):
        asked = (
            f"for a fix of {count_of(state.failure_count)}{since(outcome.offered_since(found, state), found)}"
        )
        yield WAITS, asked
        yield from (("", line) for line in (*no_fixer(state), *choice_lines(fix_choices(state))))
