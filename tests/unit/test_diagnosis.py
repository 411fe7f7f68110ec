"""What a person sees of the runs: patterns, why each failure persists, what to try, what to choose."""

from dataclasses import dataclass, field

import pytest

from fixloop.protocol import analysis, diagnosis
from fixloop.protocol.failures import Failure, Severity
from fixloop.protocol.messages import Decision, Escalation, FixRequest, Reason
from tests.fixtures.script import SILENT, Breaks, Fix, Result, errs, fails, failure, passes
from tests.fixtures.validation_stage import Stage


def escalated(*runs: Result, **further: object) -> Escalation:
    """The escalation after these runs."""
    return Stage(list(runs), **further).run().escalation  # type: ignore[arg-type]


def coverage(percent: str) -> Failure:
    return Failure(
        name="coverage", error_type="below gate", measure=percent, message=f"{percent}% is below 80%"
    )


def why(report: Escalation) -> dict[str, str]:
    return {each.name: each.why for each in report.persistent}


@pytest.mark.proves("A94", "B49", "S4")
def test_a_shrinking_number_is_shown_with_the_failures_of_every_run() -> None:
    report = escalated(fails(*"abcde"), fails(*"abcd"), fails(*"abc"), fails(*"ab"), fails("a"))

    assert report.pattern == (
        "Failures per run: 5 → 4 → 3 → 2 → 1. In every run: a. Of the 5 in run 1, 4 are gone. "
        "The number is falling: more iterations may be enough."
    )
    assert report.recommended is Decision.EXTEND
    assert report.rationale.startswith("the number of failures falls (5 → 4 → 3 → 2 → 1)")


@pytest.mark.proves("B50", "S4")
def test_a_persistent_failure_has_its_runs_its_fixes_and_a_reason() -> None:
    report = escalated(fails(*"abcde"), fails(*"abcd"), fails(*"abc"), fails(*"ab"), fails("a"))

    (only,) = report.persistent
    assert (only.name, only.file, only.line, only.error) == (
        "a",
        "tests/test_a.py",
        1,
        "AssertionError: a broke",
    )
    assert only.iterations == (1, 2, 3, 4, 5)
    assert only.fixes == tuple(f"Iteration {run}: mended it" for run in (1, 2, 3, 4))
    assert only.why == (
        "it failed in 5 runs in a row (1, 2, 3, 4, 5);"
        " the 4 fixes since left the error as it was, so the cause is elsewhere"
    )


@pytest.mark.proves("B62", "A94", "K7")
def test_a_failure_that_disappeared_and_returned_is_an_oscillation() -> None:
    report = escalated(fails("a", "b"), fails("c"), fails("a", "b"), fails("c"), fails("a"))

    assert "New in run 2: c." in report.pattern
    assert "Gone and back again: a, b (run 3), c (run 4), a (run 5); fixes undo each other" in report.pattern
    assert "falling" not in report.pattern
    assert why(report)["a"].startswith("it comes and goes: it failed in runs 1, 3, 5;")
    assert (report.recommended, report.rationale) == (
        Decision.MANUAL_FIX,
        "the fixes undo each other: a, b, c went and came back",
    )


@pytest.mark.proves("K8", "B62")
def test_a_stall_is_named_at_the_limit_too() -> None:
    at_the_limit = escalated(fails("a", "b"), fails("a"), fails("a"), fails("a"), max_iterations=4)
    earlier = escalated(fails("a"), fails("a"), fails("a"))

    assert at_the_limit.recommended is Decision.MANUAL_FIX
    assert at_the_limit.reason is Reason.MAX_ITERATIONS
    assert "Runs 2, 3, 4 failed in the same way: progress has stalled (deadlock)." in at_the_limit.pattern
    assert earlier.reason is Reason.DEADLOCK
    assert "Runs 1, 2, 3 failed in the same way" in earlier.pattern


@pytest.mark.proves("A94")
def test_a_failure_count_that_stopped_falling_is_no_progress() -> None:
    report = escalated(fails("a", "b"), fails("a"), fails("a"), max_iterations=3)

    assert "The number fell, and the last fix did not bring it down further." in report.pattern
    assert report.rationale == "the last iterations did not bring the number of failures down (2 → 1 → 1)"


def test_an_error_is_named_once() -> None:
    named = failure("a", error_type="KeyError", message="KeyError: 'x'")
    report = escalated(fails(named), max_iterations=1)

    assert report.persistent[0].error == "KeyError: 'x'"


@pytest.mark.proves("A94")
def test_fixes_that_broke_more_are_reported() -> None:
    report = escalated(fails("a"), fails("b", "c"), max_iterations=2)

    assert "What failed in run 1 is gone. New in run 2: b, c. The number is rising" in report.pattern
    assert report.rationale == "the last iterations did not bring the number of failures down (1 → 2)"
    assert why(report)["b"] == "it failed first in run 2, after a fix; no fix has been made since"


@pytest.mark.proves("A94", "K7")
def test_a_rising_measure_is_progress_with_an_unchanged_number_of_failures() -> None:
    runs = [fails(coverage(percent)) for percent in ("60.0", "70.0", "78.0")]
    report = escalated(*runs, max_iterations=3)

    (only,) = report.persistent
    assert only.iterations == (1, 2, 3)
    assert only.why.endswith("the 2 fixes since moved it from 60.0 to 78.0, which is not enough")
    assert report.recommended is Decision.EXTEND
    assert report.rationale.startswith("coverage rises (60.0 → 70.0 → 78.0)")


@pytest.mark.proves("K36", "A94")
def test_runs_whose_checks_could_not_run_do_not_prove_a_failure_gone() -> None:
    broken = [errs("conftest broke"), errs("conftest broke")]
    report = escalated(fails("a"), *broken, *broken, *broken)

    assert "A fix broke the checks: they could not run in run 2, 3, 4." in report.pattern
    assert "gone" not in report.pattern


@pytest.mark.proves("K35", "A94")
def test_a_run_on_an_unchanged_tree_is_named() -> None:
    unchanged = [Fix(tree="tree-0"), Fix(tree="tree-0")]
    report = escalated(fails("a"), fails("a"), fails("a"), answers=unchanged)

    assert "Run 2 judged the same tree as run 1: nothing had been changed." in report.pattern


@pytest.mark.proves("B50")
def test_a_changed_error_is_distinguished_from_one_that_stayed() -> None:
    other = failure("a", message="now it is another")
    report = escalated(fails("a"), fails("a"), fails(other), max_iterations=3)

    assert why(report)["a"].endswith("the 2 fixes since changed the error, last to: now it is another")


@pytest.mark.proves("B50", "K7")
def test_a_vanished_test_keeps_the_runs_it_failed_in() -> None:
    seen = {"lists_passes": ("pytest",)}
    report = escalated(
        fails(failure("a", check="pytest"), **seen), fails("b", **seen), fails("b", **seen), max_iterations=3
    )

    vanished = next(each for each in report.persistent if each.name == "a")
    assert vanished.iterations == (1, 2, 3)
    assert vanished.why.startswith(
        "the test failed before and is no longer run; only its passing resolves it"
    )


@pytest.mark.proves("B64", "K7")
def test_a_deadlock_over_tests_that_no_longer_run_says_so() -> None:
    seen = {"lists_passes": ("pytest",)}
    failing = fails(failure("a", check="pytest"), failure("b", check="pytest"), **seen)
    report = escalated(failing, *[fails(failure("b", check="pytest"), **seen)] * 3)

    assert report.reason is Reason.DEADLOCK
    assert report.recommended is Decision.MANUAL_FIX
    assert report.rationale == (
        "tests that failed no longer run: bring them back and correct the code, as only their passing resolves a"
    )


@pytest.mark.proves("B64", "B51")
@pytest.mark.parametrize(
    ("stage", "decision"),
    [
        (Stage([errs(), errs()]), Decision.MANUAL_FIX),
        (Stage([fails("a")], answers=[Breaks()] * 3, fixer="command"), Decision.EXTEND),
        (Stage([fails("a")], answers=[Breaks(undelivered=True)] * 3, fixer="command"), Decision.EXTEND),
        (Stage([fails("a")], answers=[SILENT], fixer="command"), Decision.EXTEND),
    ],
)
def test_every_escalation_recommends_an_option_with_its_reason(stage: Stage, decision: Decision) -> None:
    stage.run().advance(3600)

    assert stage.escalation.recommended is decision
    assert stage.escalation.rationale


def test_every_reason_has_an_advice() -> None:
    active = Stage([fails("a")]).state.active

    for reason in Reason:
        assert diagnosis.recommendation(active, reason).rationale


@pytest.mark.proves("K37", "B49")
def test_a_phase_that_only_a_later_fix_broke_says_so() -> None:
    stage = Stage(
        {"unit-test": [passes()], "test-runner": [fails("a"), passes()]},
        confirmations={"unit-test": [fails("b")]},
        max_iterations=1,
    ).run()
    stage.decide("extend", iterations=1)
    report = stage.run().escalation

    assert report.phase == "Unit Test Writing"
    assert report.pattern == "Every run passed; a fix of a later phase broke it since."
    assert why(report) == {"b": "it fails on the final tree only: a fix of a later phase broke it"}
    assert report.rationale == "a fix of a later phase broke what had passed here"


@pytest.mark.proves("A93", "B42")
def test_new_failures_are_attributed_to_the_preceding_fix() -> None:
    stage = Stage([fails("a"), fails("b")], answers=[Fix(fixes=("swapped x", "dropped y"))]).run()
    first, second = stage.active.runs[:2]

    changes = analysis.comparison(first, second)
    assert diagnosis.cause_of_new(changes, first) == "the fix after run 1: swapped x; dropped y"
    assert diagnosis.cause_of_new(changes, None) == ""
    assert diagnosis.cause_of_new(analysis.comparison(first, first), first) == ""


@dataclass
class Requests:
    """The fix requests of a run, for what they suggest."""

    stage: Stage = field(repr=False)

    def approach(self, run: int) -> tuple[str, ...]:
        body = self.stage.message(f"FIXREQ-101-{run}").body
        assert isinstance(body, FixRequest)
        return body.approach


@pytest.mark.proves("A28", "B8", "B59")
def test_a_request_says_where_to_begin() -> None:
    grave = failure("grave", severity=Severity.CRITICAL, file="src/a.py", message="no module x")
    light = [failure(name, file="src/a.py", message="no module x") for name in ("b", "c")]
    requests = Requests(Stage([fails(grave, *light, "d")], answers=None).run())

    assert requests.approach(1) == ("Begin with what is critical: grave",)


@pytest.mark.proves("A28", "A93", "B59")
def test_a_later_request_says_which_failures_the_fix_left_and_added() -> None:
    requests = Requests(Stage([fails("a", "b"), fails("a", "c")], answers=[Fix()]).run())

    assert requests.approach(2) == (
        "The last fix did not reach the cause of a: try another way",
        "New since the last fix: c; look at what it changed",
    )


def test_many_names_are_shortened_and_counted() -> None:
    requests = Requests(Stage([fails(*"abcdef"), fails(*"abcdef")]).run())

    assert "the cause of a, b, c and 3 more: try another way" in requests.approach(2)[0]
