"""Every reason for an escalation with every decision, as one table (K20, K27, K12)."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import pytest

from fixloop.protocol import events as ev
from fixloop.protocol.messages import MAIN_AGENT, USER, Decision, Reason
from fixloop.protocol.specialists import Role, Status
from fixloop.protocol.state import WorkflowOutcome
from tests.fixtures.script import SILENT, Fix, fails, passes
from tests.fixtures.validation_stage import Stage
from tests.unit import test_decisions as made

AWAITING, FIXING, CHECKING = Status.AWAITING_FIX, Status.FIXING, Status.RE_CHECKING
RUNNING, ESCALATED = Status.IN_PROGRESS, Status.ESCALATED


class After(NamedTuple):
    """The specialist's status after a decision, and the open request."""

    status: Status
    step: str
    """Empty: an outside agent has the request."""
    iteration: int
    maximum: int


class Row(NamedTuple):
    """One way into an escalation, and where each decision leads."""

    make: Callable[[], Stage]
    reason: Reason
    target: str
    extend: After
    manual: After
    at_once: bool = False
    """A manual fix is checked without waiting for its end: the fault is outside the tree."""


def confirmation_at_the_limit() -> Stage:
    """A later fix broke unit-test, and it has no run left (K37)."""
    return Stage(
        {"unit-test": [fails("v"), passes()], "security": [fails("s")]},
        confirmations={"unit-test": [fails("u")]},
        max_iterations=2,
    ).run()


def confirmations_that_undo_each_other() -> Stage:
    return Stage(
        {"unit-test": [passes()], "security": [fails("s")]},
        confirmations={"unit-test": [fails("u"), fails("u")], "security": [fails("s")]},
    ).run()


def late_confirmation() -> Stage:
    stage = Stage({"unit-test": [passes()], "security": [fails("s")]}, confirmations={"unit-test": [SILENT]})
    return stage.run().advance(2101.0)


ROWS = (
    Row(
        made.max_iterations,
        Reason.MAX_ITERATIONS,
        USER,
        After(ESCALATED, "report", 2, 5),
        After(CHECKING, "recheck", 3, 3),
    ),
    Row(
        made.deadlock,
        Reason.DEADLOCK,
        USER,
        After(ESCALATED, "report", 3, 8),
        After(CHECKING, "recheck", 4, 6),
    ),
    Row(
        made.late_validation,
        Reason.TIMEOUT,
        USER,
        After(RUNNING, "validate", 1, 5),
        After(CHECKING, "recheck", 2, 6),
    ),
    Row(made.late_fix, Reason.TIMEOUT, USER, After(AWAITING, "", 1, 5), After(CHECKING, "recheck", 2, 6)),
    Row(
        made.late_command, Reason.TIMEOUT, USER, After(FIXING, "fix", 1, 5), After(CHECKING, "recheck", 2, 6)
    ),
    Row(
        made.late_recheck,
        Reason.TIMEOUT,
        USER,
        After(CHECKING, "recheck", 2, 5),
        After(CHECKING, "recheck", 3, 6),
    ),
    Row(
        made.late_iteration,
        Reason.TIMEOUT,
        USER,
        After(CHECKING, "recheck", 2, 5),
        After(CHECKING, "recheck", 3, 6),
    ),
    Row(
        made.specialist_error,
        Reason.SPECIALIST_ERROR,
        MAIN_AGENT,
        After(RUNNING, "validate", 1, 5),
        After(RUNNING, "validate", 1, 5),
        at_once=True,
    ),
    Row(
        made.communication_error,
        Reason.COMMUNICATION_ERROR,
        MAIN_AGENT,
        After(ESCALATED, "report", 1, 5),
        After(CHECKING, "recheck", 2, 6),
    ),
    Row(
        made.invalid_response,
        Reason.INVALID_RESPONSE,
        MAIN_AGENT,
        After(ESCALATED, "report", 1, 5),
        After(CHECKING, "recheck", 2, 6),
    ),
    Row(
        made.unresponsive,
        Reason.UNRESPONSIVE,
        USER,
        After(ESCALATED, "report", 1, 5),
        After(CHECKING, "recheck", 2, 6),
    ),
    Row(
        made.blocker, Reason.BLOCKER, USER, After(ESCALATED, "report", 1, 5), After(CHECKING, "recheck", 2, 6)
    ),
    Row(
        made.integrity_hold,
        Reason.INTEGRITY_HOLD,
        USER,
        After(RUNNING, "recheck", 2, 5),
        After(CHECKING, "recheck", 3, 6),
    ),
    Row(
        confirmation_at_the_limit,
        Reason.MAX_ITERATIONS,
        USER,
        After(CHECKING, "recheck", 3, 5),
        After(CHECKING, "recheck", 3, 3),
    ),
    Row(
        confirmations_that_undo_each_other,
        Reason.DEADLOCK,
        USER,
        After(ESCALATED, "report", 4, 8),
        After(CHECKING, "recheck", 5, 6),
    ),
    Row(
        late_confirmation,
        Reason.TIMEOUT,
        USER,
        After(CHECKING, "confirm", 1, 5),
        After(CHECKING, "recheck", 2, 6),
    ),
)

of_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.make.__name__.replace("_", " "))


def stands(stage: Stage, name: str) -> After:
    """The status of the specialist `name`, and the one thing that is asked for."""
    entry = stage.state.specialist(name)
    asked = [ticket.step for ticket in stage.pending]
    assert len(asked) <= 1
    return After(entry.status, "".join(asked), entry.iteration, entry.max_iterations)


@pytest.mark.proves("K12", "K27", "A65", "A69")
@of_row
def test_each_reason_has_its_target_and_one_report(row: Row) -> None:
    stage = row.make()

    (report,) = stage.said("escalation")
    assert stage.escalation.reason is row.reason
    assert (report.recipient, report.priority.value) == (row.target, "critical")
    assert stage.messages[-1] is report
    assert {row.reason for row in ROWS} == set(Reason)


@pytest.mark.proves("K20", "A13", "A92")
@of_row
def test_extend_resumes_at_each_stage(row: Row) -> None:
    stage = row.make()
    name = stage.active.name

    stage.decide("extend")

    assert not stage.state.paused
    assert stage.state.escalation is None
    assert stands(stage, name) == row.extend
    if row.extend.step == "report":
        stage.script.answers = None
        stage.step()
        assert stage.messages[-1].message_id == f"VFR-101-{name}-{row.extend.iteration}"
        assert stage.state.specialist(name).status in (AWAITING, FIXING)


@pytest.mark.proves("K20", "A13", "B51", "K19")
@of_row
def test_manual_fix_resumes_at_each_stage(row: Row) -> None:
    stage = row.make()
    name = stage.active.name

    stage.decide("manual-fix")
    if not row.at_once:
        assert stage.state.paused
        assert stands(stage, name)[:2] == (ESCALATED, "")
        stage.done_by_hand()
        assert stage.messages[-1].message_id == f"REVAL-101-{name}-{row.manual.iteration}"
        assert [ticket.iteration for ticket in stage.pending] == [row.manual.iteration]

    assert not stage.state.paused
    assert stands(stage, name) == row.manual


@pytest.mark.proves("K20", "B51", "B63", "K28")
@of_row
def test_skip_continues_at_each_stage(row: Row) -> None:
    stage = row.make()
    name = stage.active.name

    change, *others = stage.decide("skip", reason="known").transitions

    assert (change.before, change.after, change.role) == (ESCALATED, Status.COMPLETED, Role.ORCHESTRATOR)
    begun = [] if stage.state.ended else [(stage.state.current, RUNNING)]
    assert [(other.specialist, other.after) for other in others] == begun
    entry = stage.state.specialist(name)
    assert (entry.status, entry.skipped) == (Status.COMPLETED, True)
    assert entry.known_issues
    assert stage.state.ended or stage.state.current != name
    stage.run()
    assert stage.state.outcome is WorkflowOutcome.SKIPPED


@pytest.mark.proves("K20", "B51", "A8")
@of_row
def test_abort_ends_the_workflow_at_each_stage(row: Row) -> None:
    stage = row.make()
    name, iteration = stage.active.name, stage.active.iteration
    late = stage.completed(Fix(), iteration, name)
    before = stage.state.specialists

    outcome = stage.decide("abort")

    assert not outcome.messages
    assert not outcome.transitions
    assert stage.state.specialists == before
    assert stage.state.outcome is WorkflowOutcome.ABORTED
    assert stage.state.specialist(name).status is ESCALATED
    assert not stage.pending
    assert not stage.deadlines
    assert "returned to the design phase" in stage.notes
    assert "ended (aborted)" in stage.refused(partial(stage.apply, late))


@pytest.mark.proves("K20", "A69", "A13")
@of_row
def test_no_second_decision_changes_anything(row: Row) -> None:
    for first in row.reason.decisions:
        stage = row.make()
        opened = stage.messages[-1].message_id
        stage.decide(first)

        for second in Decision:
            stage.refused(partial(stage.decide, second))
            refusal = stage.refused(partial(stage.decide, second, escalation=opened))
            assert "\n" not in refusal
            assert len(refusal) < 200


@pytest.mark.proves("A13", "K20")
@pytest.mark.parametrize("decision", list(Decision))
def test_a_decision_without_an_open_escalation_is_refused(decision: Decision) -> None:
    stage = Stage([fails("a")], answers=None).run()

    assert "waits for no decision" in stage.refused(partial(stage.decide, decision))


@pytest.mark.proves("K20", "A10")
def test_skipping_the_last_phase_ends_the_workflow() -> None:
    stage = Stage([fails("a")] * 3).run()

    stage.decide("skip")

    assert stage.state.outcome is WorkflowOutcome.SKIPPED
    assert stage.state.status is Status.COMPLETED
    assert stage.state.verdict == "passed_with_known_issues"


@pytest.mark.proves("K20", "A8", "K4")
def test_a_fix_that_comes_after_a_skip_answers_nothing() -> None:
    stage = Stage({"test-runner": [fails("a")], "security": [fails("s")]}, answers=[SILENT]).run()
    late = stage.completed(Fix(), 1, "test-runner")
    stage.apply(ev.BlockerSignalled(by="agent", text="no access"))
    stage.decide("skip")
    stage.script.answers = None
    stage.run()
    assert (stage.active.name, stage.active.status) == ("security", AWAITING)

    refusal = stage.refused(partial(stage.apply, late))

    assert "FIXDONE-101-1 of test-runner answers no open request" in refusal
    assert stage.state.tree == "tree-0"


@pytest.mark.proves("K20", "A8")
def test_a_fix_that_comes_after_a_cancel_answers_nothing() -> None:
    stage = Stage([fails("a")], answers=[SILENT]).run()
    late = stage.completed(Fix(), 1, "test-runner")
    stage.apply(ev.Cancelled())

    assert "ended (cancelled)" in stage.refused(partial(stage.apply, late))


@pytest.mark.proves("K20", "K6")
@pytest.mark.parametrize("minutes", [1.0, 45.0])
@pytest.mark.parametrize("make", [made.late_fix, made.late_iteration])
def test_extend_by_minutes_lengthens_operation_and_iteration(
    make: Callable[[], Stage], minutes: float
) -> None:
    stage = make()

    stage.decide("extend", minutes=minutes, iterations=7)

    assert stage.active.max_iterations == 5
    assert stage.deadlines["total-iteration"] == stage.clock + minutes * 60


@pytest.mark.proves("K20", "K7")
@pytest.mark.parametrize("make", [made.max_iterations, made.deadlock])
def test_extend_by_iterations_resets_the_window_of_a_deadlock(make: Callable[[], Stage]) -> None:
    stage = make()
    before = stage.active

    stage.decide("extend", iterations=2, minutes=99.0)

    assert stage.active.max_iterations == before.max_iterations + 2
    assert stage.active.window_start == before.iteration
