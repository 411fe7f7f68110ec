"""S15 and S16: new failures count, and six phases follow one another."""

import pytest

from fixloop.protocol.failures import Failure
from fixloop.protocol.log import statistics
from fixloop.protocol.messages import RevalidationResult, Success
from fixloop.protocol.rendering import render
from fixloop.protocol.specialists import NAMES, Status
from fixloop.protocol.state import WorkflowOutcome
from tests.fixtures.script import SILENT, Fix, Result, fails, passes
from tests.fixtures.validation_stage import Stage


def result(stage: Stage, message_id: str) -> RevalidationResult:
    body = stage.message(message_id).body
    assert isinstance(body, RevalidationResult)
    return body


@pytest.mark.proves("B41", "B42", "B43", "A93")
def test_s15_a_result_lists_what_is_resolved_persisting_and_new() -> None:
    stage = Stage([fails("a", "b"), fails("b", "c"), passes()]).run()

    body = result(stage, "REVALRES-101-test-runner-2")
    assert (body.comparison.previous_count, body.failure_count) == (2, 2)
    assert body.comparison.resolved == ("a",)
    assert body.comparison.persisting == ("b",)
    assert body.comparison.new == ("c",)
    assert not body.passed


@pytest.mark.proves("B41")
def test_the_record_of_a_fail_counts_previous_current_new_and_persistent_failures() -> None:
    stage = Stage([fails(*"abcde"), fails(*"defghi"), passes()]).run()

    text = render(stage.message("REVALRES-101-test-runner-2"))
    assert (
        "**Status**: ❌ STILL FAILING\n**Previous Failures**: 5\n**Current Failures**: 6\n"
        "**New Failures**: 4\n**Persistent Failures**: 2\n"
    ) in text


@pytest.mark.proves("B46", "S15")
def test_s15_a_run_with_only_a_new_failure_has_failed() -> None:
    stage = Stage([fails("a", "b"), fails("c"), passes()]).run()

    body = result(stage, "REVALRES-101-test-runner-2")
    assert not body.passed
    assert body.comparison.new == ("c",)
    assert body.comparison.resolved == ("a", "b")
    assert "VFR-101-test-runner-2" in stage.ids


def covered(percent: float) -> Result:
    """A reader's result for a run without failing tests: below the gate one synthetic failure (G24)."""
    shown = f"{percent}% (target: ≥80%)"
    if percent >= 80.0:
        return passes(coverage=shown)
    low = Failure(name="coverage", error_type="CoverageTooLow", message=shown, measure=f"{percent:.1f}")
    return fails(low, coverage=shown)


@pytest.mark.proves("B68", "G24", "S15")
def test_s15_coverage_below_its_gate_is_a_failure_on_its_own() -> None:
    stage = Stage([covered(79.9), covered(80.0)]).run()

    first, second = stage.active.runs
    assert (first.passed, [ref.name for ref in first.failures]) == (False, ["coverage"])
    assert second.passed
    assert result(stage, "REVALRES-101-test-runner-2").coverage == "80.0% (target: ≥80%)"
    assert stage.state.outcome is WorkflowOutcome.SUCCESS


BACK_END = {
    "unit-test": [passes()],
    "integration-test": [passes()],
    "test-runner": [fails("a", "b", "c"), fails("b"), passes()],
    "code-quality": [passes()],
    "security": [fails("secret"), passes()],
}


@pytest.fixture
def back_end() -> Stage:
    return Stage(BACK_END, issue=47).run()


@pytest.mark.proves("U1", "U2", "K28", "B15")
def test_s16_phases_follow_one_another(back_end: Stage) -> None:
    first = [ticket.specialist for ticket in back_end.executed if ticket.step == "validate"]
    assert first == list(NAMES[:5])
    begun = [(t.specialist, t.after) for t in back_end.transitions]
    assert begun.index(("code-quality", Status.IN_PROGRESS)) > begun.index(("test-runner", Status.COMPLETED))
    assert [back_end.state.specialist(name).iteration for name in NAMES] == [1, 1, 3, 1, 2, 0]
    sixth = back_end.state.specialist("e2e-accessibility")
    assert (sixth.applicable, sixth.status) == (False, Status.PENDING)
    assert back_end.state.status is Status.COMPLETED


@pytest.mark.proves("K4", "A87", "S16")
def test_s16_one_id_in_two_scopes_is_no_collision(back_end: Stage) -> None:
    requests = [m for m in back_end.said("fix-request") if m.message_id == "FIXREQ-47-1"]

    assert [m.specialist for m in requests] == ["test-runner", "security"]
    assert len({m.uid for m in requests}) == 2


@pytest.mark.proves("A82", "A83", "K9", "S16")
def test_s16_the_totals_are_those_of_the_loops(back_end: Stage) -> None:
    found = statistics(back_end.messages, outcome="success")

    assert len(back_end.messages) == found.total_messages == 22
    assert found.iterations.startswith("8 (5 initial + 3 ")
    assert found.fix_requests == found.fix_completions == 3
    assert len({m.specialist for m in back_end.messages}) == 5
    assert back_end.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("A43", "U2", "S16")
def test_s16_each_success_names_the_next_phase_and_the_last_deployment(back_end: Stage) -> None:
    bodies = [m.body for m in back_end.said("success")]

    assert [body.next_phase for body in bodies if isinstance(body, Success)] == [
        "Integration Test Writing",
        "Test Execution",
        "Code Quality",
        "Security Assessment",
        "Completion",
    ]


@pytest.mark.proves("K37", "S16")
def test_s16_every_phase_is_confirmed_on_the_final_tree_without_a_message(back_end: Stage) -> None:
    confirmed = [ticket.specialist for ticket in back_end.executed if ticket.step == "confirm"]

    assert confirmed == ["unit-test", "integration-test", "test-runner", "code-quality"]
    applicable = [entry for entry in back_end.state.specialists if entry.applicable]
    assert {entry.passed_tree for entry in applicable} == {back_end.state.tree}
    assert {e.tree for entry in applicable for e in entry.evidence} == {back_end.state.tree}


@pytest.mark.proves("K37")
def test_without_a_fix_nothing_is_run_twice() -> None:
    stage = Stage({name: [] for name in NAMES}).run()

    assert [ticket.step for ticket in stage.executed] == ["validate"] * 6
    assert stage.messages[-1].message_id == "SUCCESS-101-e2e-accessibility-1"


@pytest.mark.proves("K37", "K35")
def test_a_fix_that_changed_no_tree_needs_no_confirmation() -> None:
    runs = {"unit-test": [passes()], "security": [fails("x"), passes()]}

    stage = Stage(runs, answers=[Fix(tree="tree-0", files=())]).run()

    assert not any(ticket.step == "confirm" for ticket in stage.executed)
    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("K38")
def test_a_specialist_with_only_skipped_checks_is_not_in_the_flow() -> None:
    stage = Stage({"unit-test": [Result("skipped", skipped_checks=("pytest",))], "security": []}).run()

    entry = stage.state.specialist("unit-test")
    assert (entry.applicable, entry.status, entry.runs) == (False, Status.PENDING, ())
    assert stage.state.outcome is WorkflowOutcome.SUCCESS
    assert {m.specialist for m in stage.messages} == {"security"}


@pytest.mark.proves("K38")
def test_when_everything_was_skipped_nothing_has_passed() -> None:
    skipped = Result("skipped", skipped_checks=("pytest",))
    stage = Stage({"unit-test": [skipped, skipped], "security": [skipped]}).run()

    assert stage.state.outcome is None
    assert stage.state.paused
    assert "nothing was verified" in stage.escalation.detail
    stage.decide("skip")
    assert stage.state.verdict == "passed_with_known_issues"


@pytest.mark.proves("K38", "A54")
def test_a_run_after_a_manual_fix_that_skips_everything_is_reported_as_such() -> None:
    stage = Stage([SILENT, Result("skipped")]).run().advance(2101.0)
    stage.decide("manual-fix")
    stage.done_by_hand()

    stage.run()

    assert stage.path()[-2:] == [Status.RE_CHECKING, Status.ESCALATED]
    assert stage.state.outcome is None
