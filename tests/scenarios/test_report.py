"""The report after the last phase: the same figures as the history, in every state of the workflow (U18, U3)."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from hypothesis import example, given, settings, strategies as st

from fixloop.protocol.checks import Counts, Evidence
from fixloop.protocol.events import Cancelled, EventRefused, RunFinished
from fixloop.protocol.failures import Failure
from fixloop.protocol.messages import Decision
from fixloop.protocol.specialists import NAMES
from fixloop.protocol.state import WorkflowOutcome
from fixloop.summary import Summary, as_html, as_markdown
from fixloop.summary.chart import chart
from fixloop.summary.model import GateState, Standing
from tests.fixtures import script
from tests.fixtures.script import SILENT, BadAnswer, Breaks, Fix, errs, fails, failure, passes
from tests.fixtures.validation_stage import Answers, Runs, Stage
from tests.scenarios.report import report_on

pytestmark = pytest.mark.heavy

GOLDEN: Final = Path(__file__).parents[1] / "unit" / "golden"
FEATURE_47: Final = [
    failure("test_sequential_invocation", file="test_validation_coordinator.py", line=12),
    failure("test_failure_tracking", file="test_validation_coordinator.py", error_type="KeyError"),
    failure("test_workflow_completion", file="test_validation_coordinator.py", error_type="AttributeError"),
]


def feature_47() -> Stage:
    """S3 with the seed's own clock: 08:32 to the first fix, 00:24:15 in all."""
    runs = [
        fails(*FEATURE_47, coverage="73.2% (target: ≥80%)"),
        fails(FEATURE_47[0], coverage="79.0% (target: ≥80%)", takes_seconds=120),
        passes(coverage="87.3% (target: ≥80%)", takes_seconds=130),
    ]
    fixes = [
        Fix(
            "two of three mended", ("called in order", "tracked"), ("src/coordinator.py",), takes_seconds=512
        ),
        Fix("the last one", ("completed",), ("src/coordinator.py", "src/state.py"), takes_seconds=693),
    ]
    return Stage(runs, answers=fixes, issue=47, name="Validation coordinator", fixer="command").run()


def back_end(confirmations: dict[str, Runs] | None = None) -> Stage:
    """S16: runs 1, 1, 3, 1, 2, the sixth does not apply."""
    runs: dict[str, Runs] = {
        "unit-test": [passes(takes_seconds=40), passes(takes_seconds=41)],
        "integration-test": [passes(takes_seconds=75)],
        "test-runner": [
            fails("a", "b", "c", takes_seconds=90),
            fails("b", takes_seconds=95),
            passes(takes_seconds=93),
        ],
        "code-quality": [passes(takes_seconds=20)],
        "security": [fails("secret", takes_seconds=30), passes(takes_seconds=28)],
    }
    answers = [Fix(takes_seconds=512), Fix(takes_seconds=300), Fix(takes_seconds=120), Fix(takes_seconds=60)]
    return Stage(
        runs, answers=answers, issue=47, name="Payments", fixer="command", confirmations=confirmations
    ).run()


def broken_later() -> Stage:
    """S31: the security fix breaks a unit test."""
    return back_end(confirmations={"unit-test": [fails("u", takes_seconds=42)]})


def check_golden(name: str, text: str) -> None:
    path = GOLDEN / f"{name}.md"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.proves("U18", "S3")
def test_the_report_on_feature_47_is_its_golden_file() -> None:
    summary = report_on(feature_47())

    assert summary.times.total == 24 * 60 + 15
    assert summary.phases[2].history == (3, 1, 0)
    assert summary.phases[2].fixes[0].seconds == 8 * 60 + 32
    check_golden("report-s03", as_markdown(summary))


@pytest.mark.proves("U18", "S16")
def test_the_totals_of_a_pipeline_are_computed_not_copied() -> None:
    totals = report_on(back_end()).totals

    assert (totals.iterations, totals.specialists, totals.fix_cycles) == (8, 5, 3)
    assert (totals.messages, totals.confirmations, totals.escalations) == (22, 4, 0)


@pytest.mark.proves("U18", "S16")
def test_the_report_on_a_pipeline_is_its_golden_file() -> None:
    check_golden("report-s16", as_markdown(report_on(back_end())))


@pytest.mark.proves("U18", "S31", "K37")
def test_a_confirmation_that_failed_is_reported_as_the_run_it_became() -> None:
    summary = report_on(broken_later())
    unit = summary.phases[0]

    assert [(run.number, run.result, run.from_confirmation) for run in unit.runs] == [
        (1, "passed", False),
        (2, "failed", True),
        (3, "passed", False),
    ]
    assert [
        (c.specialist, c.result) for p in summary.phases for c in p.confirmations if c.result == "failed"
    ] == [("unit-test", "failed")]
    check_golden("report-s31", as_markdown(summary))


def running() -> Stage:
    runs: dict[str, Runs] = {"unit-test": [passes()], "security": [fails("s"), SILENT]}
    return Stage(runs, fixer="command").run().advance(90)


def paused() -> Stage:
    return Stage({"unit-test": [passes()], "security": [fails("s")] * 3}).run().advance(3600)


def aborted() -> Stage:
    stage = paused()
    stage.decide("abort", reason="wrong way")
    return stage


def cancelled() -> Stage:
    stage = running()
    stage.apply(Cancelled(by="ann"))
    return stage


def skipped() -> Stage:
    stage = paused()
    stage.decide("skip", reason="known")
    return stage.run()


def by_hand() -> Stage:
    stage = Stage({"unit-test": [passes()], "security": [fails("s")] * 3}).run().advance(600)
    stage.decide("manual-fix")
    stage.advance(900)
    stage.done_by_hand()
    return stage.run()


def held() -> Stage:
    """A person pauses during a run; it ends ten minutes before the workflow continues."""
    stage = Stage([fails("a", takes_seconds=30), passes(takes_seconds=40)], answers=[Fix(takes_seconds=60)])
    stage.pause(reason="the machine is needed")
    stage.step()
    return stage.advance(600)


STANDINGS: Final[list[tuple[Callable[[], Stage], Standing, str | None, str]]] = [
    (back_end, Standing.COMPLETED, "passed", "Every specialist that ran passed"),
    (running, Standing.RUNNING, None, "Security Assessment, run 2 of at most 5, is RE_CHECKING."),
    (
        paused,
        Standing.PAUSED,
        None,
        "Security Assessment, run 3 of at most 5, waits for a decision: Deadlock - no progress.",
    ),
    (
        aborted,
        Standing.ABORTED,
        "not_passed",
        "It ended in Security Assessment, run 3 of at most 5; the feature has not passed.",
    ),
    (cancelled, Standing.CANCELLED, "not_passed", "It ended in Security Assessment, run 2 of at most 5"),
    (held, Standing.PAUSED, None, "Test Execution, run 1 of at most 5, is paused by ann"),
    (
        skipped,
        Standing.COMPLETED,
        "passed_with_known_issues",
        "A person skipped Security Assessment; what failed there is a known issue.",
    ),
    (by_hand, Standing.COMPLETED, "passed", "Every specialist that ran passed"),
]


@pytest.mark.proves("U18")
@pytest.mark.parametrize(("play", "standing", "verdict", "sentence"), STANDINGS)
def test_a_report_shows_the_progress_of_the_workflow(
    play: Callable[[], Stage], standing: Standing, verdict: str | None, sentence: str
) -> None:
    summary = report_on(play())

    assert (summary.standing, summary.verdict) == (standing, verdict)
    assert sentence in summary.sentence
    assert sentence in as_markdown(summary)


def bumpy() -> Stage:
    answers: Answers = [Breaks(takes_seconds=10), BadAnswer(takes_seconds=30), Fix(takes_seconds=60)]
    runs: dict[str, Runs] = {
        "unit-test": [errs(takes_seconds=2), passes(takes_seconds=20)],
        "test-runner": [fails("a")],
    }
    return Stage(runs, answers=answers, fixer="command").run()


EVERY: Final = [play for play, *_ in STANDINGS] + [feature_47, broken_later, bumpy]


@pytest.mark.parametrize("play", EVERY)
def test_the_times_of_a_report_add_up_to_the_whole(play: Callable[[], Stage]) -> None:
    stage = play()
    summary = report_on(stage)
    times = summary.times

    assert times.total == pytest.approx((summary.as_of - summary.started_at).total_seconds())
    assert times.total == pytest.approx(times.checks + times.agent + times.person + times.away + times.engine)
    assert times.total == pytest.approx(sum(phase.times.total for phase in summary.phases) + outside(summary))
    for before, after in zip(summary.bars, summary.bars[1:], strict=False):
        assert before.end == after.start


RESULT: Final = st.sampled_from(
    [
        *(fails("a", takes_seconds=30), fails("a", "b", takes_seconds=3), fails("b")),
        *(
            passes(takes_seconds=20),
            passes(),
            errs(takes_seconds=1),
            script.held("words", takes_seconds=9),
            SILENT,
        ),
    ]
)
ANSWER: Final = st.sampled_from(
    [
        *(Fix(takes_seconds=100), Fix(files=(), tree="tree-0"), Breaks(takes_seconds=5)),
        *(Breaks(undelivered=True), BadAnswer(takes_seconds=9), SILENT),
    ]
)
DECISION: Final = st.sampled_from(["manual-fix", "skip", "abort", "extend", "extend", "accept", "reject"])


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@example(
    runs={"unit-test": [script.held("words", takes_seconds=9), fails("a", takes_seconds=30)]},
    confirmations={},
    answers=[],
    decisions=["manual-fix", "manual-fix", "reject"],
)
@given(
    runs=st.dictionaries(st.sampled_from(NAMES), st.lists(RESULT, max_size=6), min_size=1, max_size=3),
    confirmations=st.dictionaries(st.sampled_from(NAMES), st.lists(RESULT, max_size=3), max_size=2),
    answers=st.lists(ANSWER, max_size=8),
    decisions=st.lists(DECISION, max_size=3),
)
def test_any_workflow_has_a_report_that_adds_up(
    runs: dict[str, Runs], confirmations: dict[str, Runs], answers: Answers, decisions: list[str]
) -> None:
    scripted = Stage(runs, answers=answers, confirmations=confirmations, fixer="command", trusted="commit-0")
    stage = scripted.run().advance(2400)
    for decision in decisions:
        if stage.state.paused and decision in stage.escalation.reason.decisions:
            stage.advance(500).decide(decision)
            # A rejection may open another escalation at once; only a manual fix waits for a person's hands.
            opened = stage.state.escalation
            if opened is not None and opened.decision is Decision.MANUAL_FIX:
                stage.advance(300).done_by_hand()
            stage.run().advance(2400)

    summary = report_on(stage)

    times, shown = summary.times, chart(summary)
    assert times.total == pytest.approx((summary.as_of - summary.started_at).total_seconds())
    assert summary.totals.iterations == sum(entry.iteration for entry in stage.state.specialists)
    assert summary.totals.fix_cycles == len(stage.said("fix-completion"))
    assert summary.totals.escalations == len(stage.said("escalation"))
    assert [len(phase.runs) for phase in summary.phases] == [len(e.runs) for e in stage.state.specialists]
    assert sum(bar.kind == "run" and bar.result == "running" for bar in summary.bars) <= 1
    if stage.state.outcome is not WorkflowOutcome.SUCCESS:
        assert summary.verdict != "passed"
    assert all(gate.state is not GateState.FAIL for gate in summary.gates) or summary.verdict != "passed"
    assert all(shape.width >= 1 and shape.x + shape.width <= shown.width for shape in shown.shapes)
    assert as_html(summary).endswith("</html>\n")
    assert as_markdown(summary).startswith("# Validation Report")


def outside(summary: Summary) -> float:
    """Time in which no specialist took part."""
    names = {phase.name for phase in summary.phases}
    return sum(bar.seconds + bar.away_seconds for bar in summary.bars if bar.specialist not in names)


@pytest.mark.proves("A90")
def test_running_operations_are_shown_with_their_limits() -> None:
    summary = report_on(running())

    assert summary.at_work is not None
    assert (summary.at_work.operation, summary.at_work.specialist) == ("re-validation", "security")
    assert (summary.at_work.elapsed_seconds, summary.at_work.limit_seconds) == (90.0, 1800.0)
    assert summary.bars[-1].result == "running"


@pytest.mark.proves("A93")
def test_each_run_says_what_changed_since_the_one_before() -> None:
    stage = Stage([fails("a", "b"), fails("b", "c"), passes()]).run()

    runs = report_on(stage).phases[2].runs
    assert [(run.resolved, run.persisting, run.new) for run in runs] == [(0, 0, 2), (1, 1, 1), (2, 0, 0)]


@pytest.mark.proves("A94", "A91")
def test_an_escalation_is_reported_with_its_pattern_decision_and_wait() -> None:
    summary = report_on(skipped())

    (row,) = summary.escalations
    assert "Failures per run: 1 → 1 → 1." in row.pattern
    assert (row.decision, row.by, row.because, row.waited_seconds) == ("skip", "ann", "known", 3600.0)
    assert summary.times.person == 3600.0
    assert summary.phases[4].known_issues == ("s",)
    assert [mark.kind for mark in summary.moments] == ["escalation", "decision"]


@pytest.mark.proves("A91")
def test_errors_and_violations_are_reported_with_where_they_happened() -> None:
    summary = report_on(bumpy())

    kinds = [(row.kind, row.specialist) for row in summary.errors]
    assert ("error", "unit-test") in kinds
    assert ("violation", "test-runner") in kinds
    assert [bar.result for bar in summary.bars if bar.kind == "fix"] == ["failed", "rejected", "fixed"]


def test_a_fix_by_hand_is_no_fix_cycle_of_the_main_agent() -> None:
    summary = report_on(by_hand())

    assert (summary.totals.manual_fixes, summary.totals.fix_cycles) == (1, 2)
    assert [bar.seconds for bar in summary.bars if bar.kind == "person"] == [600.0, 900.0]
    assert summary.phases[4].fixes[-1].by == "ann"


@pytest.mark.proves("K34")
def test_the_engine_s_absence_counts_for_no_participant() -> None:
    stage = Stage([fails("a"), passes()], answers=None).run()
    stage.advance(600)
    stage.away(14 * 3600)
    stage.advance(300)
    stage.complete()
    stage.run()

    summary = report_on(stage)
    times = summary.times
    assert "engine away 14:00:00" in {shape.above for shape in chart(summary).shapes}
    assert (times.agent, times.away, times.total) == (900.0, 14 * 3600.0, 14 * 3600.0 + 900.0)


@pytest.mark.proves("A14", "K21")
def test_a_pause_by_a_person_is_reported_and_counts_as_their_time() -> None:
    summary = report_on(held())

    assert summary.standing is Standing.PAUSED
    assert summary.sentence.endswith("is paused by ann: the machine is needed.")
    assert [(bar.kind, bar.result, bar.seconds) for bar in summary.bars] == [
        ("run", "failed", 30.0),
        ("person", "waiting", 600.0),
    ]
    assert summary.at_work is None


@pytest.mark.proves("A14", "U3")
def test_a_run_that_ended_while_paused_counts_when_the_workflow_continues() -> None:
    stage = held()
    stage.go_on()
    judged = report_on(stage)
    stage.run()

    summary = report_on(stage)

    assert gate_states(judged)["All tests pass"] == "fail"
    assert summary.phases[2].history == (1, 0)
    assert [run.seconds for run in summary.phases[2].runs] == [30.0, 40.0]
    assert (summary.times.checks, summary.times.agent, summary.times.person) == (70.0, 60.0, 600.0)


@pytest.mark.proves("A14")
def test_a_fix_that_came_while_paused_is_a_fix() -> None:
    stage = Stage([fails("a"), passes()], answers=None).run().advance(100)
    stage.pause()
    stage.advance(50)
    stage.complete()
    stage.advance(600)
    stage.go_on()
    stage.run()

    summary = report_on(stage)

    assert [(b.kind, b.result, b.seconds) for b in summary.bars if b.kind in ("fix", "person")] == [
        ("fix", "fixed", 150.0),
        ("person", "continued", 600.0),
    ]
    assert (summary.totals.fix_cycles, summary.times.total) == (1, 750.0)


@pytest.mark.proves("A14")
def test_a_pause_in_which_nothing_ended_interrupts_the_wait_for_the_agent() -> None:
    stage = Stage([fails("a"), passes()], answers=None).run().advance(100)
    stage.pause()
    stage.advance(600)
    stage.go_on()
    stage.advance(100)
    stage.complete()
    stage.run()

    times = report_on(stage).times
    assert (times.agent, times.person, times.total) == (200.0, 600.0, 800.0)


@pytest.mark.heavy
@pytest.mark.proves("A51")
def test_refusals_after_the_end_do_not_lengthen_a_workflow() -> None:
    stage = back_end()
    before = report_on(stage)

    stage.advance(3600)
    stage.apply(EventRefused(refused="fix-completed", reason="it has ended"))

    assert report_on(stage) == before


def gate_states(summary: Summary) -> dict[str, str]:
    return {gate.name: gate.state.value for gate in summary.gates}


@pytest.mark.proves("U3")
def test_eleven_gates_are_tracked_and_an_undecided_one_does_not_pass() -> None:
    states = gate_states(report_on(Stage(dict.fromkeys(NAMES, ())).run()))

    assert states == {
        "Unit tests written": "pass",
        "Integration tests written": "pass",
        "All tests pass": "pass",
        "Coverage ≥ 80%": "N/A",
        "Linting": "N/A",
        "Type checking": "N/A",
        "Formatting": "N/A",
        "Security scan": "pass",
        "OWASP Top 10": "N/A",
        "E2E user flows": "pass",
        "WCAG 2.1 AA": "N/A",
    }


@pytest.mark.proves("U3")
def test_a_gate_of_a_phase_that_has_not_begun_is_pending() -> None:
    states = gate_states(report_on(Stage({"test-runner": [fails("a")], "security": []}, answers=None).run()))

    assert (states["All tests pass"], states["Security scan"]) == ("fail", "pending")
    assert states["Linting"] == "N/A"


@pytest.mark.proves("U3", "K37")
def test_a_gate_passed_on_an_earlier_tree_is_pending_until_it_is_confirmed() -> None:
    runs: dict[str, Runs] = {"unit-test": [passes()], "security": [fails("s"), SILENT]}

    gate = report_on(Stage(runs).run()).gates[0]
    assert (gate.state, gate.why) == (
        GateState.PENDING,
        "unit-test: 1 of 1 passed, but on an earlier tree: to be confirmed",
    )


def judged(
    specialist: str, *evidence: Evidence, failures: tuple[Failure, ...] = (), **further: object
) -> Summary:
    """The report on a workflow of one specialist after one run with this evidence."""
    stage = Stage({specialist: [SILENT]})
    stage.pending.clear()
    event = RunFinished(
        step="validate",
        specialist=specialist,
        iteration=1,
        outcome="failed" if failures else "passed",
        tree="tree-0",
        failures=failures,
        evidence=evidence,
        **further,  # type: ignore[arg-type]
    )
    stage.apply(event)
    return report_on(stage)


def ran(check: str, command: str, **further: object) -> Evidence:
    return Evidence(check=check, command=command, exit_code=0, tree="tree-0", **further)  # type: ignore[arg-type]


@pytest.mark.proves("U3")
@pytest.mark.parametrize(
    ("specialist", "check", "command", "gate"),
    [
        ("code-quality", "ruff", "ruff check --output-format sarif --output-file {sarif} .", "Linting"),
        ("code-quality", "ruff", "ruff format --check .", "Formatting"),
        ("code-quality", "format", "env RUFF_OUTPUT_FORMAT=concise ruff format --check .", "Formatting"),
        ("code-quality", "style", "python -m flake8 --format=pylint src/format", "Linting"),
        ("code-quality", "mypy", "python -m mypy src", "Type checking"),
        ("code-quality", "types", "make check", "Type checking"),
        ("code-quality", "black", "black --check .", "Formatting"),
        ("security", "bandit", "bandit -q -r src", "Security scan"),
        ("security", "semgrep", "semgrep --config p/owasp-top-ten", "OWASP Top 10"),
        ("e2e-accessibility", "browser", "npx playwright test", "E2E user flows"),
        ("e2e-accessibility", "a11y", "npx pa11y-ci", "WCAG 2.1 AA"),
    ],
)
def test_a_check_decides_the_gate_that_its_name_or_command_means(
    specialist: str, check: str, command: str, gate: str
) -> None:
    summary = judged(specialist, ran(check, command))

    own = [each for each in summary.gates if each.specialist == specialist]
    assert [each.name for each in own if each.state is GateState.PASS] == [gate]
    assert all(each.state is GateState.NOT_APPLICABLE for each in own if each.name != gate)


@pytest.mark.proves("U3")
def test_one_run_can_pass_some_gates_and_fail_others() -> None:
    found = Failure(name="F401", file="a.py", line=1, check="lint")

    states = gate_states(
        judged("code-quality", ran("lint", "ruff check"), ran("types", "mypy"), failures=(found,))
    )

    assert (states["Linting"], states["Type checking"], states["Formatting"]) == ("fail", "pass", "N/A")


@pytest.mark.proves("U3", "B68", "G24")
def test_tests_may_pass_while_their_coverage_fails() -> None:
    counts = Counts(total=9, passed=9)
    low = Failure(name="coverage", check="pytest", measure="73.2", error_type="CoverageTooLow")
    measured = ran("pytest", "pytest --cov", counts=counts, coverage_percent=73.2, coverage_gate=85.0)

    gates = {gate.name: gate for gate in judged("test-runner", measured, failures=(low,)).gates}

    assert gates["All tests pass"].state is GateState.PASS
    assert (gates["Coverage ≥ 85%"].state, gates["Coverage ≥ 85%"].why) == (GateState.FAIL, "73.2% by pytest")


@pytest.mark.proves("U3", "K38")
def test_a_gate_whose_check_was_skipped_does_not_apply() -> None:
    summary = judged("code-quality", ran("lint", "ruff check"), skipped_checks=("mypy",))

    gates = {gate.name: gate for gate in summary.gates}
    assert (gates["Type checking"].state, gates["Type checking"].why) == (
        GateState.NOT_APPLICABLE,
        "skipped: mypy",
    )
    assert summary.phases[3].skipped_checks == ("mypy",)
    assert "Skipped checks of Code Quality" in as_markdown(summary)


@pytest.mark.proves("U3")
def test_a_failure_of_an_unknown_check_passes_no_gate_of_its_specialist() -> None:
    lost = Failure(name="could not run after the fix", check="security")

    states = gate_states(judged("security", ran("bandit", "bandit -r src"), failures=(lost,)))

    assert (states["Security scan"], states["OWASP Top 10"]) == ("fail", "fail")
