"""The facts that decisions put into messages, in addition to the scenarios of each flow."""

from typing import Any

import pytest

from fixloop.protocol.checks import Evidence
from fixloop.protocol.events import RunFinished
from fixloop.protocol.failure_report import request_json
from fixloop.protocol.failures import Failure, Severity
from fixloop.protocol.messages import (
    ErrorNotification,
    FailureReport,
    FixRequest,
    Reason,
    RevalidationResult,
    RevalidationTrigger,
    Success,
)
from fixloop.protocol.rendering import render, render_delivery
from fixloop.protocol.ticket import Priority
from tests.fixtures.script import Breaks, Fix, errs, fails, failure, passes
from tests.fixtures.validation_stage import Stage


def request(stage: Stage, run: int = 1) -> FixRequest:
    body = stage.message(f"FIXREQ-101-{run}").body
    assert isinstance(body, FixRequest)
    return body


@pytest.mark.proves("A28", "B10", "B59")
def test_a_request_numbers_failures_with_place_and_priority_only() -> None:
    grave = failure("a", severity=Severity.CRITICAL, suggestion="call it once")
    stage = Stage([fails(grave, "b")], answers=None).run()

    first, second = request(stage).items
    assert (first.name, first.file, first.line) == ("a", "tests/test_a.py", 1)
    assert (first.error, first.suggestion) == ("", "")
    assert (first.priority, second.priority) == (Severity.CRITICAL, Severity.HIGH)
    assert request(stage).remaining_iterations == 4


@pytest.mark.proves("K41", "B22")
def test_failures_beyond_those_kept_are_counted_in_report_and_request() -> None:
    stage = Stage([fails(*(f"t{number}" for number in range(300)))], answers=None).run()
    report = stage.message("VFR-101-test-runner-1").body

    assert isinstance(report, FailureReport)
    assert (len(report.failures), report.further) == (50, 250)
    assert (len(request(stage).items), request(stage).further) == (50, 250)
    text = render(stage.message("VFR-101-test-runner-1"))
    assert "**Total Failures**: 300\n" in text
    assert text.count("#### Fix for Failure ") == 50


def failed(found: Failure, *evidence: Evidence, coverage: str = "") -> Stage:
    """A workflow whose first run failed with `found`."""
    stage = Stage([passes()], answers=None)
    event = RunFinished(
        step="validate",
        specialist="test-runner",
        iteration=1,
        outcome="failed",
        tree="tree-0",
        failures=(found,),
        evidence=evidence,
        coverage=coverage,
    )
    stage.pending.clear()
    stage.apply(event)
    return stage.run()


def measured(gate: float | None, coverage: str) -> Stage:
    """A workflow whose first run failed under this gate."""
    evidence = Evidence(check="pytest", command="pytest", exit_code=1, coverage_gate=gate)
    found = Failure(name="coverage", error_type="below gate", measure="73.2")
    return failed(found, evidence, coverage=coverage)


def test_a_request_names_the_command_that_has_to_pass() -> None:
    again = "env PYTHONPATH=src /v/bin/python -m pytest"
    stage = failed(
        Failure(name="test_a", check="pytest"),
        Evidence(check="pytest", command="python -m pytest --junitxml={junit}", reproduce=again),
        Evidence(check="doctest", command="python -m doctest", reproduce="python -m doctest"),
    )
    report = stage.message("VFR-101-test-runner-1")

    first, *_ = render_delivery(report).splitlines()

    assert first == f"Make 1 failing test of Test Execution pass: `{again}` must exit 0."
    assert request_json(report)["fix_request"]["body"]["commands"] == [again]


@pytest.mark.proves("A29", "U3")
@pytest.mark.parametrize(
    ("gate", "coverage", "expected"),
    [
        (80.0, "73.2% (target: ≥80%)", "All tests pass, coverage ≥80%"),
        (92.5, "73.2% (target: ≥92.5%)", "All tests pass, coverage ≥92.5%"),
        (None, "73.2%", "All tests pass"),
        (None, "", "All tests pass"),
    ],
)
def test_the_expected_outcome_states_the_configured_coverage(
    gate: float | None, coverage: str, expected: str
) -> None:
    assert request(measured(gate, coverage)).expected == expected


@pytest.mark.proves("A29", "U3")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("unit-test", "All unit tests pass"),
        ("integration-test", "All integration tests pass"),
        ("code-quality", "0 lint errors, 0 type errors, formatting compliant"),
        ("security", "0 critical and 0 high vulnerabilities"),
        ("e2e-accessibility", "WCAG 2.1 AA 100%"),
    ],
)
def test_other_phases_state_their_own_gates(name: str, words: str) -> None:
    stage = Stage({name: [fails("a")]}, answers=None).run()

    assert words in request(stage).expected


@pytest.mark.proves("K13", "B20", "B26")
def test_a_failure_without_a_severity_counts_as_high() -> None:
    stage = Stage([fails(failure("a", severity=Severity.LOW), "b")], answers=None).run()
    sent = stage.message("VFR-101-test-runner-1")

    assert isinstance(sent.body, FailureReport)
    assert (sent.body.severity, sent.priority) == (Severity.HIGH, Priority.HIGH)


@pytest.mark.proves("A41", "B44", "B45")
def test_a_result_announces_the_next_iteration_only_where_there_is_one() -> None:
    stalled = Stage([fails("a")] * 3).run()
    shrinking = Stage([fails("a", "b"), fails("a")], max_iterations=2).run()

    results = [
        each.body for each in (*stalled.said("revalidation-result"), *shrinking.said("revalidation-result"))
    ]
    assert [each.escalates for each in results if isinstance(each, RevalidationResult)] == [
        None,
        Reason.DEADLOCK,
        Reason.MAX_ITERATIONS,
    ]
    assert "Escalate: Deadlock - no progress (3/5)\n" in render(stalled.message("REVALRES-101-test-runner-3"))


@pytest.mark.proves("B40", "B60")
def test_the_time_of_all_fixes_is_summed() -> None:
    answers = [Fix(takes_seconds=512), Fix(takes_seconds=100)]
    stage = Stage([fails("a", "b"), fails("a"), passes()], answers=answers).run()

    second, third = (stage.message(f"REVALRES-101-test-runner-{run}").body for run in (2, 3))
    assert isinstance(second, RevalidationResult)
    assert isinstance(third, RevalidationResult)
    assert (second.fix_seconds, third.fix_seconds) == (512, 612)
    assert [run.fix_seconds for run in stage.active.runs] == [512, 100, 0]


@pytest.mark.proves("B36", "B37", "K37")
def test_a_trigger_says_whether_the_phase_had_failed_or_passed() -> None:
    stage = Stage(
        {"unit-test": [passes(), passes()], "test-runner": [fails("a"), passes()]},
        confirmations={"unit-test": [fails("b")]},
    ).run()

    again, confirmed = (stage.message(f"REVAL-101-{name}-2") for name in ("test-runner", "unit-test"))
    assert isinstance(again.body, RevalidationTrigger)
    assert again.body.previous_failures == ("a (tests/test_a.py:1) - AssertionError",)
    assert "**Previous Status**: Failed\n" in render(again)
    assert "**Previous Status**: Passed\n" in render(confirmed)


@pytest.mark.proves("A42", "A43")
def test_each_success_counts_the_phases_that_are_done() -> None:
    stage = Stage({"unit-test": [passes()], "test-runner": [passes()], "security": [passes()]}).run()

    bodies = [each.body for each in stage.said("success")]
    counted = [(each.phases_done, each.phases_total) for each in bodies if isinstance(each, Success)]
    assert counted == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.proves("A74", "A91", "G6")
@pytest.mark.parametrize(
    ("stage", "told"),
    [
        (Stage([errs(), errs()]), ("specialist-validation", "@test-runner-specialist", "")),
        (Stage([fails("a"), errs(), passes()]), ("re-validation", "@test-runner-specialist", "")),
        (
            Stage([fails("a")], answers=[Breaks()] * 3, fixer="command"),
            ("main-agent-fix", "@feature-implementer-main", "VFR-101-test-runner-1"),
        ),
    ],
)
def test_an_error_names_operation_agent_and_the_message_it_is_about(stage: Stage, told: Any) -> None:
    (error,) = stage.run().said("error-notification")

    assert isinstance(error.body, ErrorNotification)
    assert (error.body.operation, error.body.agent, error.body.regarding) == told
