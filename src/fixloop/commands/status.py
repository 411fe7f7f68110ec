"""What `status` says of one workflow or of all: as documents for programs and as text for people."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from fixloop.commands.choices import choice_lines, choices, fix_choices, no_fixer
from fixloop.commands.outcome import (
    is_fixed,
    next_command,
    offered_since,
    pause_of,
    reason_of,
    remarks,
    waits_for_agent,
)
from fixloop.commands.screen import row, short, table
from fixloop.commands.unverified import blocking, documents
from fixloop.errors import ProtocolError
from fixloop.protocol.durations import hours_minutes_seconds, iso_stamp, minutes_seconds, stamp
from fixloop.protocol.ids import called
from fixloop.protocol.moment import Moment
from fixloop.protocol.monitoring import Running, running
from fixloop.protocol.notices import count_of
from fixloop.protocol.specialists import specialist as slot
from fixloop.protocol.state import FailureRef, Hold, OperationName, Run, SpecialistState, State
from fixloop.protocol.statuses import Status
from fixloop.store.records import DAMAGED, Snapshot

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
"""The label of what a person has to do."""
LOUD: Final = "bold yellow"
WITH_THE_MAIN_AGENT: Final = (Status.AWAITING_FIX, Status.FIXING)
_SUMMARY: Final = (
    "name",
    "project",
    "profile",
    "status",
    "verdict",
    "outcome",
    "owner",
    "phase",
    "specialist",
)


def status_document(found: Snapshot, state: State) -> dict[str, Any]:
    """`status ISSUE --json` (DESIGN, Command line)."""
    active = state.active
    due = deadline_of(found)
    return {
        "issue": state.issue,
        "name": state.name,
        "workflow_id": state.workflow,
        "profile": state.profile,
        "status": state.status.value,
        "paused": state.paused or state.held is not None,
        "held": _held(state.held),
        "verdict": state.verdict,
        "outcome": state.outcome.value if state.outcome is not None else None,
        "owner": state.owner,
        "phase": slot(active.name).phase,
        "specialist": active.name,
        "iteration": active.iteration,
        "max_iterations": active.max_iterations,
        "deadline": iso_stamp(due) if due is not None else None,
        "operations": _operations(found, state),
        "report": _report(state),
        "tree": state.tree,
        "updated_at": iso_stamp(state.last_at),
        "unverified": documents(state.unverified),
        "specialists": [_specialist(entry) for entry in state.specialists],
    }


def _report(state: State) -> dict[str, Any] | None:
    """The open failure report and its receipt (A5)."""
    delivery, run = state.delivery, state.active.last_run
    if delivery is None or state.active.status not in WITH_THE_MAIN_AGENT:
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


def _report_line(report: Mapping[str, Any]) -> str:
    to = f" to {report['agent']}" if report["agent"] else ""
    attempt = f", delivery attempt {report['delivery_attempt']}" if report["delivery_attempt"] > 1 else ""
    by, at = report["acknowledged_by"], report["acknowledged_at"]
    taken = f"acknowledged by {by} at {stamp(datetime.fromisoformat(at))} UTC" if at else "not acknowledged"
    return f"{report['message_id']}{to}{attempt}, {taken}"


def _specialist(entry: SpecialistState) -> dict[str, Any]:
    last = entry.last_run
    return {
        "name": entry.name,
        "phase": slot(entry.name).phase,
        "applicable": entry.applicable,
        "status": entry.status.value,
        "iteration": entry.iteration,
        "max_iterations": entry.max_iterations,
        "failures": [_failure(ref) for ref in last.failures] if last is not None else [],
        "old": entry.old,
        "evidence": [evidence.model_dump(mode="json") for evidence in entry.evidence],
    }


def _failure(ref: FailureRef) -> dict[str, Any]:
    """In the words of `read --json`; the full message is in the log."""
    return {
        "name": ref.name,
        "file": ref.file,
        "line": ref.line,
        "error_type": ref.error_type,
        "message": ref.headline,
    }


def deadline_of(found: Snapshot) -> datetime | None:
    """When the next deadline falls due on the wall clock, if the engine keeps running (K34)."""
    if not found.deadlines or found.fields.get("held"):
        return None
    return found.moment.at + timedelta(seconds=min(found.deadlines.values()) - found.moment.clock)


def summary(workflow: str, fields: Mapping[str, str]) -> dict[str, Any]:
    """One workflow in the list of all, from its plain fields."""
    try:
        return _summary(workflow, fields)
    except (ValueError, ProtocolError) as error:
        return _summary(workflow, {DAMAGED: f"a plain field of it cannot be read ({error})"})


def _summary(workflow: str, fields: Mapping[str, str]) -> dict[str, Any]:
    iteration, _, most = fields.get("iteration", "0/0").partition("/")
    chosen = {name: fields.get(name) or None for name in _SUMMARY}
    return {
        "issue": int(workflow.split("-")[1]),
        "workflow_id": workflow,
        **chosen,
        "profile": chosen["profile"] or "validation",
        "paused": bool(fields.get("paused") or fields.get("held")),
        "iteration": int(iteration or 0),
        "max_iterations": int(most or 0),
        "tree": fields.get("tree", ""),
        "updated_at": _second(fields.get("updated_at", "")),
        "damaged": fields.get(DAMAGED),
    }


def _second(text: str) -> str:
    return iso_stamp(datetime.fromisoformat(text)) if text else ""


def listed(found: Iterable[tuple[str, Mapping[str, str]]]) -> list[dict[str, Any]]:
    """The summaries of all workflows: what waits for a person, then what else is live; each the latest first."""
    latest = sorted((summary(*each) for each in found), key=lambda each: each["updated_at"], reverse=True)
    return sorted(latest, key=lambda each: (each["outcome"] is not None, each["owner"] != "person"))


def listing_table(summaries: Iterable[Mapping[str, Any]]) -> "Table":
    """The list of all for people."""
    made = table("issue", "status", "turn", "specialist", "run", "updated", "name", "project")
    for each in summaries:
        row(
            made,
            f"#{each['issue']}",
            _shown_status(each),
            "" if each["outcome"] else each["owner"],
            each["specialist"] or "",
            f"{each['iteration']}/{each['max_iterations']}",
            each["updated_at"],
            short(each["name"] or "", 40),
            short(each["project"] or "", 60),
            style="dim" if each["outcome"] else LOUD if each["owner"] == "person" else "",
        )
    return made


def _shown_status(each: Mapping[str, Any]) -> str:
    if each["damaged"]:
        return DAMAGED
    return each["outcome"] or (f"{each['status']} (paused)" if each["paused"] else str(each["status"]))


def phases_table(state: State) -> "Table":
    """The specialists in the order of the phases, with failures now and before."""
    made = table("", "phase", "specialist", "status", "run", "failures")
    for entry in state.specialists:
        if entry.applicable:
            current = entry.name == state.current and not state.ended
            row(
                made,
                ">" if current else "",
                slot(entry.name).phase,
                entry.name,
                "skipped" if entry.skipped else entry.status.value,
                f"{entry.iteration}/{entry.max_iterations}",
                _failures(entry.runs),
                style="yellow" if current and entry.status not in _STYLES else _STYLES.get(entry.status, ""),
            )
    return made


def _failures(runs: tuple[Run, ...]) -> str:
    """`2 (before: 5)`."""
    if not runs:
        return ""
    before = f" (before: {runs[-2].count})" if len(runs) > 1 else ""
    return f"{runs[-1].count}{before}"


def is_away(before: Moment, after: Moment) -> bool:
    """True when no sweep has moved the engine's clock for 5 s (K34): no worker is there to go on."""
    return after.at > before.at and after.clock <= before.clock


def details(found: Snapshot, state: State, away: bool = False) -> Iterator[tuple[str, str]]:
    """The facts beside the table of phases, as label and text."""
    yield from waits(found, state)
    yield "workflow", f"{state.workflow} ({state.profile}, project {state.project or state.workflow[:8]})"
    yield "status", _standing(state)
    if state.held is not None:
        yield "paused", _held_line(state.held)
    report = _report(state)
    if report is not None:
        yield "report", _report_line(report)
    # Nobody is seen at work on what somebody outside is asked for.
    working = "clock" if waits_for_agent(state) else "at work"
    for each in running(state, found.moment.clock, found.deadlines):
        label = "iteration" if each.name is OperationName.ITERATION else working
        yield label, f"{each.name} of {each.specialist}, {_running(each, found)}"
    at_rest = state.ended or state.paused or state.held is not None
    if away and not at_rest and not waits_for_agent(state):
        yield "engine", f"away: no worker is running; `fixloop worker`{_or_resume(state)} goes on"
    yield from deadline_line(found, away)
    yield "tree", state.tree
    for missing in blocking(state.unverified):
        where = f"{missing.name} of {missing.specialist}: {missing.reason}"
        yield "missing", "; ".join(filter(None, (where, missing.remedy)))
    for remark in remarks(state):
        yield "note", remark
    if is_fixed(state):
        yield "branch", f"fixloop/{state.issue}"
    yield "updated", f"{stamp(state.last_at)} UTC"
    yield "next", next_command(state)


def deadline_line(found: Snapshot, away: bool) -> Iterator[tuple[str, str]]:
    """When the next deadline falls due, or how much of it is left while clocks stand still; nothing without one."""
    due = deadline_of(found)
    if due is None:
        return
    left = (due - found.moment.at).total_seconds()
    if away:
        yield "deadline", f"in {minutes_seconds(max(0.0, left))}, but clocks stand still until a worker runs"
    else:
        yield "deadline", f"{stamp(due)} UTC, {f'in {minutes_seconds(left)}' if left > 0 else 'due'}"


def waits(found: Snapshot, state: State) -> Iterator[tuple[str, str]]:
    """What somebody has to do before anything goes on, since when, and what answers it; first of all facts."""
    opened = state.escalation
    if state.held is not None:
        return
    if opened is not None:
        what = "a manual fix" if opened.decision is not None else "a decision"
        yield WAITS, f"for {what}{_since(opened.at, found)}: {reason_of(opened)}"
        yield from (("", line) for line in choice_lines(choices(state)))
    elif waits_for_agent(state):
        asked = f"for a fix of {count_of(state.failure_count)}{_since(offered_since(found, state), found)}"
        yield WAITS, asked
        yield from (("", line) for line in (*no_fixer(state), *choice_lines(fix_choices(state))))


def _since(at: datetime, found: Snapshot) -> str:
    waited = max(0.0, (found.moment.at - at).total_seconds())
    return f" since {stamp(at)} UTC ({hours_minutes_seconds(waited)})"


def _or_resume(state: State) -> str:
    return f" or `fixloop resume {called(state)}`" if state.queue else ""


def _standing(state: State) -> str:
    if state.outcome is not None:
        return f"{state.status}, {state.outcome}, {state.verdict}"
    return f"{state.status}, {state.current} run {state.active.iteration}, {state.owner}'s turn"


def _running(each: Running, found: Snapshot) -> str:
    """How long it has run, with its threshold (A90)."""
    if each.elapsed_seconds is None:
        claimed = any(held.status == "claimed" for held in found.tickets)
        return "running" if claimed else "waiting for a worker"
    limit = f" of {minutes_seconds(each.limit_seconds)}" if each.limit_seconds is not None else ""
    return f"for {minutes_seconds(each.elapsed_seconds)}{limit}{', reminded' if each.reminded else ''}"


def _operations(found: Snapshot, state: State) -> list[dict[str, Any]]:
    return [
        {
            "name": each.name.value,
            "specialist": each.specialist,
            "iteration": each.iteration,
            "elapsed_seconds": each.elapsed_seconds,
            "limit_seconds": each.limit_seconds,
            "reminded": each.reminded,
        }
        for each in running(state, found.moment.clock, found.deadlines)
    ]


def _held(held: Hold | None) -> dict[str, Any] | None:
    """A person's own pause."""
    if held is None:
        return None
    return {"by": held.by, "reason": held.reason, "since": iso_stamp(held.at), "kept": len(held.events)}


def _held_line(held: Hold) -> str:
    kept = f"; what came meanwhile is kept ({len(held.events)})" if held.events else ""
    return f"by {pause_of(held)}; no clock runs{kept}"
