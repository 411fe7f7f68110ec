"""Every limit, window and number of attempts is a setting, and None switches one off (K6, K29)."""

from typing import Any

import pytest

from fixloop.protocol import events as ev
from fixloop.protocol.event import Moment, NotDue
from fixloop.protocol.messages import ErrorNotification, Reason, TimeoutReminder
from fixloop.protocol.specialists import Status
from fixloop.protocol.state import Limits, WorkflowOutcome
from fixloop.protocol.validation import decide
from tests.fixtures.script import SILENT, BadAnswer, Breaks, Fix, errs, fails, passes
from tests.fixtures.validation_stage import Runs, Stage

MINUTE = 60.0


def waiting(**limits: Any) -> Stage:
    """The report is sent at 0; no answer comes by itself."""
    return Stage([fails("a")], answers=None, limits=Limits(**limits)).run()


def reminders(stage: Stage) -> list[TimeoutReminder]:
    return [m.body for m in stage.said("timeout-reminder") if isinstance(m.body, TimeoutReminder)]


@pytest.mark.proves("K29", "B61", "A89")
def test_the_reminder_may_precede_the_limit_and_the_escalation_waits_for_both() -> None:
    stage = waiting(reminder_seconds=20 * MINUTE)

    stage.advance_to(20 * MINUTE + 1)
    (body,) = reminders(stage)
    assert (body.threshold_seconds, body.window_seconds) == (30 * MINUTE, 10 * MINUTE - 1)
    assert any(note.startswith("reminder: main-agent-fix of test-runner") for note in stage.notes)
    stage.advance_to(30 * MINUTE)
    assert not stage.state.paused
    stage.advance_to(30 * MINUTE + 1)

    assert stage.escalation.reason is Reason.TIMEOUT
    assert len(reminders(stage)) == 1


@pytest.mark.proves("K29", "K34")
def test_the_window_after_an_early_reminder_is_never_cut_short() -> None:
    stage = waiting(reminder_seconds=28 * MINUTE)

    stage.advance_to(33 * MINUTE)
    assert not stage.state.paused
    stage.advance_to(33 * MINUTE + 1)

    assert stage.state.paused


@pytest.mark.proves("K29")
def test_a_reminder_later_than_the_limit_is_sent_at_the_limit() -> None:
    stage = waiting(reminder_seconds=90 * MINUTE).advance_to(30 * MINUTE + 1)

    assert len(reminders(stage)) == 1


@pytest.mark.proves("K29", "A56")
def test_a_running_check_is_reminded_of_early_too() -> None:
    stage = Stage([SILENT], limits=Limits(reminder_seconds=25 * MINUTE)).run()

    stage.advance_to(25 * MINUTE + 1)
    assert len(reminders(stage)) == 1
    stage.advance_to(30 * MINUTE + 1)

    assert stage.escalation.reason is Reason.TIMEOUT


@pytest.mark.proves("K6", "K29", "A57")
def test_an_early_reminder_does_not_hold_up_the_cap() -> None:
    script: Runs = [fails("a"), SILENT]
    limits = Limits(reminder_seconds=25 * MINUTE)
    stage = Stage(script, answers=[Fix(takes_seconds=4 * MINUTE)], limits=limits).run()

    stage.advance_to(29 * MINUTE + 1)
    assert [body.operation for body in reminders(stage)] == ["re-validation"]
    stage.advance_to(30 * MINUTE + 1)

    assert stage.escalation.detail.startswith("the iteration took")


@pytest.mark.proves("K6", "B61")
def test_without_a_window_only_a_reminder_follows() -> None:
    stage = waiting(reminder_window_seconds=None)

    stage.advance_to(500 * MINUTE)

    (body,) = reminders(stage)
    assert body.window_seconds is None
    assert not stage.state.paused
    assert not stage.deadlines
    stage.complete()
    assert "total-iteration" in stage.deadlines


@pytest.mark.proves("K6")
@pytest.mark.parametrize(
    ("switched_off", "silent"),
    [("validation_seconds", [SILENT]), ("revalidation_seconds", [fails("a"), SILENT])],
)
def test_each_run_has_its_own_limit_to_switch_off(switched_off: str, silent: list[Any]) -> None:
    limits = Limits(iteration_seconds=None).model_copy(update={switched_off: None})
    stage = Stage(silent, limits=limits).run()

    stage.advance(500 * MINUTE)

    assert not stage.deadlines
    assert not reminders(stage)


@pytest.mark.proves("A56", "B61")
def test_the_limits_of_first_and_later_runs_may_differ() -> None:
    limits = Limits(validation_seconds=600.0, revalidation_seconds=1200.0, iteration_seconds=None)
    stage = Stage([fails("a", takes_seconds=500.0), SILENT], limits=limits)
    first = stage.pending[0].limit_seconds
    stage.run()

    operation = stage.state.operation
    assert operation is not None
    assert (first, operation.limit_seconds) == (600.0, 1200.0)


@pytest.mark.proves("K7", "K6")
def test_without_a_deadlock_window_only_the_number_of_runs_ends_a_loop() -> None:
    stage = Stage([fails("a")] * 5, limits=Limits(deadlock_window=None)).run()

    assert stage.escalation.reason is Reason.MAX_ITERATIONS


@pytest.mark.proves("K7")
@pytest.mark.parametrize("window", [1, 2, 4])
def test_the_deadlock_window_can_be_configured(window: int) -> None:
    stage = Stage([fails("a")] * 5, limits=Limits(deadlock_window=window)).run()

    assert stage.escalation.reason is Reason.DEADLOCK
    assert len(stage.active.runs) == window


@pytest.mark.proves("K5")
def test_the_numbers_of_attempts_can_be_configured() -> None:
    limits = Limits(specialist_attempts=3, fix_attempts=1, answer_attempts=3)

    errors = Stage([errs(), errs(), errs()], limits=limits).run()
    broken = Stage([fails("a")], answers=[Breaks()], fixer="command", limits=limits).run()
    unread = Stage([fails("a")], answers=[BadAnswer()] * 3, limits=limits).run()

    assert [ticket.attempt for ticket in errors.executed] == [1, 2, 3]
    assert broken.escalation.reason is Reason.UNRESPONSIVE
    assert unread.escalation.reason is Reason.INVALID_RESPONSE
    assert len(unread.said("protocol-violation")) == 2


@pytest.mark.proves("K20")
def test_the_default_of_extend_can_be_configured() -> None:
    limits = Limits(extra_iterations=1, extend_minutes=7.0)
    exhausted = Stage([fails("a"), fails("b")], max_iterations=2, limits=limits).run()
    late = Stage([fails("a")], answers=None, limits=limits).run().advance_to(35 * MINUTE + 1)

    exhausted.decide("extend")
    late.decide("extend")

    assert exhausted.active.max_iterations == 3
    assert late.deadlines["main-agent-fix"] == late.clock + 7 * MINUTE


@pytest.mark.proves("K9")
def test_the_fix_request_may_be_a_separate_message() -> None:
    stage = Stage([fails("a"), fails("b"), passes()], bundle_fix_request=False).run()

    assert stage.ids[:4] == [
        "DETECT-101-test-runner-1",
        "VFR-101-test-runner-1",
        "FIXREQ-101-1",
        "FIXDONE-101-1",
    ]
    assert len(stage.messages) == 4 * 3 - 2 + 2
    assert all(message.attached is None for message in stage.messages)
    request = stage.message("FIXREQ-101-1")
    assert (request.status_before, request.status_after) == (Status.AWAITING_FIX, Status.AWAITING_FIX)
    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("A73", "A76", "A74", "A75")
def test_a_silent_agent_is_an_error_of_type_4_whose_recovery_was_the_reminder() -> None:
    stage = waiting().advance_to(35 * MINUTE + 1)

    error, escalation = stage.messages[-2:]
    assert isinstance(error.body, ErrorNotification)
    assert error.message_id.startswith("ERR-101-unresponsive-")
    assert not error.body.recovered
    assert error.body.recovery == ("a timeout reminder was sent after 30:00",)
    assert error.body.context == "main-agent-fix of test-runner, run 1"
    assert escalation.message_id.startswith("ESC-101-test-runner-")


@pytest.mark.proves("A58", "A91")
def test_a_timeout_is_logged_with_operation_elapsed_time_and_expected_completion() -> None:
    stage = waiting().advance_to(30 * MINUTE + 1)

    (note,) = [note for note in stage.notes if note.startswith("timeout")]
    assert note == (
        "timeout: main-agent-fix of test-runner has taken 30:00 of 30:00;"
        " its completion was expected by 2026-03-02 09:30:00"
    )


@pytest.mark.proves("G8", "A63")
def test_an_invalid_answer_does_not_answer_a_reminder() -> None:
    stage = waiting().advance_to(31 * MINUTE)

    stage.apply(ev.AnswerRejected(specialist="test-runner", iteration=1, violations=("no Files Modified",)))
    stage.advance_to(35 * MINUTE + 1)

    assert stage.escalation.reason is Reason.TIMEOUT
    assert len(stage.said("protocol-violation")) == 1


@pytest.mark.proves("A62", "R6")
def test_a_reminder_of_an_older_version_is_followed_by_the_window() -> None:
    stage = waiting().advance_to(30 * MINUTE + 1)
    operation = stage.state.operation
    assert operation is not None
    assert operation.reminded_clock is not None
    before = stage.state.model_copy(
        update={"operation": operation.model_copy(update={"escalates_clock": None})}
    )
    due = operation.reminded_clock + 5 * MINUTE
    event = ev.DeadlineReached(name="main-agent-fix.escalation", due=due)

    with pytest.raises(NotDue):
        decide(before, event, Moment(stage.now.at, due))
    assert decide(before, event, Moment(stage.now.at, due + 0.1)).state.paused
