"""S1-S3: the messages of a successful loop, line by line."""

from typing import Any

import pytest

from fixloop.protocol.log import flow_log, full_log, statistics
from fixloop.protocol.messages import (
    MAIN_AGENT,
    ORCHESTRATOR,
    FailureDetected,
    FailureReport,
    FixCompletion,
    FixRequest,
    RevalidationResult,
    RevalidationTrigger,
    Success,
)
from fixloop.protocol.rendering import join, render_whole
from fixloop.protocol.specialists import Status
from fixloop.protocol.state import WorkflowOutcome
from tests.fixtures.script import fails, passes
from tests.fixtures.validation_stage import Stage
from tests.scenarios.feature_47 import FAILURES, play_feature_47
from tests.unit.test_rendering import check_golden

SPECIALIST = "@test-runner-specialist"
COUNTS = (
    "total_messages",
    "failure_reports",
    "fix_requests",
    "fix_completions",
    "revalidation_triggers",
    "revalidation_results",
    "success_notifications",
)


def counted(stage: Stage) -> tuple[Any, ...]:
    found = statistics(stage.messages, outcome=stage.state.outcome)
    return tuple(getattr(found, name) for name in COUNTS)


def line(stage: Stage, number: int) -> tuple[str, str, str, str, str]:
    message = stage.messages[number - 1]
    return (
        message.entry_id,
        message.message_id,
        f"{message.sender} → {message.recipient}",
        message.status_before,
        message.status_after,
    )


@pytest.mark.proves("A10", "B4", "G16", "K9")
def test_s1_a_first_run_that_passes_sends_two_messages_and_no_request() -> None:
    stage = Stage([passes()]).run()

    assert stage.ids == ["REVALRES-101-test-runner-1", "SUCCESS-101-test-runner-1"]
    assert stage.path() == [Status.PENDING, Status.IN_PROGRESS, Status.PASS, Status.COMPLETED]
    assert counted(stage) == (2, 0, 0, 0, 0, 0, 1)
    found = statistics(stage.messages, outcome="success")
    assert found.iterations == "1 (1 initial + 0 retry)"
    assert stage.state.outcome is WorkflowOutcome.SUCCESS
    assert not stage.deadlines


@pytest.mark.proves("A81", "A82", "K9", "A36")
def test_s2_one_retry_sends_the_six_messages_of_the_protocol() -> None:
    stage = Stage([fails("a"), passes()]).run()
    up, down = f"{SPECIALIST} → {ORCHESTRATOR}", f"{ORCHESTRATOR} → {SPECIALIST}"
    to_agent, from_agent = f"{ORCHESTRATOR} → {MAIN_AGENT}", f"{MAIN_AGENT} → {ORCHESTRATOR}"

    assert line(stage, 1) == ("LOG-101-1-1", "DETECT-101-test-runner-1", up, "IN_PROGRESS", "FAIL")
    assert line(stage, 2) == ("LOG-101-1-2", "VFR-101-test-runner-1", to_agent, "FAIL", "AWAITING_FIX")
    assert line(stage, 3) == ("LOG-101-1-3", "FIXDONE-101-1", from_agent, "FIXING", "FIXING")
    assert line(stage, 4) == ("LOG-101-2-4", "REVAL-101-test-runner-2", down, "FIXING", "RE_CHECKING")
    assert line(stage, 5) == ("LOG-101-2-5", "REVALRES-101-test-runner-2", up, "RE_CHECKING", "PASS")
    assert line(stage, 6) == ("LOG-101-2-6", "SUCCESS-101-test-runner-2", to_agent, "PASS", "COMPLETED")
    assert len(stage.messages) == 6


@pytest.mark.proves("A82", "A83", "A27", "K9")
def test_s2_the_fix_request_travels_with_the_report_and_is_counted() -> None:
    stage = Stage([fails("a"), passes()]).run()

    request = stage.messages[1].attached
    assert request is not None
    assert isinstance(request.body, FixRequest)
    assert (request.message_id, request.number) == ("FIXREQ-101-1", 0)
    assert [(item.name, item.file, item.line) for item in request.body.items] == [("a", "tests/test_a.py", 1)]
    assert request.body.remaining_iterations == 4
    found = statistics(stage.messages, outcome="success")
    assert counted(stage) == (6, 1, 1, 1, 1, 1, 1)
    assert (found.iterations, found.outcome) == (
        "2 (1 initial + 1 retry)",
        "Success (all validations passed)",
    )


@pytest.mark.proves("G1", "A5", "A54", "K39")
def test_s2_a_receipt_changes_the_status_to_fixing_without_a_message() -> None:
    stage = Stage([fails("a"), passes()], answers=None).run()
    lines = len(stage.messages)

    stage.acknowledge()

    assert stage.active.status is Status.FIXING
    assert len(stage.messages) == lines
    assert stage.path()[-2:] == [Status.AWAITING_FIX, Status.FIXING]
    assert "receipt by agent of VFR-101-test-runner-1" in stage.notes


@pytest.mark.proves("G1")
def test_a_completion_without_a_receipt_counts_as_both() -> None:
    stage = Stage([fails("a"), passes()], answers=None).run()

    outcome = stage.complete()

    assert [t.after for t in outcome.transitions] == [Status.FIXING, Status.RE_CHECKING]


@pytest.mark.proves("A81", "A84")
@pytest.mark.parametrize("runs", [2, 3, 4, 5])
def test_a_loop_that_ends_at_run_n_has_4n_minus_2_messages(runs: int) -> None:
    scripts = [fails(*"abcde"[number:]) for number in range(runs - 1)]

    stage = Stage([*scripts, passes()]).run()

    assert stage.state.outcome is WorkflowOutcome.SUCCESS
    assert len(stage.messages) == 4 * runs - 2
    assert sum(counted(stage)[1:]) == 5 * runs - 4


@pytest.fixture
def feature_47() -> Stage:
    return play_feature_47()


@pytest.mark.proves("B65", "B66", "B67", "K2")
def test_s3_feature_47_has_ten_messages(feature_47: Stage) -> None:
    assert feature_47.ids[:10] == [
        "DETECT-47-test-runner-1",
        "VFR-47-test-runner-1",
        "FIXDONE-47-1",
        "REVAL-47-test-runner-2",
        "REVALRES-47-test-runner-2",
        "VFR-47-test-runner-2",
        "FIXDONE-47-2",
        "REVAL-47-test-runner-3",
        "REVALRES-47-test-runner-3",
        "SUCCESS-47-test-runner-3",
    ]
    assert [m.specialist for m in feature_47.messages[10:]] == ["code-quality", "code-quality"]
    requests = [m.attached.message_id for m in feature_47.messages if m.attached is not None]
    assert requests == ["FIXREQ-47-1", "FIXREQ-47-2"]
    of_loop = statistics(feature_47.messages[:10], outcome="success")
    assert [getattr(of_loop, name) for name in COUNTS] == [10, 2, 2, 2, 2, 2, 1]


@pytest.mark.proves("B5", "B21", "B65", "S3")
def test_s3_the_first_report_carries_what_failed_and_the_coverage(feature_47: Stage) -> None:
    detected = feature_47.message("DETECT-47-test-runner-1").body
    report = feature_47.message("VFR-47-test-runner-1").body

    assert isinstance(detected, FailureDetected)
    assert detected.statement == "3 failures"
    assert detected.details == (
        "tests/test_validation_coordinator.py::test_sequential_invocation - AssertionError",
        "tests/test_validation_coordinator.py::test_failure_tracking - KeyError",
        "tests/test_validation_coordinator.py::test_workflow_completion - AttributeError",
    )
    assert detected.coverage == "73.2% (target: ≥80%)"
    assert isinstance(report, FailureReport)
    told = [failure.model_copy(update={"id": f"F{place}"}) for place, failure in enumerate(FAILURES, 1)]
    assert list(report.failures) == told
    assert report.coverage == "73.2% (target: ≥80%)"
    assert (report.phase, report.next_phase) == ("Test Execution", "Code Quality")


@pytest.mark.proves("B40", "B41", "B42", "A37")
def test_s3_the_results_compare_with_the_run_before(feature_47: Stage) -> None:
    second = feature_47.message("REVALRES-47-test-runner-2").body
    third = feature_47.message("REVALRES-47-test-runner-3").body
    trigger = feature_47.message("REVAL-47-test-runner-3").body

    assert isinstance(second, RevalidationResult)
    compared = second.comparison
    assert (compared.previous_count, len(compared.persisting) + len(compared.new)) == (3, 1)
    assert (len(compared.new), len(compared.persisting), len(compared.resolved)) == (0, 1, 2)
    assert not second.passed
    assert isinstance(third, RevalidationResult)
    assert (third.passed, third.failures, third.history) == (True, (), (3, 1, 0))
    assert third.coverage == "87.3% (target: ≥80%)"
    assert isinstance(trigger, RevalidationTrigger)
    name = "tests/test_validation_coordinator.py::test_failure_tracking"
    assert trigger.previous_failures == (f"{name} (tests/test_validation_coordinator.py:77) - KeyError",)
    assert trigger.fixes == ("Start the record of failures before the first specialist runs",)
    assert (second.progress, third.fix_seconds) == ("improved", 512 + 700)


@pytest.mark.proves("B33", "A43", "B67", "A41")
def test_s3_durations_are_those_of_the_example(feature_47: Stage) -> None:
    report = feature_47.message("VFR-47-test-runner-1")
    done = feature_47.message("FIXDONE-47-1")
    success = feature_47.message("SUCCESS-47-test-runner-3")

    assert (done.at - report.at).total_seconds() == 8 * 60 + 32
    assert isinstance(done.body, FixCompletion)
    assert done.body.duration_seconds == 8 * 60 + 32
    assert isinstance(success.body, Success)
    assert success.body.total_seconds == 24 * 60 + 15
    assert (success.body.iterations, success.max_iterations) == (3, 5)
    assert success.body.next_phase == "Code Quality"
    assert success.body.history == (3, 1, 0)
    assert (success.body.phases_done, success.body.phases_total) == (1, 2)


@pytest.mark.proves("B67", "A86", "A85", "S3")
def test_s3_every_word_of_the_example_is_its_golden_file(feature_47: Stage) -> None:
    lines = feature_47.messages[:10]

    check_golden("feature-47-messages", join(render_whole(line) for line in lines))
    check_golden("feature-47-flow", flow_log(lines, "test-runner"))
    check_golden(
        "feature-47-log", full_log(lines, issue=47, feature="Validation coordinator", outcome="success")
    )
