"""Builds the failure report and the fix request for a failed run (A23-A30, B10, K41).

Limits their size. Groups failures by cause, the largest group first; counts stay exact.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from fixloop.errors import ProtocolError
from fixloop.protocol import analysis, diagnosis
from fixloop.protocol.failures import Failure, FailureRef, groups
from fixloop.protocol.messages import Attempt, FailureReport, FixItem, FixRequest, Message
from fixloop.protocol.notices import next_phase
from fixloop.protocol.specialists import Specialist
from fixloop.protocol.state import SpecialistState, State

LISTED_CHARACTERS: Final = 27_000
"""For examples in full; with the rest of a request they fit into 10,000 tokens."""
NAMED_CHARACTERS: Final = 5_000
"""For the names of the failures that an example represents."""
DIFF_CHARACTERS: Final = (3000, 1000)
"""For the last fix, and for each earlier one."""
MOST_TRIED: Final = 3
MOST_NEW: Final = 3
EXAMPLES: Final = 50


def examples(failures: Sequence[Failure]) -> tuple[Failure, ...]:
    """One failure of each group, largest group first, at most EXAMPLES."""
    return tuple(failures[group[0]] for group in groups(map(FailureRef.of, failures))[:EXAMPLES])


def report_of(state: State, who: Specialist, listed: tuple[Failure, ...]) -> FailureReport:
    """The failure report of the active specialist's last run; `listed` are its `listed_failures`."""
    last = state.active.last_run
    return FailureReport(
        feature=state.name,
        phase=who.phase,
        specialist_handle=who.handle,
        failure_type=who.failure_type,
        severity=state.severity,
        next_phase=next_phase(state),
        failures=listed,
        further=state.failure_count - sum(failure.alike for failure in listed),
        coverage=last.coverage if last is not None else "",
        fix_limit_seconds=state.limits.fix_seconds,
        reminder_window_seconds=state.limits.reminder_window_seconds,
        marks=state.marks,
    )


def request_of(state: State, who: Specialist, listed: tuple[Failure, ...]) -> FixRequest:
    """The fix request for that report."""
    active, count = state.active, state.failure_count
    if any(failure.measure and failure.name == "coverage" for failure in state.failures):
        goal = f"Bring {_expected(active, who).partition(', ')[2]} in {who.phase}"
    elif who.failure_type == "Test Failures":
        goal = f"Make {count} failing test{'s' * (count != 1)} of {who.phase} pass"
    else:
        goal = f"Resolve {count} finding{'s' * (count != 1)} of {who.phase}"
    return FixRequest(
        goal=goal,
        items=tuple(
            FixItem(name=each.name or "unnamed", file=each.file, line=each.line, priority=each.priority)
            for each in listed
        ),
        further=count - sum(failure.alike for failure in listed),
        commands=active.commands,
        approach=diagnosis.approach(active, listed),
        tried=_earlier_attempts(active),
        older=sum(active.old.values()),
        expected=_expected(active, who),
        remaining_iterations=max(0, active.max_iterations - active.iteration),
    )


def request_json(report: Message) -> dict[str, Any]:
    """`{failure_report, fix_request}` of FIXLOOP_REQUEST as JSON-able values (K9)."""
    request = report.attached
    if not isinstance(report.body, FailureReport) or request is None or request.body.kind != "fix-request":
        raise ProtocolError(f"{report.message_id} is not a failure report with a fix request attached")
    return {
        "failure_report": report.model_dump(mode="json", exclude={"attached"}),
        "fix_request": request.model_dump(mode="json", exclude={"attached"}),
    }


def listed_failures(state: State) -> tuple[Failure, ...]:
    """The examples that fit, each with the failures it represents."""
    last = state.active.last_run
    refs = last.failures if last is not None else tuple(map(FailureRef.of, state.failures))
    room, names_room = LISTED_CHARACTERS, NAMED_CHARACTERS
    listed: list[Failure] = []
    known = {FailureRef.of(failure).key: failure for failure in reversed(state.failures)}
    for group in groups(refs):
        failure = known.get(refs[group[0]].key)
        if failure is None:
            break
        shown = (failure.name, failure.message, failure.source, failure.context)
        room -= 100 + sum(map(len, (*shown, failure.rerun, failure.suggestion)))
        if listed and room < 0:
            break
        others, left = list[str](), names_room // 2
        for position in group[1:]:
            ref = refs[position]
            # A test's id contains its location; a rule's findings are named by theirs.
            is_placed = ref.line is not None and "::" not in ref.name and ref.file
            name = f"F{position + 1} {f'{ref.file}:{ref.line}' if is_placed else ref.name}"
            left -= len(name)
            if left < 0:
                break
            others.append(name)
        names_room -= sum(map(len, others))
        facts = {"id": f"F{group[0] + 1}", "alike": len(group), "others": tuple(others)}
        listed.append(failure.model_copy(update=facts))
    return tuple(listed)


def _earlier_attempts(active: SpecialistState) -> tuple[Attempt, ...]:
    pairs = [(run, following) for run, following in pairwise(active.runs) if run.fixes and not run.passed]
    found = []
    for place, (run, following) in enumerate(reversed(pairs[-MOST_TRIED:])):
        changes = analysis.comparison(run, following)
        found.append(
            Attempt(
                iteration=run.number,
                fixes=run.fixes[:MOST_NEW],
                said=run.said if place == 0 else run.said[-300:],
                diff=run.diff[: DIFF_CHARACTERS[min(place, 1)]],
                resolved=len(changes.resolved),
                left=len(changes.persisting),
                new=changes.new[:MOST_NEW],
                new_count=len(changes.new),
            )
        )
    return tuple(reversed(found))


def _expected(active: SpecialistState, who: Specialist) -> str:
    """The phase's gate (A29, U3), with the required coverage."""
    tests, _, _ = who.expected.partition(", coverage")
    return f"{tests}, coverage ≥{active.coverage_gate:g}%" if active.coverage_gate is not None else tests
