"""The answers of an agent, and how each ends (A8, A33, A71, G2, G8, K35, R8, S11, S13)."""

import pytest

from fixloop.protocol import events as ev, ids
from fixloop.protocol.answers import Answer, AnsweredAlready, InvalidAnswer, parse_answer
from fixloop.protocol.claims import differences
from fixloop.protocol.event import Repeated
from fixloop.protocol.messages import FixCompletion, ProtocolViolation, Reason
from fixloop.protocol.rendering import render_answer_format, render_whole
from fixloop.protocol.specialists import Status
from fixloop.protocol.state import WorkflowOutcome
from tests.fixtures.script import SILENT, BadAnswer, Fix, fails, passes
from tests.fixtures.validation_stage import Stage
from tests.parsing import parse


def answer(stage: Stage, text: str) -> None:
    """What the shell does with an answer: read it against the open request, and apply the event that fits."""
    active = stage.active
    try:
        said = parse_answer(text, issue=stage.state.issue, iteration=active.iteration, specialist=active.name)
    except AnsweredAlready:
        raise
    except InvalidAnswer as invalid:
        stage.apply(
            ev.AnswerRejected(
                specialist=active.name,
                iteration=active.iteration,
                violations=invalid.violations,
                offending=text,
            )
        )
        return
    if not said.ready:
        stage.apply(ev.BlockerSignalled(by="agent", text=said.blocker, declined=said.declined))
        return
    stage.complete(Fix(summary=said.summary, fixes=said.fixes, files=said.files))


def valid(stage: Stage) -> str:
    """The example of the request, returned unchanged."""
    active = stage.active
    return render_answer_format(stage.state.issue, active.iteration, active.name)


@pytest.mark.proves("A71", "G2", "S11")
def test_a_missing_section_is_named_and_the_next_answer_continues_in_the_same_iteration() -> None:
    stage = Stage([fails("a"), passes()], answers=None).run()
    without = valid(stage).replace("### Files Modified", "### Files")

    answer(stage, without)

    (notice,) = stage.said("protocol-violation")
    assert isinstance(notice.body, ProtocolViolation)
    assert notice.body.violations == ('missing section "Files Modified"',)
    assert notice.body.offending == without
    assert (notice.sender, notice.recipient) == ("@validation-orchestrator", "@feature-implementer-main")
    assert stage.active.iteration == 1
    answer(stage, notice.body.expected)
    stage.run()
    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("G2")
def test_the_notice_shows_the_format_with_the_request_s_own_numbers() -> None:
    stage = Stage([fails("a"), fails("b")], answers=[Fix(), SILENT]).run()

    answer(stage, "I am done!")

    (notice,) = stage.said("protocol-violation")
    text = render_whole(notice)
    for line in ("FIXDONE-101-2", "iteration 2.", "Yes - please re-run test-runner."):
        assert line in text
    assert parse(text) == notice
    assert notice.message_id.startswith("PVN-101-feature-implementer-main-")


@pytest.mark.proves("A71", "K5", "S11")
@pytest.mark.parametrize("text", ["", "\x00\x01\x02", "{" * 5000, "> " * 5000, "done", "#" * 900_000])
def test_garbage_is_reported_once_and_then_escalated(text: str) -> None:
    stage = Stage([fails("a")], answers=None).run()

    answer(stage, text)
    answer(stage, text)

    (notice,) = stage.said("protocol-violation")
    assert parse(render_whole(notice)) == notice
    assert stage.escalation.reason is Reason.INVALID_RESPONSE
    assert len([note for note in stage.notes if note.startswith("invalid answer: ")]) == 2
    assert stage.active.iteration == 1


@pytest.mark.proves("A8", "S11")
def test_an_answer_for_another_iteration_is_an_invalid_response() -> None:
    stage = Stage([fails("a"), passes()], answers=None).run()

    answer(stage, valid(stage).replace("FIXDONE-101-1", "FIXDONE-101-3"))

    (notice,) = stage.said("protocol-violation")
    assert isinstance(notice.body, ProtocolViolation)
    assert "id FIXDONE-101-3 while FIXREQ-101-1 is open" in notice.body.violations[0]
    assert stage.active.status is Status.AWAITING_FIX
    assert not stage.said("fix-completion")


@pytest.mark.proves("A8", "A33", "K4")
def test_an_answer_for_another_specialist_is_an_invalid_response() -> None:
    stage = Stage([fails("a"), passes()], answers=None).run()

    answer(stage, valid(stage).replace("re-run test-runner", "re-run security"))

    assert len(stage.said("protocol-violation")) == 1
    assert not stage.said("revalidation-trigger")


@pytest.mark.proves("R8")
def test_a_repeated_answer_counts_once() -> None:
    stage = Stage([fails("a"), fails("b")], answers=None).run()
    text = valid(stage)
    answer(stage, text)
    stage.run()
    before, lines = stage.state, len(stage.messages)

    with pytest.raises(AnsweredAlready):
        answer(stage, text)

    assert (stage.state, len(stage.messages)) == (before, lines)
    assert len(stage.said("fix-completion")) == 1
    assert not stage.said("protocol-violation")


@pytest.mark.proves("R8", "K20")
def test_an_answer_that_is_kept_during_a_pause_is_kept_once() -> None:
    stage = Stage([fails("a"), passes()], answers=None).run()
    stage.apply(ev.BlockerSignalled(by="agent", text="no key"))
    kept = stage.completed(Fix(), 1, "test-runner")
    stage.apply(kept)

    with pytest.raises(Repeated, match="FIXDONE-101-1 is kept already"):
        stage.apply(kept)

    stage.decide("extend")
    stage.run()
    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("S13", "A8")
@pytest.mark.parametrize("decision", ["abort", "skip"])
def test_an_answer_after_the_end_is_recorded_and_changes_nothing(decision: str) -> None:
    stage = Stage([fails("a")], answers=None).run()
    late = stage.completed(Fix(), 1, "test-runner")
    stage.apply(ev.BlockerSignalled(by="agent", text="no key"))
    stage.decide(decision)
    before, lines = stage.state, len(stage.messages)
    stage.advance(3600)

    why = stage.refused(lambda: stage.apply(late))
    stage.apply(ev.EventRefused(refused="fix-completed", reason=why, artifacts=("digest-of-the-answer",)))

    assert "after workflow" in why
    assert (stage.state.model_copy(update={"last_at": before.last_at}), len(stage.messages)) == (
        before,
        lines,
    )
    assert stage.notes[-1] == f"refused: fix-completed: {why}"


@pytest.mark.proves("G8")
def test_a_declined_request_escalates_at_once_and_counts_no_iteration() -> None:
    stage = Stage([fails("a"), passes()], answers=None).run()
    before = stage.active.iteration

    answer(stage, "DECLINED test-is-wrong: it contradicts the specification")

    assert stage.escalation.reason is Reason.BLOCKER
    assert stage.escalation.detail == "agent declines, test-is-wrong: it contradicts the specification"
    assert (stage.active.iteration, len(stage.active.runs)) == (before, 1)
    stage.decide("extend")
    stage.run()
    answer(stage, valid(stage))
    stage.run()
    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("A33", "G8")
def test_an_answer_that_is_not_ready_signals_an_issue() -> None:
    stage = Stage([fails("a"), passes()], answers=None).run()

    answer(
        stage,
        valid(stage).replace("Yes - please re-run test-runner.", "No - the fixture is not mine to change"),
    )

    assert not stage.said("revalidation-trigger")
    assert not stage.said("fix-completion")
    assert stage.escalation.reason is Reason.BLOCKER
    assert stage.escalation.detail == "agent: not ready: the fixture is not mine to change"
    stage.decide("extend")
    stage.run()
    answer(stage, valid(stage))
    stage.run()
    assert stage.state.outcome is WorkflowOutcome.SUCCESS
    assert stage.ids.count("FIXDONE-101-1") == 1


@pytest.mark.proves("A33", "A71")
def test_an_answer_without_a_yes_or_no_triggers_nothing() -> None:
    stage = Stage([fails("a")], answers=None).run()

    answer(stage, valid(stage).replace("Yes - please re-run test-runner.", "perhaps"))

    assert len(stage.said("protocol-violation")) == 1
    assert not stage.said("revalidation-trigger")


@pytest.mark.proves("K35")
def test_done_with_nothing_changed_is_valid_and_counts_as_a_run() -> None:
    stage = Stage([fails("a"), passes()], answers=None).run()

    answer(stage, valid(stage).replace("- path/of/each/changed/file (or the one word none)", "none"))
    stage.run()

    (done,) = stage.said("fix-completion")
    assert isinstance(done.body, FixCompletion)
    assert done.body.files == ()
    assert "### Files Modified\nnone\n" in render_whole(done)
    assert stage.active.iteration == 2


@pytest.mark.proves("A32", "A85")
def test_an_agent_that_lies_about_its_files_is_noted_and_the_real_change_recorded() -> None:
    stage = Stage([fails("a"), passes()], answers=None).run()
    said = Answer("done", ("mended it",), ("src/never.py", "src/app.py"))
    differ = differences(said.files, ("src/app.py", "tests/test_app.py"))
    event = stage.completed(Fix(files=("src/app.py", "tests/test_app.py")), 1, "test-runner")
    completion = event.completion.model_copy(update=differ._asdict())

    stage.apply(event.model_copy(update={"completion": completion}))

    (done,) = stage.said("fix-completion")
    assert isinstance(done.body, FixCompletion)
    assert done.body.files == ("src/app.py", "tests/test_app.py")
    assert (done.body.unchanged, done.body.unnamed) == (("src/never.py",), ("tests/test_app.py",))
    assert done.summary.endswith("(2 files; its answer names others)")
    text = render_whole(done)
    assert "**Named But Not Changed**:\n- src/never.py\n" in text
    assert "**Changed But Not Named**:\n- tests/test_app.py\n" in text
    assert parse(text) == done


@pytest.mark.proves("A71", "S11")
def test_a_late_bad_answer_does_not_count_against_the_next_request() -> None:
    stage = Stage([fails("a"), fails("b")], answers=[BadAnswer(), Fix(), SILENT]).run()

    answer(stage, "done")

    assert len(stage.said("protocol-violation")) == 2
    assert not stage.said("escalation")
    assert ids.request_id(101, 2) == stage.said("fix-request")[-1].message_id
