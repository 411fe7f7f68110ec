"""S9, S10, S11 and S33: what cannot be run, delivered or read, and what the agent itself broke."""

import pytest

from fixloop.protocol import events as ev
from fixloop.protocol.messages import MAIN_AGENT, USER, ErrorNotification, ProtocolViolation, Reason
from fixloop.protocol.specialists import Status
from fixloop.protocol.state import WorkflowOutcome
from tests.fixtures.script import SILENT, BadAnswer, Breaks, Fix, Result, errs, fails, failure, passes
from tests.fixtures.validation_stage import Answers, Stage


def notifications(stage: Stage) -> list[ErrorNotification]:
    return [m.body for m in stage.said("error-notification") if isinstance(m.body, ErrorNotification)]


def executions(stage: Stage, step: str) -> int:
    return len([ticket for ticket in stage.executed if ticket.step == step])


@pytest.mark.proves("A72", "A74", "A75", "A76")
def test_s9_a_specialist_that_recovers_costs_no_iteration() -> None:
    stage = Stage([errs("boom"), fails("a")], answers=None).run()

    assert executions(stage, "validate") == 2
    assert (stage.active.iteration, stage.active.status) == (1, Status.AWAITING_FIX)
    assert stage.ids[0] == "ERR-101-specialist-failure-20260302T090002Z"
    (body,) = notifications(stage)
    assert body.recovered
    assert body.error == "boom"
    assert body.error_type.label == "Specialist Failure"
    assert body.recovery == ("test-runner was invoked again (attempt 2)",)
    assert stage.ids[1:] == ["DETECT-101-test-runner-1", "VFR-101-test-runner-1"]


@pytest.mark.proves("A72", "A68", "K27", "K5")
def test_s9_a_second_error_escalates_to_the_main_orchestrator() -> None:
    stage = Stage([errs("boom"), errs("boom again", stack_trace="Traceback: line 7")]).run()

    assert executions(stage, "validate") == 2
    assert [i.split("-")[0] for i in stage.ids] == ["ERR", "ESC"]
    (body,) = notifications(stage)
    assert not body.recovered
    assert (body.error, body.stack_trace) == ("boom again", "Traceback: line 7")
    assert len(body.recovery) == 1
    assert stage.escalation.reason is Reason.SPECIALIST_ERROR
    assert (stage.escalation.reason.label, stage.escalation.reason.text) == ("Other", "Specialist error")
    assert stage.messages[-1].recipient == MAIN_AGENT
    assert stage.messages[-1].status_before is Status.IN_PROGRESS
    assert stage.active.iteration == 1
    assert stage.active.runs == ()


@pytest.mark.proves("A72", "K36")
def test_an_error_that_would_repeat_is_tried_once() -> None:
    stage = Stage([errs("unrecognized arguments: --cov", is_final=True)]).run()

    assert executions(stage, "validate") == 1
    assert stage.escalation.reason is Reason.SPECIALIST_ERROR


@pytest.mark.proves("A72", "K5", "G19")
def test_the_second_attempt_waits_two_seconds_and_runs_the_same_number() -> None:
    stage = Stage([errs(), passes()]).run()

    first, second = stage.executed
    assert (first.attempt, second.attempt) == (1, 2)
    assert first.iteration == second.iteration == 1
    assert second.delay_seconds == 2.0
    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("R8", "A72")
def test_an_attempt_that_was_recorded_is_not_recorded_twice() -> None:
    stage = Stage([errs()])
    (ticket,) = stage.pending
    stage.step()
    again = stage.applied[-1][0]

    assert ticket.attempt == 1
    assert "recorded already" in stage.refused(lambda: stage.apply(again))


@pytest.mark.proves("A70", "A74", "K5", "K27")
def test_s10_a_fixer_that_cannot_be_started_is_tried_three_times() -> None:
    gone = Breaks("no such file: claude", undelivered=True)
    stage = Stage([fails("a")], answers=[gone, gone, gone], fixer="command").run()

    assert executions(stage, "fix") == 3
    assert [ticket.delay_seconds for ticket in stage.executed if ticket.step == "fix"] == [0.0, 2.0, 4.0]
    assert [i.split("-")[0] for i in stage.ids] == ["DETECT", "VFR", "ERR", "ESC"]
    assert stage.ids[2].startswith("ERR-101-communication-")
    (body,) = notifications(stage)
    assert not body.recovered
    assert len(body.recovery) == 2
    assert stage.escalation.reason is Reason.COMMUNICATION_ERROR
    assert stage.messages[-1].recipient == MAIN_AGENT


@pytest.mark.proves("A70", "A75", "S10")
def test_s10_a_third_attempt_that_is_taken_recovers() -> None:
    gone = Breaks("no such file: claude", undelivered=True)
    stage = Stage([fails("a"), passes()], answers=[gone, gone, Fix()], fixer="command").run()

    assert stage.state.outcome is WorkflowOutcome.SUCCESS
    assert not stage.said("escalation")
    (body,) = notifications(stage)
    assert body.recovered
    assert len(body.recovery) == 2
    assert len(stage.said("failure-report")) == 1


@pytest.mark.proves("A70", "G1")
def test_a_delivery_has_recovered_as_soon_as_the_command_starts() -> None:
    answers: Answers = [Breaks("no such file: claude", undelivered=True), SILENT]

    stage = Stage([fails("a")], answers=answers, fixer="command").run()

    assert stage.active.status is Status.FIXING
    assert [body.recovered for body in notifications(stage)] == [True]


@pytest.mark.proves("A73", "K27", "K5")
def test_a_fixer_that_fails_three_times_is_unresponsive() -> None:
    broken = Breaks("exit 1", output_tail="no credit left")
    stage = Stage([fails("a")], answers=[broken] * 3, fixer="command").run()

    assert executions(stage, "fix") == 3
    (body,) = notifications(stage)
    assert (body.error_type.value, body.stack_trace) == ("unresponsive", "no credit left")
    assert stage.escalation.reason is Reason.UNRESPONSIVE
    assert stage.messages[-1].recipient == USER


@pytest.mark.proves("K5")
def test_a_fatal_error_is_not_tried_again() -> None:
    stage = Stage([fails("a")], answers=[Breaks(fatal=True)], fixer="command").run()

    assert executions(stage, "fix") == 1
    (body,) = notifications(stage)
    assert body.recovery == ("none was possible",)
    assert stage.escalation.reason is Reason.UNRESPONSIVE


@pytest.mark.proves("R8", "K5")
def test_a_failed_attempt_that_was_counted_is_not_counted_twice() -> None:
    stage = Stage([fails("a")], answers=[Breaks()], fixer="command")
    while not any(isinstance(event, ev.FixFailed) for event, _ in stage.applied):
        stage.step()
    again = stage.applied[-1][0]

    assert "attempt 1" in stage.refused(lambda: stage.apply(again))
    assert stage.state.attempts == 2


@pytest.mark.proves("A71", "G2", "S11")
@pytest.mark.parametrize("fixer", ["outside", "command"])
def test_s11_one_bad_answer_is_reported_and_asked_for_again(fixer: str) -> None:
    stage = Stage([fails("a"), passes()], answers=[BadAnswer(), Fix()], fixer=fixer).run()

    (notice,) = stage.said("protocol-violation")
    assert isinstance(notice.body, ProtocolViolation)
    assert notice.message_id.startswith("PVN-101-feature-implementer-main-2026")
    assert notice.recipient == MAIN_AGENT
    assert notice.body.violations == ("section Files Modified is missing",)
    assert any("section Files Modified is missing" in note for note in stage.notes)
    assert stage.state.outcome is WorkflowOutcome.SUCCESS
    assert stage.active.iteration == 2
    assert "FIXDONE-101-1" in stage.ids
    assert not stage.said("escalation")


@pytest.mark.proves("A71", "G2", "K5", "K27")
@pytest.mark.parametrize("fixer", ["outside", "command"])
def test_s11_a_second_bad_answer_escalates(fixer: str) -> None:
    stage = Stage([fails("a")], answers=[BadAnswer(), BadAnswer(("no sections",))], fixer=fixer).run()

    assert len(stage.said("protocol-violation")) == 1
    assert stage.escalation.reason is Reason.INVALID_RESPONSE
    assert stage.escalation.detail == "no sections"
    assert stage.messages[-1].recipient == MAIN_AGENT
    (body,) = notifications(stage)
    assert body.error_type.value == "invalid-response"
    assert len(body.recovery) == 1


@pytest.mark.proves("A8", "A71", "K4", "S11")
@pytest.mark.parametrize(("iteration", "specialist"), [(3, "test-runner"), (1, "security"), (1, "nobody")])
def test_s11_a_completion_of_another_request_is_an_invalid_response(iteration: int, specialist: str) -> None:
    stage = Stage({"test-runner": [fails("a"), passes()], "security": []}, answers=None).run()

    stage.complete(iteration=iteration, specialist=specialist)

    (notice,) = stage.said("protocol-violation")
    assert isinstance(notice.body, ProtocolViolation)
    assert notice.body.violations[0].startswith(f"FIXDONE-101-{iteration} of {specialist}")
    assert stage.active.status is Status.AWAITING_FIX
    assert stage.active.iteration == 1
    stage.complete()
    stage.run()
    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("R8", "A8")
def test_a_completion_that_was_taken_already_changes_nothing() -> None:
    stage = Stage([fails("a"), fails("b")], answers=[Fix(), SILENT]).run()
    repeated = next(event for event, _ in stage.applied if isinstance(event, ev.FixCompleted))

    assert stage.active.status is Status.AWAITING_FIX
    assert "FIXDONE-101-1" in stage.refused(lambda: stage.apply(repeated))
    assert not stage.said("protocol-violation")


@pytest.mark.proves("R8", "G2")
def test_a_bad_answer_to_an_earlier_request_does_not_count_for_the_open_one() -> None:
    stage = Stage([fails("a"), fails("b")], answers=None).run()
    stage.complete()
    stage.run()
    late = ev.AnswerRejected(specialist="test-runner", iteration=1, violations=("late",))

    assert stage.active.iteration == 2
    stage.refused(lambda: stage.apply(late))
    assert not stage.said("protocol-violation")


@pytest.mark.proves("K36", "A72", "S33")
def test_s33_an_agent_may_fix_what_it_broke() -> None:
    broken = errs("ImportError in conftest.py", stack_trace="E   SyntaxError")
    stage = Stage([fails("a"), broken, broken, passes()]).run()

    run = stage.active.runs[1]
    assert (run.number, run.passed, run.could_not_run) == (2, False, True)
    assert [ref.name for ref in run.failures] == ["could not run after the fix"]
    (report,) = [m for m in stage.messages if m.message_id == "VFR-101-test-runner-2"]
    assert report.body.kind == "failure-report"
    assert "SyntaxError" in report.body.failures[0].message
    assert executions(stage, "recheck") == 3
    assert stage.state.outcome is WorkflowOutcome.SUCCESS
    assert stage.active.iteration == 3
    assert not stage.said("escalation")
    assert len(stage.messages) == 4 * 3 - 2


@pytest.mark.proves("K36", "A75")
def test_no_recovery_is_reported_where_none_happened() -> None:
    broken = errs("ImportError in conftest.py")

    stage = Stage([fails("a"), broken, broken, passes()]).run()

    assert not notifications(stage)
    assert any("ImportError in conftest.py" in note for note in stage.notes)


@pytest.mark.proves("K36", "A72")
def test_a_broken_check_on_an_unchanged_tree_is_an_error_of_the_specialist() -> None:
    stage = Stage([fails("a"), errs(), errs()], answers=[Fix(tree="tree-0", files=())]).run()

    assert stage.escalation.reason is Reason.SPECIALIST_ERROR
    assert stage.active.iteration == 2
    assert len(stage.active.runs) == 1


@pytest.mark.proves("K36", "K7")
def test_a_runner_that_stays_broken_is_a_deadlock() -> None:
    broken = [errs("broken"), errs("broken")]
    stage = Stage([fails("a"), *broken, *broken, *broken]).run()

    assert stage.escalation.reason is Reason.DEADLOCK
    assert stage.active.iteration == 4


@pytest.mark.proves("K36", "K38")
@pytest.mark.parametrize("outcome", [passes(), fails("b")])
def test_a_check_that_ran_before_and_is_skipped_after_a_fix_could_not_run(outcome: Result) -> None:
    skipping = outcome.with_(skipped_checks=("mypy",))
    stage = Stage([fails("a"), skipping, skipping], answers=[Fix()]).run()

    run = stage.active.runs[1]
    assert run.could_not_run
    assert "mypy" in stage.message("VFR-101-test-runner-2").model_dump_json()
    assert run.count == len(outcome.failures) + 1


@pytest.mark.proves("K38")
def test_a_check_that_never_could_run_may_stay_skipped() -> None:
    stage = Stage(
        [fails("a").with_(skipped_checks=("mypy",)), passes().with_(skipped_checks=("mypy",))]
    ).run()

    assert stage.state.outcome is WorkflowOutcome.SUCCESS
    assert stage.active.skipped_checks == ("mypy",)


@pytest.mark.proves("K37", "K38")
def test_a_result_on_another_tree_is_no_result() -> None:
    elsewhere = passes(tree="tree-of-somebody-else")
    stage = Stage([elsewhere, elsewhere]).run()

    assert stage.state.outcome is None
    assert stage.escalation.reason is Reason.SPECIALIST_ERROR
    assert "tree-of-somebody-else" in stage.escalation.detail


@pytest.mark.proves("K38", "A39")
def test_a_failed_run_that_names_nothing_still_has_one_failure() -> None:
    nothing = Result("failed")
    stage = Stage([nothing, nothing, nothing]).run()

    assert stage.active.runs[0].count == 1
    assert stage.escalation.reason is Reason.DEADLOCK


@pytest.mark.proves("K38")
def test_a_run_that_says_passed_and_lists_failures_has_failed() -> None:
    stage = Stage([passes(failures=fails("a").failures)], answers=None).run()

    assert stage.active.status is Status.AWAITING_FIX


LISTS = ("test-runner",)


@pytest.mark.proves("K7", "B42", "B46")
def test_a_test_that_vanished_is_still_owed() -> None:
    first = fails(failure("a", check="test-runner"), failure("b", check="test-runner"), lists_passes=LISTS)
    second = passes(passed=("b",), lists_passes=LISTS)
    third = passes(passed=("a",), lists_passes=LISTS)

    stage = Stage([first, second, third]).run()

    run = stage.active.runs[1]
    assert [(ref.name, ref.error_type) for ref in run.failures] == [("a", "vanished")]
    (result,) = [m.body for m in stage.messages if m.message_id == "REVALRES-101-test-runner-2"]
    assert result.kind == "revalidation-result"
    assert (result.comparison.resolved, result.comparison.persisting, result.comparison.new) == (
        ("b",),
        ("a",),
        (),
    )
    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("K7", "B50")
def test_a_vanished_test_is_persistent_since_its_first_failure() -> None:
    first = fails(failure("a", check="test-runner"), lists_passes=LISTS)
    stage = Stage([first, passes(lists_passes=LISTS)], answers=[Fix(), SILENT]).run()

    stage.apply(ev.BlockerSignalled(by="agent", text="no idea"))

    (persistent,) = stage.escalation.persistent
    assert persistent.iterations == (1, 2)


@pytest.mark.proves("K7", "K36")
def test_a_temporarily_skipped_check_does_not_settle_owed_tests() -> None:
    first = fails(failure("a", check="test-runner"), lists_passes=LISTS)
    skipping = passes(lists_passes=("another",), skipped_checks=LISTS)
    back_without_it = passes(lists_passes=LISTS)

    stage = Stage(
        [first, skipping, skipping, back_without_it, passes(passed=("a",), lists_passes=LISTS)]
    ).run()

    assert [run.passed for run in stage.active.runs] == [False, False, False, True]
    assert [ref.error_type for ref in stage.active.runs[2].failures] == ["vanished"]


@pytest.mark.proves("K7", "K41")
def test_a_failure_that_a_report_itself_calls_vanished_is_an_ordinary_one() -> None:
    odd = fails(failure("a", check="test-runner", error_type="vanished"), lists_passes=LISTS)

    stage = Stage([odd, passes(passed=("a",), lists_passes=LISTS)]).run()

    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("K35")
def test_a_fix_without_a_change_is_valid_and_counts() -> None:
    nothing = Fix(tree="tree-0", files=(), fixes=())
    stage = Stage([fails("a")] * 3, answers=[nothing, nothing]).run()

    assert stage.escalation.reason is Reason.DEADLOCK
    assert stage.escalation.history[0].fixes == "no change"
