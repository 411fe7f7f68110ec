"""Builds a workflow's report from its state and history: a pure function, without a clock or a store."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from fixloop.protocol.event import Moment
from fixloop.protocol.log import title
from fixloop.protocol.specialists import specialist as slot
from fixloop.protocol.state import State, WorkflowOutcome
from fixloop.store.records import Entry
from fixloop.summary import model
from fixloop.summary.gates import gates
from fixloop.summary.history import Artifact, Recorded, recorded
from fixloop.summary.phases import old_rows, phases_of, times_of
from fixloop.summary.timeline import ERRORS, Interval, bars_of, intervals, marks_of

TAIL_LINES: Final = 15
"""The lines of a failed fixer's output, enough for the end of a traceback."""

_STANDINGS: Final = {
    WorkflowOutcome.ABORTED: model.Standing.ABORTED,
    WorkflowOutcome.CANCELLED: model.Standing.CANCELLED,
    WorkflowOutcome.SUCCESS: model.Standing.COMPLETED,
    WorkflowOutcome.SKIPPED: model.Standing.COMPLETED,
    WorkflowOutcome.UNVERIFIED: model.Standing.UNVERIFIED,
}


class Told(NamedTuple):
    """The input of a report besides state and history."""

    next_command: str = ""
    """The most likely next command."""
    answers: tuple[model.Answer, ...] = ()
    """The commands that continue a workflow that waits for somebody."""
    artifact: Artifact = lambda digest: None
    """Loads artifacts that the entries only name."""
    diff: str = ""
    """The changes of all fixes together."""
    texts: range | None = None
    """The numbers of the messages given in full, which takes most of the time; None: all."""


def summarize(state: State, history: Iterable[Entry], now: Moment, told: Told | None = None) -> model.Summary:
    """The report on a workflow that runs, waits or has ended; what is in progress is measured up to `now` (U18)."""
    told = told or Told()
    entries = recorded(history)
    until = state.until if state.ended else max(now.at, state.last_at)
    within = [entry for entry in entries if entry.at <= until]
    found = intervals(within, None if state.ended else Moment(until, now.clock))
    phases = tuple(phases_of(state, entries, found, told.artifact))
    escalations = tuple(_escalations(entries, None if state.ended else now.at))
    errors = tuple(
        model.ErrorRow(
            kind=ERRORS[said.message.body.kind],
            message_id=said.message.message_id,
            specialist=said.message.specialist,
            iteration=said.message.iteration,
            at=said.message.at,
            summary=model.one_line(said.message.summary, 1000),
            output=_tail(entry),
        )
        for entry in entries
        for said in entry.lines
        if said.message.body.kind in ERRORS
    )
    # What is running, for how long and with which limit (A90).
    at_work, operation = None, state.operation
    if operation is not None and not state.ended and state.owner != "person" and found:
        at_work = model.AtWork(
            operation=operation.name.value,
            specialist=operation.specialist,
            iteration=operation.iteration,
            elapsed_seconds=found[-1].seconds,
            limit_seconds=operation.limit_seconds,
        )
    fixes = [fix for phase in phases for fix in phase.fixes]
    manual = sum(fix.by != "" for fix in fixes)
    files = tuple(sorted({name for fix in fixes for name in fix.files}))
    bars = bars_of(entries, found, phases)
    described = json.loads(state.snapshot or "{}")  # older snapshots lack some fields
    handed_in = described if isinstance(described, dict) else {}
    folder = str(handed_in.get("source", "")).rstrip("/").rpartition("/")[2].removesuffix(".git")
    standing = model.Standing.PAUSED if state.paused or state.held is not None else model.Standing.RUNNING
    return model.Summary(
        issue=state.issue,
        name=model.one_line(state.name),
        # A feature without a given name is named after its folder; its last commit says more.
        title=model.one_line(str(handed_in.get("subject", ""))) if state.name == folder else "",
        branch=model.one_line(str(handed_in.get("branch", ""))),
        author=model.one_line(str(handed_in.get("author", ""))),
        workflow=state.workflow,
        project=model.one_line(state.project),
        protocol_version=state.protocol_version,
        standing=_STANDINGS[state.outcome] if state.outcome is not None else standing,
        sentence=_sentence(state),
        verdict=state.verdict,
        outcome=state.outcome.value if state.outcome is not None else None,
        status=state.status.value,
        owner=state.owner,
        tree=state.tree,
        started_at=state.started_at,
        as_of=until,
        ended=state.ended,
        times=times_of(found, entries),
        totals=model.Totals(
            iterations=sum(phase.iterations for phase in phases),
            specialists=sum(phase.iterations > 0 for phase in phases),
            fix_cycles=len(fixes) - manual,
            manual_fixes=manual,
            confirmations=sum(len(phase.confirmations) for phase in phases),
            escalations=len(escalations),
            decisions=sum(row.decision != "" for row in escalations),
            reminders=sum(row.kind == "reminder" for row in errors),
            errors=sum(row.kind == "error" for row in errors),
            messages=sum(len(entry.lines) for entry in entries),
            files=len(files),
        ),
        gates=gates(state, entries),
        phases=phases,
        old=tuple(old_rows(entries, told.artifact)),
        escalations=escalations,
        errors=errors,
        at_work=at_work,
        waiting=_waiting(state, entries, found, told.answers),
        next_command=told.next_command,
        diff=model.clean(told.diff) if sum(fix.diff != "" for fix in fixes) > 1 else "",
        marks=tuple(map(model.one_line, state.marks)),
        files=files,
        bars=bars,
        moments=marks_of(entries, bars, found),
        lines=tuple(
            model.Line(
                number=said.message.number,
                at=said.message.at,
                sender=said.message.sender,
                recipient=said.message.recipient,
                title=title(said.message),
                message_id=said.message.message_id,
                summary=model.one_line(said.message.summary, 500),
                text=model.clean(said.rendered)
                if told.texts is None or said.message.number in told.texts
                else "",
            )
            for entry in entries
            for said in entry.lines
        ),
    )


def _waiting(
    state: State, entries: Sequence[Recorded], found: Sequence[Interval], answers: tuple[model.Answer, ...]
) -> model.Waiting | None:
    opened = state.escalation
    if state.ended or state.held is not None or not found:
        return None
    since = found[-1].start
    if opened is not None:
        # The fixer's last output, if nothing has had a result since it failed.
        ends = ("run-finished", "fix-completed", "manual-fix-done", "fix-failed")
        last = next((entry for entry in reversed(entries) if entry.kind in ends), None)
        output = _tail(last) if last is not None and last.kind == "fix-failed" else ""
        what = "a decision" if opened.decision is None else "a fix by hand"
        because = model.one_line(": ".join(filter(None, (opened.reason.text, opened.detail))), 1000)
        return model.Waiting(what=what, since=since, because=because, answers=answers, output=output)
    if state.fixer != "outside" or not state.awaits_fix:
        return None
    nobody = "no fixer is configured; --fixer COMMAND or [fixer] names one"
    who = f"{state.agent} is asked" if state.agent else nobody
    return model.Waiting(what="a fix", since=since, because=who, answers=answers)


def _tail(entry: Recorded) -> str:
    lines = model.clean(str(entry.event.get("output_tail", ""))).strip().splitlines()
    return "\n".join(lines[-TAIL_LINES:])


def _sentence(state: State) -> str:
    active = state.active
    where = f"{slot(active.name).phase}, run {active.iteration} of at most {active.max_iterations}"
    if state.outcome in (WorkflowOutcome.SUCCESS, WorkflowOutcome.UNVERIFIED):
        missing = ", ".join(f"{each.name} ({each.reason})" for each in state.unverified)
        if not any(entry.applicable for entry in state.specialists):
            return model.one_line(f"Nothing could run here: {missing}.")
        ran = "Every specialist that ran passed on the final tree"
        return model.one_line(f"{ran}; not verified here: {missing}." if missing else f"{ran}.")
    if state.outcome is WorkflowOutcome.SKIPPED:
        skipped = [slot(entry.name).phase for entry in state.specialists if entry.skipped]
        return f"A person skipped {' and '.join(skipped)}; what failed there is a known issue."
    if state.outcome is not None:
        return f"It ended in {where}; the feature has not passed."
    if state.held is not None:
        because = f": {state.held.reason}" if state.held.reason else ""
        return model.one_line(f"{where}, is paused by {state.held.by}{because}.")
    if (opened := state.escalation) is not None:
        wanted = "a fix by hand" if opened.decision is not None else "a decision"
        return f"{where}, waits for {wanted}: {opened.reason.text}."
    turn = {"agent": "waits for the main agent's fix", "person": "waits for a person"}
    return f"{where}, {turn.get(state.owner, f'is {active.status}')}."


def _escalations(entries: Sequence[Recorded], now: datetime | None) -> Iterable[model.EscalationRow]:
    for index, entry in enumerate(entries):
        said = entry.says("escalation")
        if said is None or said.message.body.kind != "escalation":
            continue
        body = said.message.body
        later = (each for each in entries[index + 1 :] if each.kind in ("decision-made", "cancelled"))
        answer = next(later, None)
        until, event = (answer.at, answer.event) if answer is not None else (now, {})
        yield model.EscalationRow(
            message_id=said.message.message_id,
            specialist=said.message.specialist,
            phase=body.phase,
            reason=body.reason.text,
            detail=model.one_line(body.detail, 1000),
            to=said.message.recipient,
            at=entry.at,
            pattern=model.one_line(body.pattern, 1000),
            decision=str(event.get("decision", "cancelled")) if event else "",
            by=model.one_line(str(event.get("by", "User"))) if event else "",
            because=model.one_line(str(event.get("reason", "")), 1000),
            decided_at=answer.at if answer is not None else None,
            waited_seconds=max(0.0, (until - entry.at).total_seconds()) if until is not None else 0.0,
        )
