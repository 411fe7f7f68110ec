"""S31: the verdict is about the final tree; a later fix that breaks an earlier phase is found (K37)."""

from functools import partial
from typing import Literal

import pytest

from fixloop.protocol import events as ev
from fixloop.protocol.messages import Reason, RevalidationResult, RevalidationTrigger
from fixloop.protocol.specialists import Role, Status
from fixloop.protocol.state import WorkflowOutcome
from tests.fixtures.script import SILENT, Result, Silent, errs, fails, passes
from tests.fixtures.validation_stage import Stage

BACK_END = {
    "unit-test": [passes(), passes()],
    "integration-test": [passes()],
    "test-runner": [fails("a", "b", "c"), fails("b"), passes()],
    "code-quality": [passes()],
    "security": [fails("secret"), passes()],
}


def confirmed(stage: Stage) -> list[str]:
    return [ticket.specialist for ticket in stage.executed if ticket.step == "confirm"]


@pytest.mark.proves("K37", "A81", "S31")
def test_s31_a_failing_confirmation_is_run_two() -> None:
    stage = Stage(BACK_END, issue=47, confirmations={"unit-test": [fails("u")]}).run()

    after = stage.ids[stage.ids.index("SUCCESS-47-security-2") + 1 :]
    assert after == [
        "REVAL-47-unit-test-2",
        "REVALRES-47-unit-test-2",
        "VFR-47-unit-test-2",
        "FIXDONE-47-2",
        "REVAL-47-unit-test-3",
        "REVALRES-47-unit-test-3",
        "SUCCESS-47-unit-test-3",
    ]
    requests = [(m.specialist, m.message_id) for m in stage.said("fix-request")]
    assert requests[-1] == ("unit-test", "FIXREQ-47-2")
    body = stage.message("REVALRES-47-unit-test-2").body
    assert isinstance(body, RevalidationResult)
    assert (body.comparison.previous_count, len(body.comparison.new)) == (0, 1)
    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("K37", "K19", "S31")
def test_s31_confirmations_restart_and_end_on_one_tree() -> None:
    stage = Stage(BACK_END, issue=47, confirmations={"unit-test": [fails("u")]}).run()

    assert confirmed(stage) == ["unit-test", "integration-test", "test-runner", "code-quality", "security"]
    applicable = [entry for entry in stage.state.specialists if entry.applicable]
    assert {entry.passed_tree for entry in applicable} == {stage.state.tree}
    assert {e.tree for entry in applicable for e in entry.evidence} == {stage.state.tree}
    reopened = next(t for t in stage.transitions if t.before is Status.COMPLETED)
    assert (reopened.specialist, reopened.after, reopened.role) == (
        "unit-test",
        Status.RE_CHECKING,
        Role.SPECIALIST,
    )
    trigger = stage.message("REVAL-47-unit-test-2")
    assert isinstance(trigger.body, RevalidationTrigger)
    assert (trigger.status_before, trigger.status_after) == (Status.COMPLETED, Status.RE_CHECKING)


@pytest.mark.proves("K37", "S31")
def test_s31_fixes_that_undo_each_other_end_after_three_rounds() -> None:
    stage = Stage(
        {"unit-test": [passes(), passes()], "security": [fails("s"), passes(), passes()]},
        confirmations={"unit-test": [fails("u"), fails("u")], "security": [fails("s")]},
    ).run()

    assert confirmed(stage) == ["unit-test", "security", "unit-test"]
    assert len(stage.said("escalation")) == 1
    assert stage.escalation.reason is Reason.DEADLOCK
    assert "unit-test and security" in stage.escalation.detail
    assert "3 rounds" in stage.escalation.detail
    assert stage.state.paused


@pytest.mark.proves("K37", "K20")
def test_after_three_rounds_an_extension_continues_and_counts_from_one() -> None:
    stage = Stage(
        {"unit-test": [passes()], "security": [fails("s")]},
        confirmations={"unit-test": [fails("u"), fails("u")], "security": [fails("s")]},
    ).run()
    assert stage.state.paused

    stage.decide("extend")
    stage.run()

    assert stage.state.outcome is WorkflowOutcome.SUCCESS
    assert "VFR-101-unit-test-4" in stage.ids


@pytest.mark.proves("K37", "A92", "B50")
def test_a_confirmation_that_fails_at_the_limit_escalates_at_once() -> None:
    stage = Stage(
        {"unit-test": [fails("v"), passes()], "security": [fails("s")]},
        confirmations={"unit-test": [fails("u", "w")]},
        max_iterations=2,
    ).run()

    assert stage.escalation.reason is Reason.MAX_ITERATIONS
    assert "REVAL-101-unit-test-3" not in stage.ids
    assert [p.name for p in stage.escalation.persistent] == ["u", "w"]
    assert stage.escalation.persistent_count == 2
    assert stage.path("unit-test")[-3:] == [Status.RE_CHECKING, Status.FAIL, Status.ESCALATED]


@pytest.mark.proves("K37", "K20", "A87")
def test_an_extension_makes_the_failed_confirmation_run_n_plus_1() -> None:
    stage = Stage(
        {"unit-test": [fails("v"), passes(), fails("u"), passes()], "security": [fails("s")]},
        confirmations={"unit-test": [fails("u")]},
        max_iterations=2,
    ).run()

    stage.decide("extend", iterations=2)
    stage.run()

    after = stage.ids[stage.ids.index(stage.said("escalation")[0].message_id) + 1 :]
    assert after[:3] == ["REVAL-101-unit-test-3", "REVALRES-101-unit-test-3", "VFR-101-unit-test-3"]
    assert after[-1] == "SUCCESS-101-unit-test-4"
    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("K37", "K20")
def test_a_manual_fix_of_a_failed_confirmation_is_run_n_plus_1() -> None:
    stage = Stage(
        {"unit-test": [fails("v"), passes(), passes()], "security": [fails("s")]},
        confirmations={"unit-test": [fails("u")]},
        max_iterations=2,
    ).run()

    stage.decide("manual-fix")
    stage.done_by_hand()
    stage.run()

    assert "SUCCESS-101-unit-test-3" in stage.ids
    assert stage.state.outcome is WorkflowOutcome.SUCCESS
    assert {e.passed_tree for e in stage.state.specialists if e.applicable} == {"tree-by-hand"}


def stuck(*confirmations: Result | Silent) -> Stage:
    """The confirmation of unit-test gives no result."""
    return Stage(
        {"unit-test": [passes()], "security": [fails("s")]}, confirmations={"unit-test": confirmations}
    ).run()


@pytest.mark.proves("K37", "K20")
def test_a_manual_fix_of_a_late_confirmation_is_run_two() -> None:
    stage = stuck(SILENT)
    stage.advance(3600.0)

    stage.decide("manual-fix")
    stage.done_by_hand()
    stage.run()

    assert "SUCCESS-101-unit-test-2" in stage.ids
    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("K37", "K20", "A87")
def test_extending_a_late_confirmation_repeats_it_without_a_message() -> None:
    stage = stuck(SILENT)
    stage.advance(3600.0)
    assert stage.escalation.reason is Reason.TIMEOUT
    lines = len(stage.messages)

    outcome = stage.decide("extend", minutes=45)
    assert [ticket.step for ticket in outcome.steps] == ["confirm"]
    assert outcome.steps[0].limit_seconds == 45 * 60
    assert "total-iteration" not in stage.deadlines
    stage.run()

    entry = stage.state.specialist("unit-test")
    assert (entry.iteration, entry.max_iterations) == (1, 5)
    assert entry.passed_tree == stage.state.tree
    assert len(stage.messages) == lines
    assert stage.path("unit-test")[-4:] == [
        Status.ESCALATED,
        Status.RE_CHECKING,
        Status.PASS,
        Status.COMPLETED,
    ]
    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("K37", "K20")
def test_a_confirmation_given_more_time_may_still_fail_and_is_run_two() -> None:
    stage = stuck(SILENT, fails("u"))
    stage.advance(3600.0)

    stage.decide("extend")
    stage.run()

    assert "REVAL-101-unit-test-2" in stage.ids
    assert "SUCCESS-101-unit-test-3" in stage.ids
    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("K36", "K37")
def test_a_confirmation_that_cannot_run_after_a_later_fix_has_failed() -> None:
    stage = stuck(errs("broken"), errs("broken"))

    run = stage.state.specialist("unit-test").runs[1]
    assert (run.number, run.could_not_run) == (2, True)
    assert not stage.said("escalation")
    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("K37")
def test_a_skipped_phase_is_not_confirmed() -> None:
    runs = {"unit-test": [fails("u")] * 3, "security": [fails("s"), passes()]}
    stage = Stage(runs).run()
    stage.decide("skip")

    stage.run()

    assert confirmed(stage) == []
    assert stage.state.outcome is WorkflowOutcome.SKIPPED


def finished(step: Literal["validate", "recheck", "confirm"], name: str, iteration: int) -> ev.RunFinished:
    return ev.RunFinished(step=step, specialist=name, iteration=iteration, outcome="passed", tree="tree-1")


@pytest.mark.proves("K37", "R8")
def test_an_unrequested_confirmation_is_refused() -> None:
    stage = Stage([fails("a"), SILENT]).run()
    assert stage.active.status is Status.RE_CHECKING

    for iteration in (1, 2):
        event = finished("confirm", "test-runner", iteration)
        assert "confirm of run" in stage.refused(partial(stage.apply, event))


@pytest.mark.proves("K37", "R8", "A87")
def test_an_old_result_of_the_run_is_not_taken_for_its_confirmation() -> None:
    stage = stuck(SILENT)
    stage.advance(3600.0)
    stage.decide("extend")
    assert (stage.active.name, stage.active.status) == ("unit-test", Status.RE_CHECKING)

    steps: tuple[Literal["validate", "recheck"], ...] = ("validate", "recheck")
    for step in steps:
        event = finished(step, "unit-test", 1)
        assert f"{step} of run 1" in stage.refused(partial(stage.apply, event))
