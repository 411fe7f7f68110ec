"""S6, S7, S8 and S34: who is late, who is notified, and when a person is asked."""

from typing import Any

import pytest

from fixloop.protocol import events as ev
from fixloop.protocol.event import NotDue
from fixloop.protocol.messages import MAIN_AGENT, ORCHESTRATOR, USER, FixCompletion, Reason, TimeoutReminder
from fixloop.protocol.specialists import Status
from fixloop.protocol.state import Limits, OperationName, WorkflowOutcome
from tests.fixtures.script import SILENT, BadAnswer, Breaks, Fix, errs, fails, passes
from tests.fixtures.validation_stage import Answers, Stage

MINUTE = 60.0


def waiting(**further: Any) -> Stage:
    """The report is sent at 0; no answer comes by itself."""
    return Stage([fails("a")], answers=None, **further).run()


def reminders(stage: Stage) -> list[TimeoutReminder]:
    return [m.body for m in stage.said("timeout-reminder") if isinstance(m.body, TimeoutReminder)]


@pytest.mark.proves("A56", "A58", "A59", "G7")
def test_s6_one_reminder_follows_thirty_minutes_of_silence() -> None:
    stage = waiting()

    stage.advance_to(30 * MINUTE)
    assert not reminders(stage)
    stage.advance_to(30 * MINUTE + 1)

    (body,) = reminders(stage)
    assert body.operation == "main-agent-fix"
    assert (body.threshold_seconds, body.window_seconds) == (1800.0, 300.0)
    assert 1800.0 < body.elapsed_seconds <= 1801.0
    assert body.status is Status.AWAITING_FIX
    message = stage.messages[-1]
    assert message.message_id == "TIMEOUT-101-main-agent-fix-20260302T093000Z"
    assert (message.sender, message.recipient) == (ORCHESTRATOR, MAIN_AGENT)
    assert any(note.startswith("timeout: main-agent-fix") for note in stage.notes)


@pytest.mark.proves("A58", "A59", "S6")
def test_s6_a_deadline_acted_on_at_30_01_says_30_01() -> None:
    stage = waiting()
    stage.clock = 1801.0

    outcome = stage.apply(ev.DeadlineReached(name="main-agent-fix", due=1800.0))

    (body,) = [m.body for m in outcome.messages]
    assert isinstance(body, TimeoutReminder)
    assert body.elapsed_seconds == 1801.0
    assert outcome.deadlines[OperationName.FIX.reminder_deadline] == 1801.0 + 300.0


@pytest.mark.proves("A61", "A62", "A66", "B31")
def test_s6_five_more_minutes_escalate_to_the_user() -> None:
    stage = waiting().advance_to(35 * MINUTE)
    assert not stage.state.paused

    stage.advance_to(35 * MINUTE + 1)

    assert stage.state.paused
    assert stage.escalation.reason is Reason.TIMEOUT
    assert stage.escalation.reason.text == "Timeout exceeded"
    assert stage.escalation.flags == ("unresponsive",)
    assert stage.messages[-1].recipient == USER
    assert stage.messages[-1].status_before is Status.AWAITING_FIX
    stage.advance(100 * MINUTE)
    assert len(reminders(stage)) == 1
    assert len(stage.said("escalation")) == 1
    assert not stage.deadlines


@pytest.mark.proves("A56", "K6", "A89", "S6")
def test_s6_a_silent_fixer_command_is_reminded_too() -> None:
    stage = Stage([fails("a")], answers=[SILENT], fixer="command").run()

    stage.advance_to(35 * MINUTE)
    assert len(reminders(stage)) == 1
    assert not stage.state.paused
    stage.advance_to(35 * MINUTE + 1)

    assert stage.escalation.flags == ("unresponsive",)


@pytest.mark.proves("G7", "K34")
def test_a_deadline_is_due_only_after_its_instant() -> None:
    stage = waiting()
    stage.clock = 1800.0

    with pytest.raises(NotDue):
        stage.apply(ev.DeadlineReached(name="main-agent-fix", due=1800.0))
    stage.complete()
    stage.advance_to(3600.0)

    assert not reminders(stage)


@pytest.mark.proves("A64", "G7")
@pytest.mark.parametrize("seconds", [29 * MINUTE + 59, 30 * MINUTE])
def test_a_fix_in_time_is_never_reminded_of_afterwards(seconds: float) -> None:
    stage = waiting(limits=Limits(iteration_seconds=None)).advance_to(seconds)
    stage.script.runs["test-runner"] = [SILENT]

    stage.complete()
    stage.advance_to(60 * MINUTE)

    assert not reminders(stage)


@pytest.mark.proves("A63", "K6", "G8", "S7")
def test_s7_an_answer_after_the_reminder_cancels_the_escalation() -> None:
    stage = waiting()
    stage.script.runs["test-runner"] = [passes(takes_seconds=7 * MINUTE)]
    stage.advance_to(33 * MINUTE)

    stage.complete()
    trigger = stage.messages[-1]
    assert stage.deadlines == {"total-iteration": 63 * MINUTE}
    stage.run()

    assert trigger.message_id == "REVAL-101-test-runner-2"
    assert stage.clock == 40 * MINUTE
    assert stage.active.status is Status.COMPLETED
    assert stage.state.outcome is WorkflowOutcome.SUCCESS
    assert not stage.said("escalation")
    assert len(reminders(stage)) == 1


@pytest.mark.proves("A64", "R6", "K8", "S7")
def test_s7_the_timers_of_the_answered_reminder_do_nothing() -> None:
    stage = waiting().advance_to(33 * MINUTE)
    stage.complete()
    stage.clock = 35 * MINUTE + 1
    lines = len(stage.messages)

    for name in ("main-agent-fix", "main-agent-fix.escalation"):
        outcome = stage.apply(ev.DeadlineReached(name=name, due=35 * MINUTE))
        assert not outcome.messages
        assert f"deadline {name} no longer matters" in outcome.notes

    assert len(stage.messages) == lines
    assert not stage.state.paused


@pytest.mark.proves("A63", "G8", "K12", "S7")
def test_s7_a_signalled_issue_opens_its_own_escalation() -> None:
    stage = waiting().advance_to(33 * MINUTE)

    stage.apply(ev.BlockerSignalled(by="agent", text="the specification contradicts itself"))
    stage.advance_to(60 * MINUTE)

    assert len(stage.said("escalation")) == 1
    assert stage.escalation.reason is Reason.BLOCKER
    assert stage.escalation.reason.label == "Other"
    assert stage.escalation.detail == "agent: the specification contradicts itself"
    assert stage.state.paused


@pytest.mark.proves("G8")
def test_a_receipt_alone_answers_no_reminder() -> None:
    stage = waiting().advance_to(31 * MINUTE)

    stage.acknowledge()
    stage.advance_to(35 * MINUTE + 1)

    assert stage.escalation.reason is Reason.TIMEOUT
    assert stage.messages[-1].status_before is Status.FIXING


@pytest.mark.proves("R6", "A61", "K8")
def test_an_old_escalation_timer_does_not_affect_the_next_iteration() -> None:
    stage = waiting()
    stage.script.runs["test-runner"] = [fails("b")]
    stage.advance_to(33 * MINUTE).complete()
    stage.run()
    assert stage.active.status is Status.AWAITING_FIX
    stage.clock = 36 * MINUTE

    stage.apply(ev.DeadlineReached(name="main-agent-fix.escalation", due=2100.5))

    assert not stage.state.paused
    assert "main-agent-fix" in stage.deadlines


@pytest.mark.proves("R6", "A58")
@pytest.mark.parametrize("name", ["main-agent-fix", "total-iteration"])
def test_an_old_timer_of_the_same_name_does_not_affect_the_new_one(name: str) -> None:
    stage = waiting()
    stage.script.runs["test-runner"] = [fails("b")]
    stage.advance_to(20 * MINUTE).complete()
    stage.run()
    stage.clock = 31 * MINUTE
    before = dict(stage.deadlines)

    with pytest.raises(NotDue):
        stage.apply(ev.DeadlineReached(name=name, due=30 * MINUTE))

    assert stage.deadlines == before
    assert not stage.said("timeout-reminder")


@pytest.mark.proves("A57", "K6", "A89", "S8")
def test_s8_an_iteration_over_its_cap_escalates_at_once() -> None:
    stage = waiting()
    stage.script.runs["test-runner"] = [SILENT]
    stage.advance_to(20 * MINUTE).complete()
    stage.run()

    stage.advance_to(30 * MINUTE)
    assert not stage.state.paused
    stage.advance_to(30 * MINUTE + 1)

    assert stage.escalation.reason is Reason.TIMEOUT
    assert stage.escalation.flags == ()
    last = stage.messages[-1]
    assert (last.status_before, last.status_after) == (Status.RE_CHECKING, Status.ESCALATED)
    assert not reminders(stage)


@pytest.mark.proves("A56", "A59", "K6", "S8")
def test_s8_a_silent_first_validation_is_reminded_first() -> None:
    stage = Stage([SILENT]).run()

    stage.advance_to(30 * MINUTE + 1)
    assert stage.ids == ["TIMEOUT-101-specialist-validation-20260302T093000Z"]
    assert stage.messages[-1].recipient == "@test-runner-specialist"
    assert not stage.state.paused
    stage.advance_to(35 * MINUTE + 1)

    assert stage.escalation.reason is Reason.TIMEOUT
    assert stage.escalation.flags == ()
    assert stage.messages[-1].status_before is Status.IN_PROGRESS


@pytest.mark.proves("K6", "A56")
def test_a_late_recheck_is_reminded_before_the_longer_cap() -> None:
    limits = Limits(iteration_seconds=3 * 3600.0)
    stage = Stage([fails("a"), SILENT], limits=limits).run()

    stage.advance_to(30 * MINUTE + 1)
    assert [body.operation for body in reminders(stage)] == ["re-validation"]
    stage.advance_to(35 * MINUTE + 1)

    assert stage.escalation.reason is Reason.TIMEOUT


@pytest.mark.proves("K6", "B61")
def test_a_limit_of_none_is_no_limit() -> None:
    limits = Limits(validation_seconds=None, fix_seconds=None, iteration_seconds=None)
    stage = waiting(limits=limits)

    stage.advance_to(1000 * MINUTE)

    assert not stage.deadlines
    assert len(stage.messages) == 2


@pytest.mark.proves("K6", "K12", "B31")
def test_without_a_fix_limit_the_cap_alone_escalates() -> None:
    stage = waiting(limits=Limits(fix_seconds=None)).advance_to(30 * MINUTE + 1)

    assert stage.escalation.reason is Reason.TIMEOUT
    assert stage.escalation.flags == ("unresponsive",)
    assert not reminders(stage)


@pytest.mark.proves("R6", "K6")
def test_a_cap_that_fires_without_being_set_changes_nothing() -> None:
    stage = waiting(limits=Limits(iteration_seconds=None))
    stage.clock = 31 * MINUTE

    outcome = stage.apply(ev.DeadlineReached(name="total-iteration", due=30 * MINUTE))

    assert outcome.notes == ("deadline total-iteration no longer matters",)


@pytest.mark.proves("A61", "A72", "A89")
def test_a_second_attempt_after_a_reminder_ends_without_another_reminder() -> None:
    stage = Stage([errs(takes_seconds=31 * MINUTE), SILENT]).run()

    stage.advance_to(31 * MINUTE + 2 + 30 * MINUTE + 1)
    assert len(reminders(stage)) == 1
    assert not stage.state.paused
    stage.advance(5 * MINUTE)

    assert stage.escalation.reason is Reason.TIMEOUT
    assert len(reminders(stage)) == 1


@pytest.mark.proves("K34", "K6")
def test_a_fix_that_waits_in_the_queue_is_not_late() -> None:
    stage = Stage([fails("a"), passes()], fixer="command")
    while stage.pending and stage.pending[0].step != "fix":
        stage.step()

    stage.advance_to(300 * MINUTE)
    assert not stage.state.paused
    assert not reminders(stage)
    stage.script.answers = [Fix(takes_seconds=29 * MINUTE)]
    stage.run()

    assert stage.state.outcome is WorkflowOutcome.SUCCESS
    done = stage.message("FIXDONE-101-1").body
    assert isinstance(done, FixCompletion)
    assert done.duration_seconds == 329 * MINUTE


@pytest.mark.proves("K34", "K6", "G1")
def test_the_iteration_of_a_command_begins_when_it_starts() -> None:
    script = [fails("a"), passes(takes_seconds=10 * MINUTE)]
    stage = Stage(script, answers=[Fix(takes_seconds=10 * MINUTE)], fixer="command")
    while stage.pending[0].step != "fix":
        stage.step()

    stage.advance(29 * MINUTE)
    stage.run()

    assert not stage.said("escalation")
    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("K6", "A62")
def test_the_cap_waits_while_a_reminder_is_open() -> None:
    answers: Answers = [Breaks(takes_seconds=30.5 * MINUTE), SILENT]
    limits = Limits(iteration_seconds=31 * MINUTE)
    stage = Stage([fails("a")], answers=answers, fixer="command", limits=limits).run()

    stage.advance_to(35 * MINUTE)
    assert not stage.state.paused
    stage.advance_to(35 * MINUTE + 1)

    assert stage.escalation.flags == ("unresponsive",)


@pytest.mark.proves("A61", "A73")
def test_a_fixer_that_is_started_again_is_reminded_of_once() -> None:
    answers: Answers = [BadAnswer(takes_seconds=10 * MINUTE), Breaks(takes_seconds=10 * MINUTE), SILENT]
    limits = Limits(iteration_seconds=None)

    stage = Stage([fails("a")], answers=answers, fixer="command", limits=limits).run()
    stage.advance_to(120 * MINUTE)

    assert len(reminders(stage)) == 1
    assert stage.escalation.reason is Reason.TIMEOUT


@pytest.mark.proves("K34", "B33", "S34")
def test_s34_nothing_is_late_because_the_engine_was_away() -> None:
    stage = waiting()
    stage.advance_to(10 * MINUTE).away(14 * 3600.0).advance(5 * MINUTE)

    stage.complete()
    stage.run()

    assert not reminders(stage)
    assert not stage.said("escalation")
    done = stage.message("FIXDONE-101-1")
    assert isinstance(done.body, FixCompletion)
    assert done.body.duration_seconds == 15 * MINUTE
    assert (done.at - stage.messages[1].at).total_seconds() == 14 * 3600 + 15 * MINUTE
    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("K34", "A84")
def test_timestamps_never_go_back() -> None:
    stage = waiting()
    first = stage.messages[-1].at
    stage.away(-3600.0)

    stage.complete()

    assert stage.messages[-1].at == first
