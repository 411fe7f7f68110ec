"""The golden scenarios through real workers and a real Redis: each ends as `decide` alone ends it."""

from collections.abc import Iterator
from typing import Any

import pytest

from fixloop.errors import RefusedError
from fixloop.protocol.events import DecisionMade, FixCompleted, ManualFixDone
from fixloop.protocol.messages import Decision, Escalation, Reason
from fixloop.protocol.state import Completion
from fixloop.testing.rehearsal import Answer, Story, undisturbed
from tests.fixtures.deployment import Deployment, deployed

pytestmark = pytest.mark.slow

SHRINKING = "abcde abcd abc ab a -"
BACK_END = ("unit-test", "integration-test", "test-runner", "code-quality", "security")


@pytest.fixture(scope="module")
def deployment(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployed(redis_url, tmp_path_factory.mktemp("workers")) as running:
        yield running


@pytest.mark.proves("A9", "G16", "S1")
def test_s1_a_first_run_passes(deployment: Deployment) -> None:
    story = played(deployment, "-", issue=1)

    assert [line.message_id for line in story.lines] == [
        "REVALRES-1-test-runner-1",
        "SUCCESS-1-test-runner-1",
    ]
    assert [after for _, _, after in story.changes] == ["IN_PROGRESS", "PASS", "COMPLETED"]
    assert story.outcome == "success"


@pytest.mark.proves("S2", "K9")
def test_s2_one_retry_sends_six_messages(deployment: Deployment) -> None:
    story = played(deployment, "a -", issue=2)

    assert [(line.message_id, line.before, line.after) for line in story.lines] == [
        ("DETECT-2-test-runner-1", "IN_PROGRESS", "FAIL"),
        ("VFR-2-test-runner-1", "FAIL", "AWAITING_FIX"),
        ("FIXDONE-2-1", "FIXING", "FIXING"),
        ("REVAL-2-test-runner-2", "FIXING", "RE_CHECKING"),
        ("REVALRES-2-test-runner-2", "RE_CHECKING", "PASS"),
        ("SUCCESS-2-test-runner-2", "PASS", "COMPLETED"),
    ]
    assert story.lines[1].attached == "FIXREQ-2-1"


@pytest.mark.proves("A82", "K2", "K9", "S3")
def test_s3_feature_47_sends_ten_messages(deployment: Deployment) -> None:
    story = played(deployment, "scripted 3 1 0", issue=47)

    counts = story.counts
    assert counts.total_messages == 10
    assert (counts.failure_reports, counts.fix_requests, counts.fix_completions) == (2, 2, 2)
    assert (counts.revalidation_triggers, counts.revalidation_results) == (2, 2)
    assert counts.success_notifications == 1
    assert [line.message_id for line in story.lines[3:6]] == [
        "REVAL-47-test-runner-2",
        "REVALRES-47-test-runner-2",
        "VFR-47-test-runner-2",
    ]
    assert story.lines[-1].run == "3/5"


@pytest.mark.proves("K1", "B44", "A14", "S4")
def test_s4_the_fifth_failure_escalates(deployment: Deployment) -> None:
    story = played(deployment, SHRINKING, issue=4)

    assert len(story.lines) == 18
    assert story.lines[-1].message_id == "ESC-4-test-runner-{ts}"
    assert story.paused
    ids = [line.message_id for line in story.lines]
    assert "VFR-4-test-runner-5" not in ids
    assert "REVAL-4-test-runner-6" not in ids


@pytest.mark.proves("K20", "S12")
def test_s12_extend_adds_runs(deployment: Deployment) -> None:
    extended = Answer("ESC", DecisionMade(decision=Decision.EXTEND, iterations=3))

    story = played(deployment, "abcde abcd abc ab a f -", extended, issue=12)

    assert story.lines[-1].message_id == "SUCCESS-12-test-runner-7"
    assert story.lines[-1].run == "7/8"
    assert ("test-runner", "ESCALATED", "AWAITING_FIX") in story.changes


@pytest.mark.proves("K20", "S13")
def test_s13_skip_continues_with_known_issues(deployment: Deployment) -> None:
    skipped = Answer("ESC", DecisionMade(decision=Decision.SKIP))
    script = f"test-runner: {SHRINKING}; code-quality: -"

    story = played(deployment, script, skipped, issue=131, specialists=("test-runner", "code-quality"))

    assert story.outcome == "skipped"
    assert story.lines[-1].message_id == "SUCCESS-131-code-quality-1"


@pytest.mark.proves("K20", "S13")
def test_s13_abort_ends_the_workflow(deployment: Deployment) -> None:
    aborted = Answer("ESC", DecisionMade(decision=Decision.ABORT))
    script = f"test-runner: {SHRINKING}; code-quality: -"

    story = played(deployment, script, aborted, issue=132, specialists=("test-runner", "code-quality"))

    assert story.outcome == "aborted"
    assert story.statuses[2][:2] == ("test-runner", "ESCALATED")
    assert not any(name == "code-quality" for name, _, _ in story.changes)


@pytest.mark.proves("K20", "S14")
def test_s14_a_manual_fix_passes(deployment: Deployment) -> None:
    story = played(deployment, SHRINKING, *by_hand(), issue=141)

    assert story.lines[-1].message_id == "SUCCESS-141-test-runner-6"
    assert story.lines[-1].run == "6/6"


@pytest.mark.proves("K20", "S14")
def test_s14_a_manual_fix_that_fails_escalates_at_once(deployment: Deployment) -> None:
    story = played(deployment, "abcde abcd abc ab a f", *by_hand(), issue=142)

    assert [line.message_id for line in story.lines[-2:]] == [
        "REVALRES-142-test-runner-6",
        "ESC-142-test-runner-{ts}",
    ]
    assert story.paused


@pytest.mark.proves("K7", "S5")
def test_s5_a_deadlock_escalates(deployment: Deployment) -> None:
    story = played(deployment, "ab", issue=5)

    assert len(story.lines) == 10
    assert last_escalation(deployment, 5).reason is Reason.DEADLOCK


@pytest.mark.proves("A69", "R8")
def test_a_person_is_notified_once_of_an_escalation(deployment: Deployment) -> None:
    played(deployment, "ab", issue=69, notify=True)

    assert executions(deployment, 69, "notify") == 1


@pytest.mark.proves("A72", "A75", "K5", "S9")
def test_s9_a_specialist_recovers_at_its_second_attempt(deployment: Deployment) -> None:
    story = played(deployment, "!a -", issue=91)

    ids = [line.message_id for line in story.lines]
    assert "ERR-91-specialist-failure-{ts}" in ids
    assert "DETECT-91-test-runner-1" in ids
    assert executions(deployment, 91, "validate") == 2


@pytest.mark.proves("A72", "A68", "K5", "S9")
def test_s9_a_specialist_that_fails_twice_escalates(deployment: Deployment) -> None:
    story = played(deployment, "!", issue=92)

    assert [line.message_id for line in story.lines] == [
        "ERR-92-specialist-failure-{ts}",
        "ESC-92-test-runner-{ts}",
    ]
    assert executions(deployment, 92, "validate") == 2
    error = deployment.messages(workflow(92))[0].body
    assert error.kind == "error-notification"
    assert "ScriptedError" in error.stack_trace
    assert last_escalation(deployment, 92).reason is Reason.SPECIALIST_ERROR


@pytest.mark.proves("A70", "K5", "S10")
def test_s10_a_fixer_that_cannot_be_started_escalates(deployment: Deployment) -> None:
    story = played(deployment, "a -; fix: gone", issue=101)

    assert executions(deployment, 101, "fix") == 3
    assert [line.message_id for line in story.lines[-2:]] == [
        "ERR-101-communication-{ts}",
        "ESC-101-test-runner-{ts}",
    ]
    assert last_escalation(deployment, 101).reason is Reason.COMMUNICATION_ERROR


@pytest.mark.proves("A70", "A75", "K5", "S10")
def test_s10_a_third_attempt_succeeds(deployment: Deployment) -> None:
    story = played(deployment, "a -; fix: gone gone ok", issue=102)

    assert executions(deployment, 102, "fix") == 3
    assert story.outcome == "success"
    assert sum(line.message_id.startswith("VFR-") for line in story.lines) == 1


@pytest.mark.proves("A73", "K5")
def test_a_fixer_failing_three_times_is_unresponsive(deployment: Deployment) -> None:
    played(deployment, "a -; fix: fail", issue=103)

    assert executions(deployment, 103, "fix") == 3
    assert last_escalation(deployment, 103).reason is Reason.UNRESPONSIVE


@pytest.mark.proves("A71", "G2", "S11")
def test_s11_a_bad_answer_is_asked_for_again(deployment: Deployment) -> None:
    story = played(deployment, "a -; fix: bad ok", issue=111)

    assert any(line.message_id.startswith("PVN-") for line in story.lines)
    assert story.outcome == "success"


@pytest.mark.proves("A71", "G2", "K27", "S11")
def test_s11_a_second_bad_answer_escalates(deployment: Deployment) -> None:
    story = played(deployment, "a -; fix: bad bad", issue=112)

    assert sum(line.message_id.startswith("PVN-") for line in story.lines) == 1
    assert last_escalation(deployment, 112).reason is Reason.INVALID_RESPONSE


@pytest.mark.proves("A8", "A71", "S11")
def test_s11_a_completion_of_another_request_is_an_invalid_response(deployment: Deployment) -> None:
    wrong, right = Answer("VFR", fix_of(3)), Answer("PVN", fix_of(1))

    story = played(deployment, "a -", wrong, right, issue=113, fixer="outside")

    assert story.outcome == "success"
    assert story.lines[-1].run == "2/5"


@pytest.mark.proves("K20", "A69", "S12")
def test_s12_a_second_decision_is_refused_and_reported(deployment: Deployment) -> None:
    extended = Answer("ESC", DecisionMade(decision=Decision.EXTEND, iterations=1))
    played(deployment, "abcde abcd abc ab a -", extended, issue=121)

    with pytest.raises(RefusedError):
        deployment.engine.apply(workflow(121), DecisionMade(decision=Decision.SKIP), operation="second")

    assert [e["refused"] for e in deployment.events(workflow(121)) if e["kind"] == "event-refused"] == [
        "decision-made"
    ]


@pytest.mark.proves("K20", "A8", "S13")
def test_s13_a_fix_after_an_abort_changes_nothing(deployment: Deployment) -> None:
    aborted = Answer("ESC", DecisionMade(decision=Decision.ABORT))
    before = played(deployment, SHRINKING, aborted, issue=133)

    with pytest.raises(RefusedError):
        deployment.engine.apply(workflow(133), fix_of(5), operation="late")

    assert deployment.story(workflow(133)) == before


@pytest.mark.proves("K35")
def test_a_fixer_that_lies_ends_in_a_deadlock(deployment: Deployment) -> None:
    story = played(deployment, "a; fix: lie", issue=35)

    assert last_escalation(deployment, 35).reason is Reason.DEADLOCK
    assert story.tree == "tree-0"


@pytest.mark.proves("S16", "U2", "K4", "K28")
def test_s16_the_back_end_pipeline_passes(deployment: Deployment) -> None:
    script = "test-runner: abc a -; security: a -"

    story = played(deployment, script, issue=16, specialists=BACK_END)

    assert len(story.lines) == 22
    assert [line.attached for line in story.lines].count("FIXREQ-16-1") == 2
    assert [iteration for _, _, iteration in story.statuses] == [1, 1, 3, 1, 2, 0]
    begun = [name for name, before, _ in story.changes if before == "PENDING"]
    assert begun == list(BACK_END)
    confirmed = {
        run.ticket.split(".")[1] for run in deployment.executions(workflow(16)) if run.step == "confirm"
    }
    assert confirmed == set(BACK_END) - {"security"}


@pytest.mark.proves("K37", "S31")
def test_s31_a_later_fix_that_breaks_an_earlier_phase_is_caught(deployment: Deployment) -> None:
    script = "unit-test: - a -; test-runner: abc a -; security: a -"

    story = played(deployment, script, issue=31, specialists=BACK_END)

    ids = [line.message_id for line in story.lines]
    assert ids[22:] == [
        "REVAL-31-unit-test-2",
        "REVALRES-31-unit-test-2",
        "VFR-31-unit-test-2",
        "FIXDONE-31-2",
        "REVAL-31-unit-test-3",
        "REVALRES-31-unit-test-3",
        "SUCCESS-31-unit-test-3",
    ]
    state = deployment.state(workflow(31))
    assert {entry.passed_tree for entry in state.specialists if entry.applicable} == {state.tree}


@pytest.mark.proves("R8")
def test_a_manual_fix_replaces_the_running_fixer(deployment: Deployment) -> None:
    started = deployment.begin("a -; fix: ok~30", issue=81)
    deployment.until(lambda: executions(deployment, 81, "fix") == 1, about=started.workflow)
    manual = Completion(iteration=1, by="ann", fixes=("by hand",), files=("a.py",), tip="c", tree="t")

    deployment.engine.apply(
        started.workflow, FixCompleted(specialist="test-runner", completion=manual), operation="fix"
    )

    deployment.finished(started.workflow)
    assert deployment.state(started.workflow).tree == "t"
    assert executions(deployment, 81, "fix") == 1


def played(deployment: Deployment, script: str, *answers: Answer, **further: Any) -> Story:
    """The story of a workflow through the workers; it has to be the undisturbed one."""
    started = deployment.begin(script, **further)
    deployment.answer(started.workflow, answers)
    deployment.finished(started.workflow)
    story = deployment.story(started.workflow)
    assert story == undisturbed(started, answers)
    return story


def by_hand() -> tuple[Answer, Answer]:
    """A person takes the fix over."""
    done = ManualFixDone(
        by="ann", summary="by hand", files=("a.py",), tip="commit-by-hand", tree="tree-by-hand"
    )
    return Answer("ESC", DecisionMade(decision=Decision.MANUAL_FIX)), Answer("ESC", done)


def fix_of(iteration: int) -> FixCompleted:
    """A completion that answers the request of this run."""
    completion = Completion(
        iteration=iteration, by="ann", fixes=("by hand",), files=("a.py",), tip="c", tree="t"
    )
    return FixCompleted(specialist="test-runner", completion=completion)


def workflow(issue: int) -> str:
    return f"be9c4a11-{issue}-1"


def executions(deployment: Deployment, issue: int, step: str) -> int:
    return sum(run.step == step for run in deployment.executions(f"{workflow(issue)}."))


def last_escalation(deployment: Deployment, issue: int) -> Escalation:
    body = deployment.messages(workflow(issue))[-1].body
    assert isinstance(body, Escalation)
    return body
