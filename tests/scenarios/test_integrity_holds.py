"""A run that passed and is held: what a person sees, and the result of each answer (issue 15, decision 0044)."""

import pytest

from fixloop.commands.outcome import result_lines
from fixloop.errors import UsageError
from fixloop.protocol.messages import MAIN_AGENT, USER, FailureReport, Reason
from fixloop.protocol.roles import WrongParty
from fixloop.protocol.specialists import Status
from fixloop.protocol.state import State, WorkflowOutcome
from fixloop.protocol.ticket import Priority
from tests.fixtures.script import SILENT, Fix, Result, errs, fails, held, passes
from tests.fixtures.validation_stage import Stage, replayed

WORDS = held("words")


def staged(*runs: Result, trusted: str = "commit-0", **further: object) -> Stage:
    return Stage(list(runs), trusted=trusted, **further).run()  # type: ignore[arg-type]


def texts(state: State) -> list[str]:
    return [failure.message for failure in state.failures]


@pytest.mark.proves("I11", "A69")
def test_a_passing_run_with_findings_is_neither_pass_nor_failure_and_escalates() -> None:
    stage = staged(fails("a"), held("words", "changed-test"))

    opened, report = stage.state.escalation, stage.escalation
    assert opened is not None
    assert (opened.reason, opened.target, opened.interrupted) == (
        Reason.INTEGRITY_HOLD,
        USER,
        Status.RE_CHECKING,
    )
    assert opened.findings == report.findings == held("words", "changed-test").findings
    assert [run.passed for run in stage.active.runs] == [False]
    assert (report.persistent, report.persistent_count, report.all_failed) == ((), 0, False)
    assert report.detail == "run 2 of test-runner passed, and is held by words, changed-test"
    assert stage.messages[-1].priority is Priority.CRITICAL
    assert not stage.said("success")


@pytest.mark.proves("I11")
def test_the_report_says_what_the_verdict_would_be_without_a_rule() -> None:
    assert staged(fails("a"), WORDS).escalation.without("words") == "passed"
    both = staged(fails("a"), held("words", "changed-test")).escalation
    assert both.without("words") == "held all the same, by changed-test"


@pytest.mark.proves("I11")
def test_accepted_changes_judge_from_now_on_and_the_run_is_repeated() -> None:
    stage = staged(fails("a"), WORDS)
    tree, tip = stage.state.tree, stage.state.tip

    stage.decide("accept", reason="the new test is right")

    assert (stage.state.trusted, stage.state.accepted) == (tip, (tree,))
    (ticket,) = stage.pending
    assert (ticket.step, ticket.iteration) == ("recheck", 2)
    assert any("by ann: accept the new test is right" in note for note in stage.notes)
    assert f"accepted tree {tree[:12]}: from now on it is {tip[:12]} that judges" in stage.notes
    stage.script.runs["test-runner"] = [WORDS]
    stage.run()
    assert stage.state.outcome is WorkflowOutcome.SUCCESS
    assert stage.state.verdict == "passed"


@pytest.mark.proves("I11")
def test_an_accepted_tree_counts_for_every_phase_and_another_tree_for_none() -> None:
    runs = {"unit-test": [fails("a"), WORDS, passes()], "security": [WORDS, fails("s"), WORDS]}
    stage = Stage(runs, trusted="commit-0").run()
    stage.decide("accept")
    stage.script.runs["security"] = [fails("s"), WORDS]

    stage.run()

    assert stage.active.name == "security"
    assert stage.escalation.findings == WORDS.findings


@pytest.mark.proves("I11", "B44")
def test_a_rejected_finding_is_a_failure_sent_back_with_the_reason() -> None:
    stage = staged(fails("a"), held("words", "changed-test"))
    stage.script.answers = None

    stage.decide("reject", reason="mend the code")
    stage.run()

    last = stage.active.last_run
    assert last is not None
    assert (last.number, last.passed, last.tree) == (2, False, stage.state.tree)
    assert [ref.name for ref in last.failures] == ["held: words", "held: changed-test"]
    assert {(ref.file, ref.line, ref.error_type) for ref in last.failures} == {("tests/test_a.py", 3, "Held")}
    assert stage.state.trusted == "commit-0"
    assert not stage.state.accepted
    report = stage.said("failure-report")[-1].body
    assert isinstance(report, FailureReport)
    assert [failure.message for failure in report.failures] == [
        f"{rule} was seen\nbefore:\nassert a == 1\nnow:\nassert a\na person rejected it: mend the code"
        for rule in ("words", "changed-test")
    ]
    stage.complete()
    stage.run()
    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("I11")
def test_findings_of_one_rule_in_one_file_are_one_failure() -> None:
    (found,) = WORDS.findings
    twice = Result("passed", findings=(found, found.with_(line=9), found.with_(file="b.py")))
    stage = staged(fails("a"), twice)

    stage.decide("reject")

    assert [failure.location for failure in stage.state.failures] == ["tests/test_a.py:3", "b.py:3"]
    assert texts(stage.state)[0].count("words was seen") == 2
    assert "a person" not in texts(stage.state)[0]


@pytest.mark.proves("I11", "B45")
def test_in_the_last_iteration_a_rejected_hold_reaches_the_limit() -> None:
    accepted = staged(fails("a"), WORDS, max_iterations=2)
    accepted.decide("accept")
    assert accepted.run().state.outcome is WorkflowOutcome.SUCCESS

    rejected = staged(fails("a"), WORDS, max_iterations=2)
    rejected.decide("reject")
    assert rejected.escalation.reason is Reason.MAX_ITERATIONS
    assert [each.name for each in rejected.escalation.persistent] == ["held: words"]


@pytest.mark.proves("I11", "K37")
def test_a_held_confirmation_stays_a_confirmation() -> None:
    runs = {"unit-test": [passes()], "security": [fails("s")]}
    stage = Stage(runs, confirmations={"unit-test": [WORDS]}, trusted="commit-0").run()
    assert stage.active.name == "unit-test"

    outcome = stage.decide("accept")

    assert [change.after for change in outcome.transitions] == [Status.RE_CHECKING]
    assert [ticket.step for ticket in stage.pending] == ["confirm"]
    assert stage.run().state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("I11", "K37")
def test_a_confirmation_that_is_rejected_is_the_next_run() -> None:
    runs = {"unit-test": [passes()], "security": [fails("s")]}
    stage = Stage(runs, confirmations={"unit-test": [WORDS]}, trusted="commit-0").run()

    stage.decide("reject")

    last = stage.active.last_run
    assert last is not None
    assert (stage.active.name, last.number, last.passed) == ("unit-test", 2, False)
    assert stage.state.confirm_rounds == 1


@pytest.mark.proves("I11", "K20")
def test_a_hold_that_is_skipped_leaves_its_rules_as_known_issues() -> None:
    stage = staged(fails("a"), WORDS)

    stage.decide("skip")

    assert stage.state.specialist("test-runner").known_issues == ("held: words",)
    assert stage.state.verdict == "passed_with_known_issues"


@pytest.mark.proves("I11", "K20")
def test_after_a_manual_fix_and_a_hold_the_next_failure_still_escalates() -> None:
    stage = staged(*[fails("a")] * 3)
    assert [stage.escalation.reason] == [Reason.DEADLOCK]
    stage.decide("manual-fix")
    stage.script.runs["test-runner"] = [WORDS, fails("b")]
    stage.done_by_hand()
    stage.run()
    assert stage.escalation.reason is Reason.INTEGRITY_HOLD

    stage.decide("accept")
    stage.run()

    assert stage.escalation.detail == "the manual fix did not pass"


@pytest.mark.proves("I11", "A14")
def test_a_hold_survives_a_pause_and_an_extension_repeats_it() -> None:
    stage = staged(fails("a"), WORDS)
    opened = stage.state.escalation

    stage.pause()
    stage.advance(9000.0)
    stage.go_on()
    assert stage.state.escalation == opened
    stage.decide("extend")
    stage.script.runs["test-runner"] = [WORDS]
    stage.run()
    stage.decide("accept")
    stage.run()

    assert stage.state.outcome is WorkflowOutcome.SUCCESS
    assert replayed(stage.applied) == stage.snapshots


@pytest.mark.proves("I11", "K20")
def test_changes_by_a_person_alone_judge_too() -> None:
    alone = staged(errs(), errs())
    alone.decide("manual-fix", tip="theirs", tree="tree-theirs")
    assert alone.state.trusted == "theirs"

    by_an_agent = staged(fails("a"), answers=[SILENT]).advance(2101.0)
    by_an_agent.complete()
    by_an_agent.decide("manual-fix")
    assert by_an_agent.state.trusted == "commit-0"

    after_an_agent = staged(fails("a"), fails("b"), max_iterations=2)
    after_an_agent.decide("manual-fix")
    after_an_agent.done_by_hand()
    assert after_an_agent.state.trusted == "commit-0"


@pytest.mark.proves("I11")
def test_people_s_decisions_are_in_the_last_lines() -> None:
    stage = staged(errs(), errs())
    stage.decide("manual-fix", configuration="other")
    stage.script.runs["test-runner"] = [WORDS]
    stage.run()
    stage.decide("accept")
    stage.run()

    assert stage.state.decided == ("manual-fix by ann", "gates re-read by ann", "accept by ann")
    [*_, last] = result_lines(stage.state)
    assert "passed (1 specialist, 1 run" in last
    assert "decided by a person: manual-fix by ann, gates re-read by ann, accept by ann" in last


@pytest.mark.proves("I9")
def test_the_same_tree_that_failed_and_then_passes_is_held() -> None:
    stage = staged(fails("a"), passes(), answers=[Fix(tree="tree-0")])

    (found,) = stage.escalation.findings
    assert (found.rule, found.text) == ("same-tree", "this very tree failed in run 1, and passes now")
    stage.decide("accept")
    assert stage.run().state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("I9")
def test_a_tree_that_reappears_in_a_later_run_or_a_confirmation_is_held() -> None:
    later = staged(fails("a"), fails("b"), passes(), answers=[Fix(), Fix(tree="tree-0")])
    assert later.escalation.reason is Reason.INTEGRITY_HOLD

    runs = {"unit-test": [fails("a"), passes()], "security": [fails("s"), passes()]}
    confirmed = Stage(runs, answers=[Fix(), Fix(tree="tree-0")], trusted="commit-0").run()
    assert [each.rule for each in confirmed.escalation.findings] == ["same-tree"]


@pytest.mark.proves("I9")
def test_a_tree_that_a_person_rejected_is_held_even_if_no_rule_sees_it_again() -> None:
    stage = staged(fails("a"), WORDS)
    stage.script.answers = [Fix(tree=stage.state.tree)]
    stage.decide("reject")

    stage.run()

    (found,) = stage.escalation.findings
    assert found.text == "a person rejected this very tree in run 2, and passes now"


@pytest.mark.proves("I9", "K36")
def test_a_run_whose_checks_could_not_run_does_not_count_against_its_tree() -> None:
    stage = staged(fails("a"), errs(), errs(), passes(), answers=[Fix(tree="x"), Fix(tree="x")])

    assert stage.active.runs[1].could_not_run
    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("I9", "I12")
@pytest.mark.parametrize("off", [("same-tree", "words"), ("all",)])
def test_a_rule_that_a_project_switches_off_holds_nothing(off: tuple[str, ...]) -> None:
    stage = staged(fails("a"), WORDS, answers=[Fix(tree="tree-0")], rules_off=off)

    assert stage.state.outcome is WorkflowOutcome.SUCCESS
    assert staged(fails("a"), held("words", "gate"), rules_off=("words",)).state.paused


@pytest.mark.proves("I9", "I11")
def test_a_workflow_older_than_holds_is_not_held() -> None:
    stage = staged(fails("a"), WORDS, answers=[Fix(tree="tree-0")], trusted="")

    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("I11", "A13")
@pytest.mark.parametrize("decision", ["accept", "reject"])
def test_accept_and_reject_answer_a_hold_and_nothing_else(decision: str) -> None:
    stage = staged(fails("a"), fails("a"), max_iterations=2)
    before = stage.state

    with pytest.raises(
        UsageError, match=f"^{decision} answers an integrity hold, and ESC-.* is none; decide "
    ):
        stage.decide(decision)

    assert stage.state == before


@pytest.mark.proves("I10", "I11")
@pytest.mark.parametrize("decision", ["accept", "reject", "skip", "extend"])
@pytest.mark.parametrize("sender", [MAIN_AGENT, "@test-runner-specialist"])
def test_no_agent_decides_on_a_hold(decision: str, sender: str) -> None:
    stage = staged(fails("a"), WORDS)

    with pytest.raises(WrongParty):
        stage.decide(decision, sender=sender)

    assert stage.state.paused
