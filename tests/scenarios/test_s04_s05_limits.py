"""S4, S5 and S32: when a loop escalates, and when it must not."""

import pytest

from fixloop.protocol import analysis
from fixloop.protocol.failures import Failure
from fixloop.protocol.messages import USER, Reason
from fixloop.protocol.specialists import Status
from fixloop.protocol.state import WorkflowOutcome
from fixloop.protocol.ticket import Priority
from tests.fixtures.script import Result, fails, failure, passes
from tests.fixtures.validation_stage import Stage

SHRINKING = [fails(*"abcde"), fails(*"abcd"), fails(*"abc"), fails(*"ab"), fails("a")]


@pytest.mark.proves("K1", "A65", "A92", "B45")
def test_s4_the_fifth_failure_escalates_and_asks_for_nothing_more() -> None:
    stage = Stage(SHRINKING).run()

    of_loop = [f"VFR-101-test-runner-{n}" for n in (1, 2, 3, 4)]
    assert [i for i in stage.ids if i.startswith("VFR")] == of_loop
    assert [m.message_id for m in stage.said("fix-request")] == [f"FIXREQ-101-{n}" for n in (1, 2, 3, 4)]
    assert [m.message_id for m in stage.said("fix-completion")] == [f"FIXDONE-101-{n}" for n in (1, 2, 3, 4)]
    assert [i for i in stage.ids if i.startswith("REVAL-")] == [
        f"REVAL-101-test-runner-{n}" for n in (2, 3, 4, 5)
    ]
    assert [i for i in stage.ids if i.startswith("REVALRES-")] == [
        f"REVALRES-101-test-runner-{n}" for n in (2, 3, 4, 5)
    ]
    assert len(stage.messages) == 18
    assert not stage.pending
    assert not stage.deadlines


@pytest.mark.proves("A44", "A46", "A69", "K27")
def test_s4_one_critical_report_goes_to_the_user() -> None:
    stage = Stage(SHRINKING).run()

    (report,) = stage.said("escalation")
    assert report is stage.messages[-1]
    assert report.message_id == "ESC-101-test-runner-20260302T090000Z"
    assert (report.recipient, report.priority) == (USER, Priority.CRITICAL)
    assert (report.status_before, report.status_after) == (Status.FAIL, Status.ESCALATED)
    assert stage.escalation.reason is Reason.MAX_ITERATIONS
    assert stage.escalation.reason.label == "Max Iterations Exceeded"
    assert stage.escalation.reason.text == "Max iterations exceeded"
    assert stage.escalation.iterations == 5
    assert stage.state.paused
    assert stage.active.status is Status.ESCALATED


@pytest.mark.proves("A47", "B49", "B50", "K1")
def test_s4_the_report_contains_the_whole_history() -> None:
    stage = Stage(SHRINKING).run()

    rows = stage.escalation.history
    assert [(row.iteration, row.failures, row.result) for row in rows] == [
        (1, 5, "FAIL"),
        (2, 4, "FAIL"),
        (3, 3, "FAIL"),
        (4, 2, "FAIL"),
        (5, 1, "FAIL"),
    ]
    assert [row.fixes for row in rows[:4]] == ["mended it"] * 4
    assert rows[4].fixes == "none (limit reached)"
    (persistent,) = stage.escalation.persistent
    assert persistent.name == "a"
    assert persistent.iterations == (1, 2, 3, 4, 5)
    assert len(persistent.fixes) == 4
    assert stage.escalation.persistent_count == 1


@pytest.mark.proves("K1", "A65", "B39", "B44")
@pytest.mark.parametrize(("n", "reached"), [(4, False), (5, True), (6, True)])
def test_both_phrasings_of_the_limit_agree(n: int, reached: bool) -> None:
    assert analysis.limit_reached(n, 5) is reached
    assert (n + 1 > 5) is reached


@pytest.mark.proves("K1")
def test_a_limit_of_one_escalates_at_the_first_failure() -> None:
    stage = Stage([fails("a")], max_iterations=1).run()

    assert [i.split("-")[0] for i in stage.ids] == ["DETECT", "ESC"]
    assert stage.escalation.reason is Reason.MAX_ITERATIONS


def shifted(line: int) -> Result:
    """The same two failures with other lines and messages."""
    return fails(*(failure(name, line=line, message=f"{name} broke in line {line}") for name in "ab"))


@pytest.mark.proves("K7", "A67", "S5")
def test_s5_three_runs_that_fail_alike_are_a_deadlock() -> None:
    stage = Stage([shifted(1), shifted(20), shifted(300)]).run()

    assert stage.escalation.reason is Reason.DEADLOCK
    assert stage.escalation.reason.text == "Deadlock - no progress"
    assert len(stage.messages) == 10
    assert "VFR-101-test-runner-3" not in stage.ids
    assert stage.messages[-1].recipient == USER
    assert [row.iteration for row in stage.escalation.history] == [1, 2, 3]
    assert stage.escalation.history[-1].fixes == "none"


@pytest.mark.proves("K7", "S5")
@pytest.mark.parametrize(
    "sets", [("ab", "ab", "a"), ("ab", "c", "ab"), ("ab", "ab", "abc"), ("a", "ab", "ab")]
)
def test_s5_other_sequences_of_failures_continue(sets: tuple[str, ...]) -> None:
    stage = Stage([*(fails(*names) for names in sets), passes()]).run()

    assert stage.state.outcome is WorkflowOutcome.SUCCESS
    assert not stage.said("escalation")


@pytest.mark.proves("K7", "A94", "B62", "S5")
def test_s5_oscillation_is_reported_in_the_pattern_analysis() -> None:
    stage = Stage([fails(*names) for names in ("ab", "c", "ab", "c", "ab")]).run()

    assert stage.escalation.reason is Reason.MAX_ITERATIONS
    assert "oscillation" in stage.escalation.pattern
    assert "2 → 1 → 2 → 1 → 2" in stage.escalation.pattern


@pytest.mark.proves("K8", "A94")
def test_at_the_limit_the_limit_wins_over_a_deadlock() -> None:
    runs = [fails("a"), fails("b"), fails("c"), fails("c"), fails("c")]

    stage = Stage(runs).run()

    assert stage.escalation.reason is Reason.MAX_ITERATIONS
    assert "failed in the same way" in stage.escalation.pattern
    assert len(stage.said("escalation")) == 1


def lines(count: int) -> Result:
    """One exit-code check whose output names `count` lines with one error each."""
    return fails(*(failure("mypy", file="src/app.py", line=n, error_type="arg-type") for n in range(count)))


def gate(percent: float) -> Result:
    """A coverage below its gate: one failure that carries its measure."""
    return fails(Failure(name="coverage", error_type="CoverageTooLow", measure=f"{percent:.1f}"))


def output(digest: str) -> Result:
    """An exit-code check whose output names no places: the digest of its output is its measure."""
    return fails(Failure(name="format", error_type="exit 1", measure=digest))


@pytest.mark.proves("K7", "S32")
@pytest.mark.parametrize(
    "runs",
    [
        pytest.param([lines(9), lines(4), lines(1)], id="lines"),
        pytest.param([gate(60.0), gate(70.0), gate(78.0)], id="coverage"),
        pytest.param([lines(3), lines(2), lines(1)], id="one rule in one file"),
        pytest.param([output("1f"), output("2e"), output("3d")], id="output"),
    ],
)
def test_s32_progress_is_no_deadlock(runs: list[Result]) -> None:
    stage = Stage([*runs, passes()]).run()

    assert stage.state.outcome is WorkflowOutcome.SUCCESS
    assert stage.active.iteration == 4
    assert not stage.said("escalation")


@pytest.mark.proves("K7", "S32")
@pytest.mark.parametrize(
    "run",
    [
        pytest.param(lines(9), id="lines"),
        pytest.param(gate(60.0), id="coverage"),
        pytest.param(output("1f"), id="output"),
    ],
)
def test_s32_the_same_measure_three_times_is_a_deadlock(run: Result) -> None:
    stage = Stage([run, run, run]).run()

    assert stage.escalation.reason is Reason.DEADLOCK
    assert stage.active.iteration == 3


@pytest.mark.proves("K7", "B42")
def test_findings_of_one_rule_in_one_file_count_with_multiplicity() -> None:
    stage = Stage([lines(3), lines(2), passes()]).run()

    (result,) = [m.body for m in stage.messages if m.message_id == "REVALRES-101-test-runner-2"]
    assert result.kind == "revalidation-result"
    compared = result.comparison
    assert (compared.previous_count, len(compared.persisting) + len(compared.new)) == (3, 2)
    assert (len(compared.resolved), len(compared.persisting), len(compared.new)) == (1, 2, 0)
