"""S12, S13 and S14: a person's answers, and what follows."""

import pytest

from fixloop.protocol.messages import Reason, Success
from fixloop.protocol.specialists import Role, Status
from fixloop.protocol.state import WorkflowOutcome
from tests.fixtures.script import Fix, Result, fails, passes
from tests.fixtures.validation_stage import Stage

SHRINKING = [fails(*"abcde"), fails(*"abcd"), fails(*"abc"), fails(*"ab"), fails("a")]


def escalated(*later: Result) -> Stage:
    """S4, with a phase behind it and further runs for the case that it continues."""
    return Stage({"test-runner": [*SHRINKING, *later], "code-quality": []}).run()


@pytest.mark.proves("K20", "A92", "K7", "K19")
def test_s12_an_extension_gives_three_more_runs_and_sends_the_open_failure() -> None:
    stage = escalated(fails("f"), passes())

    outcome = stage.decide("extend", iterations=3)
    assert [ticket.step for ticket in outcome.steps] == ["report"]
    assert not stage.state.paused
    stage.step()

    report = stage.messages[-1]
    assert report.message_id == "VFR-101-test-runner-5"
    assert report.attached is not None
    assert report.attached.message_id == "FIXREQ-101-5"
    assert (report.status_before, report.status_after) == (Status.ESCALATED, Status.AWAITING_FIX)
    assert stage.active.max_iterations == 8


@pytest.mark.proves("K20", "A43", "A92", "S12")
def test_s12_the_extended_loop_ends_at_run_seven_of_eight() -> None:
    stage = escalated(fails("f"), passes())
    stage.decide("extend", iterations=3)

    stage.run()

    success = stage.message("SUCCESS-101-test-runner-7")
    assert (success.iteration, success.max_iterations) == (7, 8)
    assert isinstance(success.body, Success)
    assert success.body.history == (5, 4, 3, 2, 1, 1, 0)
    assert stage.message("REVALRES-101-test-runner-6").iteration == 6
    assert "VFR-101-test-runner-6" in stage.ids
    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("K20", "A69", "S12")
def test_s12_a_second_decision_on_the_same_escalation_is_refused() -> None:
    stage = escalated(fails("f"), passes())
    stage.decide("extend")

    for decision in ("extend", "skip", "abort", "manual-fix"):
        assert "waits for no decision" in stage.refused(lambda: stage.decide(decision))  # noqa: B023

    assert stage.active.max_iterations == 8


@pytest.mark.proves("K20", "R8")
def test_a_repeated_decision_does_not_affect_the_next_escalation() -> None:
    stage = escalated(*[fails(*names) for names in ("ab", "a", "b")])
    first = stage.messages[-1].message_id
    stage.decide("extend", escalation=first)
    stage.advance(1.0).run()
    assert stage.state.paused

    assert first in stage.refused(lambda: stage.decide("extend", escalation=first))

    stage.decide("skip", escalation=stage.messages[-1].message_id)
    assert stage.state.specialist("test-runner").skipped


@pytest.mark.proves("K1", "A92")
def test_an_extension_that_is_used_up_escalates_again() -> None:
    stage = escalated(fails("a", "b"), passes())
    stage.decide("extend", iterations=1)

    stage.run()

    assert len(stage.said("escalation")) == 2
    assert stage.escalation.reason is Reason.MAX_ITERATIONS
    assert "REVAL-101-test-runner-7" not in stage.ids


@pytest.mark.proves("K20", "B51", "K28", "K21")
def test_s13_skip_goes_to_the_next_phase_with_known_issues() -> None:
    stage = escalated()

    stage.decide("skip", reason="known flake")
    skipped = stage.state.specialist("test-runner")
    assert (skipped.status, skipped.skipped, skipped.known_issues) == (Status.COMPLETED, True, ("a",))
    assert any("failed but proceeding" in note for note in stage.notes)
    assert stage.active.name == "code-quality"
    assert stage.active.status is Status.IN_PROGRESS
    stage.run()

    assert stage.state.outcome is WorkflowOutcome.SKIPPED
    assert stage.state.verdict == "passed_with_known_issues"
    assert not any(ticket.step == "confirm" for ticket in stage.executed)
    assert "SUCCESS-101-code-quality-1" in stage.ids
    assert not any(i.startswith("SUCCESS-101-test-runner") for i in stage.ids)


@pytest.mark.proves("K20", "B51", "K19", "S13")
def test_s13_abort_ends_the_workflow_in_its_status() -> None:
    stage = escalated()
    late = stage.completed(Fix(), iteration=5, specialist="test-runner")

    stage.decide("abort")
    before = stage.state

    assert stage.state.specialist("test-runner").status is Status.ESCALATED
    assert stage.state.status is Status.ESCALATED
    assert stage.state.outcome is WorkflowOutcome.ABORTED
    assert stage.state.verdict == "not_passed"
    assert "returned to the design phase" in stage.notes
    assert stage.state.specialist("code-quality").status is Status.PENDING
    assert not stage.pending
    assert "ended (aborted)" in stage.refused(lambda: stage.apply(late))
    assert stage.state == before


@pytest.mark.proves("K20", "K19", "A51", "S14")
def test_s14_a_manual_fix_is_waited_for_and_raises_the_limit_by_one() -> None:
    stage = escalated(passes())

    stage.decide("manual-fix")
    assert stage.state.paused
    assert not stage.pending
    assert "decided already" in stage.refused(lambda: stage.decide("extend"))
    outcome = stage.done_by_hand()

    trigger = stage.messages[-1]
    assert trigger.message_id == "REVAL-101-test-runner-6"
    assert (trigger.iteration, trigger.max_iterations) == (6, 6)
    assert (trigger.status_before, trigger.status_after) == (Status.ESCALATED, Status.RE_CHECKING)
    (change,) = outcome.transitions
    assert (change.before, change.after, change.role) == (
        Status.ESCALATED,
        Status.RE_CHECKING,
        Role.SPECIALIST,
    )
    stage.run()
    assert "SUCCESS-101-test-runner-6" in stage.ids
    assert stage.state.outcome is WorkflowOutcome.SUCCESS
    assert stage.state.tree == "tree-by-hand"


@pytest.mark.proves("K20", "A69", "S14")
def test_s14_a_manual_fix_that_fails_escalates_at_once() -> None:
    stage = escalated(fails("a"))
    stage.decide("manual-fix")
    stage.done_by_hand()

    stage.advance(60.0).run()

    assert len(stage.said("escalation")) == 2
    assert stage.messages[-1].message_id != stage.said("escalation")[0].message_id
    assert "VFR-101-test-runner-6" not in stage.ids
    assert stage.escalation.history[4].fixes == "manual fix by ann: by hand"
    assert stage.state.paused


@pytest.mark.proves("K20")
def test_a_manual_fix_below_the_limit_escalates_too_when_it_fails() -> None:
    stage = Stage([fails("a")] * 3 + [fails("b")]).run()
    assert stage.escalation.reason is Reason.DEADLOCK
    stage.decide("manual-fix")
    stage.done_by_hand()

    stage.run()

    assert len(stage.said("escalation")) == 2
    assert (stage.active.iteration, stage.active.max_iterations) == (4, 6)
    assert "VFR-101-test-runner-4" not in stage.ids


@pytest.mark.proves("K20")
def test_after_a_manual_fix_that_passed_the_next_failure_is_an_ordinary_one() -> None:
    stage = Stage({"test-runner": [*SHRINKING, passes()], "security": [fails("x"), passes()]}).run()
    stage.decide("manual-fix")
    stage.done_by_hand()

    stage.run()

    assert stage.state.outcome is WorkflowOutcome.SUCCESS
    assert "VFR-101-security-1" in stage.ids


@pytest.mark.proves("K20")
def test_a_manual_fix_needs_its_decision_first() -> None:
    stage = escalated()

    assert "decide `manual-fix` first" in stage.refused(stage.done_by_hand)
