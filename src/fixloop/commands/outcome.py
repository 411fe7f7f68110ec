"""The end of following a validation workflow: where it stands, and the lines with its result."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

from fixloop.commands.choices import choice_lines, choices, finding_lines, fix_choices, no_fixer
from fixloop.commands.presenter import Standing, way_out
from fixloop.commands.screen import few, short
from fixloop.commands.verdict import blocking, flakes, missing_lines, old_findings, passed_over
from fixloop.protocol.durations import stamp
from fixloop.protocol.failures import FailureRef, count_of
from fixloop.protocol.ids import called
from fixloop.protocol.messages import Decision
from fixloop.protocol.specialists import Status, specialist as slot
from fixloop.protocol.state import Hold, OpenEscalation, State, WorkflowOutcome
from fixloop.store.records import Snapshot

SHOWN_FAILURES: Final = 20
_VERDICTS: Final = {
    "passed": "passed",
    "passed_with_known_issues": "passed with known issues",
    "not_verified": "not verified",
    "not_passed": "not passed",
}


def standing(state: State) -> Standing:
    """Where the workflow stands, for those who follow it."""
    waits_for: Literal["", "decision", "agent"] = "agent" if waits_for_agent(state) else ""
    return Standing(
        issue=state.issue,
        name=state.name,
        outcome=state.outcome.value if state.outcome is not None else "",
        waits_for="decision" if state.paused else waits_for,
        held=pause_of(state.held) if state.held is not None else "",
        at_work=f"{state.active.name} is {state.active.status}",
        pushes=state.push,
        called=called(state),
    )


def waits_for_agent(state: State) -> bool:
    """True when an outside agent or a person has the open fix request; nobody waits for a fixer command."""
    return state.fixer == "outside" and state.owner == "agent" and not state.ended


def offered_since(found: Snapshot, state: State) -> datetime:
    """When the fix was requested, on the wall clock."""
    operation = state.operation
    if operation is not None and operation.asked_at is not None:
        return operation.asked_at
    if operation is None or operation.started_clock is None:
        return state.last_at
    # An older version wrote it, with the engine's clock only.
    return found.moment.at - timedelta(seconds=found.moment.clock - operation.started_clock)


def result_lines(state: State) -> Iterator[str]:
    """The last lines of `run` and `watch`."""
    who = f"#{state.issue} {short(state.name, 60)}"
    if state.outcome is not None:
        # Each phase with its iteration history (B40).
        for entry in state.specialists:
            if entry.applicable and entry.runs:
                counts = " → ".join(str(run.count) for run in entry.runs)
                what = "skipped by a person" if entry.skipped else entry.status
                runs = f"run {entry.iteration}/{entry.max_iterations}"
                yield f"  {slot(entry.name).phase}: {what}, {runs}, failures {counts}"
        yield "; ".join([f"{who}: {_ending(state)}", *remarks(state)])
        if state.outcome is WorkflowOutcome.UNVERIFIED:
            yield from missing_lines(blocking(state.unverified) or state.unverified)
    elif state.held is not None:
        yield f"{who} is paused by {pause_of(state.held)}"
        yield f"fixloop continue {called(state)}"
    elif state.escalation is not None:
        wanted = "a manual fix" if state.escalation.decision is Decision.MANUAL_FIX else "a decision"
        yield f"{who} waits for {wanted}: {reason_of(state.escalation)}"
        yield from finding_lines(state.escalation.findings) or _failures(state)
        yield from remarks(state)
        yield from choice_lines(choices(state))
    elif waits_for_agent(state):
        yield f"{who} waits for a fix of {count_of(state.failure_count)} in {_run_of(state)}"
        yield from _failures(state)
        yield from old_failures(state)
        yield from no_fixer(state)
        yield from choice_lines(fix_choices(state))
    else:
        yield f"{who} continues: {_run_of(state)} is {state.active.status}"


def remarks(state: State) -> Iterator[str]:
    """What a PASS must not hide (K38): what never ran, marks, decisions, old failures, skipped checks; the push."""
    yield from passed_over(state.unverified)
    found = [each for entry in state.specialists for each in entry.evidence]
    yield from flakes(found)
    if state.marks:
        yield f"fixes touched tests or gates: {few(state.marks)}"
    if added := tuple(dict.fromkeys(text for each in found for text in each.literals_of_tests)):
        yield f"fixes added literals of the tests to the product: {few(added)}"
    if state.decided:
        yield f"decided by a person: {few(tuple(dict.fromkeys(state.decided)))}"
    for entry in state.specialists:
        if entry.known_issues:
            until, _, owner = entry.waiver.partition(" ")
            accepted = f"; accepted until {until}, {owner} is responsible" if until else ""
            yield f"known issues of {entry.name}: {few(entry.known_issues)}{accepted}"
    yield from old_failures(state)
    for entry in state.specialists:
        if entry.skipped_checks:
            yield f"skipped checks of {entry.name}: {few(entry.skipped_checks)}"
    if state.pushed:
        yield f"pushed as {state.pushed}"
    elif state.push_error:
        yield f"not pushed: {short(state.push_error, 400)}; `fixloop push {called(state)}` retries"


def old_failures(state: State) -> Iterator[str]:
    """What the base has too, one line per check, and which checks could not be compared with it."""
    # It loads the snapshot code, which `status` does not need.
    from fixloop.outside.transfer import snapshot_in

    snapshot = snapshot_in(state) if state.snapshot else None
    there = (snapshot.base_name or snapshot.base[:7]) if snapshot is not None else ""
    for entry in state.specialists:
        for check, count in entry.old.items():
            yield old_findings(check, count, there)
        yield from (f"{check}: every failure counts, as {why}" for check, why in entry.uncompared.items())


def reason_of(opened: OpenEscalation) -> str:
    """The reason with its detail and the id of the escalation."""
    detail = f": {short(opened.detail, 500)}" if opened.detail else ""
    return f"{opened.reason.text}{detail} ({opened.message_id})"


def pause_of(held: Hold) -> str:
    """Who paused it, since when and why."""
    because = f": {short(held.reason)}" if held.reason else ""
    return f"{short(held.by)} since {stamp(held.at)} UTC{because}"


def next_command(state: State) -> str:
    """The command most likely wanted next."""
    issue = called(state)
    if state.held is not None and not state.ended:
        return f"fixloop continue {issue}"
    if state.outcome is WorkflowOutcome.UNVERIFIED:
        return "fixloop doctor"
    if state.outcome in (WorkflowOutcome.SUCCESS, WorkflowOutcome.SKIPPED):
        return way_out(state) or f"fixloop log {issue}"
    if state.outcome is not None:
        return f"fixloop log {issue}"
    if state.escalation is not None:
        # Nobody should accept unseen findings.
        return "fixloop inbox" if state.escalation.findings else choices(state)[0].command
    if not waits_for_agent(state):
        return f"fixloop watch {issue}"
    # Before the receipt there is no directory whose work could be submitted.
    return fix_choices(state)[state.active.status is Status.FIXING].command


def is_fixed(state: State) -> bool:
    """True when a fix was recorded, so that there is a branch."""
    return any(run.fixes for entry in state.specialists for run in entry.runs)


def _ending(state: State) -> str:
    if state.outcome in (WorkflowOutcome.ABORTED, WorkflowOutcome.CANCELLED):
        return f"{state.outcome}, not passed, while {_run_of(state)} was {state.active.status}"
    applicable = [entry for entry in state.specialists if entry.applicable]
    if not applicable:
        return "not verified: nothing could run here"
    runs = sum(entry.iteration for entry in applicable)
    verdict = _VERDICTS[state.verdict or "passed"]
    specialists = f"{len(applicable)} specialist{'s' * (len(applicable) != 1)}"
    counts = f"{specialists}, {runs} run{'s' * (runs != 1)}"
    ran = "what ran has passed: " if state.outcome is WorkflowOutcome.UNVERIFIED else ""
    return f"{verdict} ({ran}{counts}, tree {state.tree[:12]})"


def _run_of(state: State) -> str:
    active = state.active
    return f"{active.name} run {active.iteration}/{active.max_iterations}"


def _failures(state: State) -> Iterator[str]:
    """Those of the last run, or of a confirmation for which no run was left (K37)."""
    last = state.active.last_run
    if last is None or state.active.has_passed:
        yield from failure_lines([FailureRef.of(failure) for failure in state.failures], state.failure_count)
    else:
        yield from failure_lines(last.failures, last.count)


def failure_lines(found: Sequence[FailureRef], count: int) -> Iterator[str]:
    """The first of `count` failures, one per line, and how many more there are."""
    for ref in found[:SHOWN_FAILURES]:
        where = f" ({ref.file}:{ref.line})" if ref.line is not None else f" ({ref.file})" if ref.file else ""
        yield f"  {short(f'{ref.name}{where}: {ref.headline or ref.error_type}', 200)}"
    if count > SHOWN_FAILURES:
        yield f"  and {count_of(count - SHOWN_FAILURES)} more"
