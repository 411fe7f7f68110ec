"""A person's own pause: nothing starts, nothing is sent, clocks stop, and then it continues where it was."""

from collections.abc import Callable

import pytest

from fixloop.protocol import events as ev
from fixloop.protocol.event import NotDue
from fixloop.protocol.messages import FixCompletion, Reason, Success
from fixloop.protocol.specialists import Status
from fixloop.protocol.state import Limits, WorkflowOutcome
from tests.fixtures.script import SILENT, BadAnswer, Fix, errs, fails, passes
from tests.fixtures.validation_stage import Stage

MINUTE = 60.0


def waiting(**further: object) -> Stage:
    """The report is sent at 0; no answer comes by itself."""
    return Stage([fails("a")], answers=None, **further).run()  # type: ignore[arg-type]


@pytest.mark.proves("A14", "K21")
def test_a_pause_is_no_escalation() -> None:
    stage = waiting()

    stage.pause(reason="the machine is needed")

    assert stage.state.held is not None
    assert (stage.state.held.by, stage.state.held.reason) == ("ann", "the machine is needed")
    assert not stage.state.paused
    assert stage.state.escalation is None
    assert stage.active.status is Status.AWAITING_FIX
    assert stage.state.owner == "person"
    assert "paused by ann the machine is needed" in stage.notes


@pytest.mark.proves("A14", "A10")
def test_a_result_that_comes_while_paused_is_kept_and_nothing_is_sent() -> None:
    stage = Stage([fails("a")], answers=None)
    stage.pause()

    stage.step()

    assert not stage.messages
    assert stage.path() == [Status.PENDING, Status.IN_PROGRESS]
    assert "run-finished arrived while paused and is kept" in stage.notes
    stage.go_on()
    assert stage.path()[-1] is Status.FAIL
    stage.run()
    assert stage.ids == ["DETECT-101-test-runner-1", "VFR-101-test-runner-1"]


@pytest.mark.proves("A14", "B11")
def test_a_fix_that_comes_while_paused_triggers_nothing_until_it_continues() -> None:
    stage = waiting()
    stage.pause()

    stage.complete(Fix(tree="tree-kept"))
    assert "FIXDONE-101-1" not in stage.ids
    assert stage.active.status is Status.AWAITING_FIX
    stage.go_on()

    assert stage.ids[-2:] == ["FIXDONE-101-1", "REVAL-101-test-runner-2"]
    assert stage.state.tree == "tree-kept"
    stage.run()
    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("A14", "K34", "A64")
def test_every_clock_of_a_paused_workflow_stops() -> None:
    stage = waiting().advance_to(20 * MINUTE)

    stage.pause()
    stage.advance(500 * MINUTE)
    assert not stage.said("timeout-reminder")
    stage.go_on()
    stage.advance(10 * MINUTE)
    assert not stage.said("timeout-reminder")
    stage.advance(1.0)

    (reminder,) = stage.said("timeout-reminder")
    assert reminder.body.kind == "timeout-reminder"
    assert 1800.0 < reminder.body.elapsed_seconds <= 1801.0
    assert "continued by ann after 500:00" in stage.notes
    stage.advance(5 * MINUTE)
    assert stage.escalation.reason is Reason.TIMEOUT


@pytest.mark.proves("K34", "A62")
def test_the_window_after_a_reminder_stops_during_a_pause_too() -> None:
    stage = waiting().advance_to(32 * MINUTE)
    stage.pause()
    stage.advance(60 * MINUTE)
    stage.go_on()

    stage.advance(3 * MINUTE)
    assert not stage.state.paused
    stage.advance(1.0)

    assert stage.escalation.flags == ("unresponsive",)


@pytest.mark.proves("K34", "A57", "K6")
def test_the_cap_on_an_iteration_stops_during_a_pause_too() -> None:
    limits = Limits(fix_seconds=None)
    stage = waiting(limits=limits).advance_to(20 * MINUTE)
    stage.pause()
    stage.advance(60 * MINUTE)
    stage.go_on()

    stage.advance(10 * MINUTE)
    assert not stage.state.paused
    stage.advance(1.0)

    assert stage.escalation.detail == "the iteration took 1800 s in all"


@pytest.mark.proves("K34", "B33", "B40")
def test_durations_do_not_include_pauses() -> None:
    stage = waiting().advance_to(10 * MINUTE)
    stage.pause()
    stage.advance(60 * MINUTE)
    stage.go_on()
    stage.advance(2 * MINUTE)

    stage.complete()
    stage.run()

    done, success = stage.message("FIXDONE-101-1").body, stage.message("SUCCESS-101-test-runner-2").body
    assert isinstance(done, FixCompletion)
    assert isinstance(success, Success)
    assert done.duration_seconds == success.total_seconds == 12 * MINUTE


@pytest.mark.proves("A14", "K34")
def test_the_limit_of_a_running_check_is_postponed_by_the_pause() -> None:
    stage = Stage([SILENT]).run().advance_to(20 * MINUTE)
    stage.pause()
    stage.advance(60 * MINUTE)
    stage.go_on()

    assert stage.deadlines == {"specialist-validation": 90 * MINUTE}
    stage.advance(10 * MINUTE + 1)

    (reminder,) = stage.said("timeout-reminder")
    assert reminder.body.kind == "timeout-reminder"
    assert 1800.0 < reminder.body.elapsed_seconds <= 1801.0


@pytest.mark.proves("R6", "A14")
@pytest.mark.parametrize("name", ["main-agent-fix", "total-iteration"])
def test_a_deadline_is_not_due_while_paused(name: str) -> None:
    stage = waiting()
    stage.pause()
    stage.clock = 40 * MINUTE

    with pytest.raises(NotDue, match="stands still"):
        stage.apply(ev.DeadlineReached(name=name, due=30 * MINUTE))


@pytest.mark.proves("A14")
def test_pause_and_continue_can_be_repeated() -> None:
    stage = waiting()
    stage.pause(by="ann")
    held = stage.state.held

    stage.pause(by="bob")
    assert stage.state.held == held
    stage.go_on()
    before = stage.state
    stage.go_on()

    assert stage.state == before.model_copy(update={"last_at": stage.state.last_at})
    assert stage.state.held is None


@pytest.mark.proves("A14", "K20")
@pytest.mark.parametrize("decision", ["extend", "skip", "manual-fix", "abort"])
def test_a_paused_escalation_is_decided_after_the_pause(decision: str) -> None:
    stage = Stage([fails("a")] * 3).run()
    stage.pause()

    assert "`fixloop continue 101` first" in stage.refused(lambda: stage.decide(decision))
    stage.go_on()
    stage.decide(decision)

    assert len(stage.said("escalation")) == 1


@pytest.mark.proves("A8", "A14", "R8")
def test_during_a_pause_an_invalid_event_is_refused_at_once() -> None:
    stage = waiting()
    stage.pause()
    stage.complete(Fix(tree="tree-first"))

    refusal = stage.refused(lambda: stage.complete(Fix(tree="tree-second")))

    assert "FIXDONE-101-1" in refusal
    stage.go_on()
    assert stage.state.tree == "tree-first"


@pytest.mark.proves("A14", "A71")
def test_events_received_during_a_pause_are_processed_in_order() -> None:
    stage = waiting()
    stage.pause()
    stage.acknowledge()
    stage.apply(ev.AnswerRejected(specialist="test-runner", iteration=1, violations=("no files",)))
    stage.complete()

    stage.go_on()

    assert [i.split("-")[0] for i in stage.ids[-3:]] == ["PVN", "FIXDONE", "REVAL"]
    assert stage.path()[-2:] == [Status.FIXING, Status.RE_CHECKING]


Begun = Callable[[], Stage]
BEGUN: tuple[Begun, ...] = (
    lambda: Stage([SILENT]).run(),
    lambda: Stage([fails("a"), SILENT]).run(),
    lambda: Stage([fails("a")], answers=[SILENT], fixer="command").run(),
    lambda: Stage([fails("a")] * 3).run(),
)


@pytest.mark.proves("K20", "A14")
@pytest.mark.parametrize("begin", BEGUN)
def test_a_paused_workflow_can_be_cancelled(begin: Begun) -> None:
    stage = begin()
    stage.pause()

    stage.apply(ev.Cancelled(by="ann"))

    assert stage.state.outcome is WorkflowOutcome.CANCELLED
    assert stage.state.held is None
    assert "ended (cancelled)" in stage.refused(stage.pause)
    assert "ended (cancelled)" in stage.refused(stage.go_on)


@pytest.mark.proves("A14", "A72")
def test_an_error_while_paused_is_tried_again_afterwards() -> None:
    stage = Stage([errs(), passes()])
    stage.pause()
    stage.step()

    stage.go_on()

    (ticket,) = stage.pending
    assert ticket.attempt == 2
    stage.run()
    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("A14", "K20")
def test_an_escalation_that_becomes_due_while_paused_is_sent_afterwards() -> None:
    stage = Stage([fails("a")], answers=[BadAnswer()], fixer="command")
    while not stage.pending or stage.pending[0].step != "fix":
        stage.step()
    stage.pause()
    stage.apply(ev.BlockerSignalled(by="agent", text="no access"))

    stage.go_on()

    assert stage.escalation.reason is Reason.BLOCKER
    assert not stage.pending
