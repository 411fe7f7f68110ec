"""S10 with a declared outside agent: failed deliveries to its mailbox, and missing receipts (A5, A70, G1)."""

from typing import Any

import pytest

from fixloop.protocol import events as ev
from fixloop.protocol.messages import MAIN_AGENT, ErrorNotification, Reason
from fixloop.protocol.specialists import Status
from fixloop.protocol.state import Limits, OperationName, WorkflowOutcome
from tests.fixtures.script import Fix, fails, passes
from tests.fixtures.validation_stage import Stage

AWAY = "the broker is away"


def staged(deliveries: list[str] | None = None, **further: Any) -> Stage:
    """Run 1 fails with `a`, the fix repairs it; the agent `coder` is played by the test unless told otherwise."""
    told = {"answers": None, "agent": "coder", **further}
    return Stage([fails("a"), passes()], deliveries=deliveries or [], **told)


def errors(stage: Stage) -> list[ErrorNotification]:
    return [m.body for m in stage.said("error-notification") if isinstance(m.body, ErrorNotification)]


def deliveries(stage: Stage, step: str = "deliver") -> list[tuple[int, float]]:
    """Attempt and delay of each delivery."""
    return [(t.attempt, t.delay_seconds) for t in stage.executed if t.step == step]


@pytest.mark.proves("A70", "K5", "G19", "S10")
def test_s10_an_unreachable_agent_is_tried_three_times_and_then_escalated() -> None:
    stage = staged([AWAY] * 3).run()

    assert deliveries(stage) == [(1, 0.0), (2, 2.0), (3, 4.0)]
    assert [i.split("-")[0] for i in stage.ids] == ["DETECT", "VFR", "ERR", "ESC"]
    assert stage.ids[2].startswith("ERR-101-communication-")
    assert stage.escalation.reason is Reason.COMMUNICATION_ERROR
    assert stage.messages[-1].recipient == MAIN_AGENT
    assert stage.state.paused


@pytest.mark.proves("A74", "A75", "A76", "A91")
def test_s10_the_notification_lists_the_attempts_in_their_order() -> None:
    stage = staged([AWAY, "the mailbox is full", AWAY]).run()

    (body,) = errors(stage)
    assert not body.recovered
    assert body.error == AWAY
    assert body.context == "delivery of VFR-101-test-runner-1 to coder"
    assert body.recovery == (
        f"delivery attempt 2, 2 s after: {AWAY}",
        "delivery attempt 3, 4 s after: the mailbox is full",
    )


@pytest.mark.proves("A70", "A75", "A84", "S10")
def test_s10_a_third_attempt_that_succeeds_has_recovered() -> None:
    stage = staged([AWAY, AWAY], answers=[Fix()]).run()

    (body,) = errors(stage)
    assert body.recovered
    assert len(body.recovery) == 2
    assert stage.ids.count("VFR-101-test-runner-1") == 1
    assert not stage.said("escalation")
    assert stage.state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("G1", "K34", "A5")
def test_the_agent_is_waited_for_from_the_moment_its_mailbox_has_the_report() -> None:
    stage = staged([AWAY])
    while not stage.said("failure-report"):
        stage.step()
    assert stage.state.owner == "engine"
    assert stage.state.operation is None

    stage.run()

    operation = stage.state.operation
    assert operation is not None
    assert (operation.name, operation.started_clock) == (OperationName.FIX, 2.0)
    assert stage.active.status is Status.AWAITING_FIX
    assert stage.state.owner == "agent"


@pytest.mark.proves("A5", "G1", "A55")
def test_a_receipt_is_kept_with_its_time_next_to_its_report() -> None:
    stage = staged().run().advance(90.0)
    report = stage.message("VFR-101-test-runner-1")

    stage.acknowledge()

    (run,) = stage.active.runs
    assert run.receipt is not None
    assert (run.receipt.uid, run.receipt.message_id) == (report.uid, report.message_id)
    assert (run.receipt.by, run.receipt.at) == ("agent", stage.now.at)
    assert stage.active.status is Status.FIXING
    assert len(stage.messages) == 2


@pytest.mark.proves("G1", "R8")
def test_a_second_receipt_changes_nothing() -> None:
    stage = staged().run()
    stage.acknowledge()
    before = stage.active

    stage.advance(30.0).acknowledge()

    assert stage.active == before


@pytest.mark.proves("G1", "A5")
@pytest.mark.parametrize("fixer", ["command", "outside"])
def test_a_completion_without_a_receipt_counts_as_both(fixer: str) -> None:
    stage = Stage([fails("a"), passes()], answers=[Fix()], fixer=fixer).run()

    run = stage.active.runs[0]
    assert run.receipt is not None
    assert run.receipt.message_id == "VFR-101-test-runner-1"
    path = stage.path()
    assert path[path.index(Status.AWAITING_FIX) + 1] is Status.FIXING


@pytest.mark.proves("G1", "R8")
def test_a_receipt_of_another_message_acknowledges_nothing() -> None:
    stage = staged().run()
    other = ev.FixAcknowledged(specialist="test-runner", iteration=1, by="coder", uid="another")

    assert "this is a receipt of message another" in stage.refused(lambda: stage.apply(other))
    assert stage.active.status is Status.AWAITING_FIX


@pytest.mark.proves("A70", "G1")
def test_an_agent_that_owes_receipts_and_sends_none_is_unreachable() -> None:
    stage = staged(acks=True).run()
    stage.advance(60.4)
    assert deliveries(stage) == [(1, 0.0)]

    stage.advance(0.2).run()
    stage.advance(60.6).run()
    assert stage.active.status is Status.AWAITING_FIX
    stage.advance(60.6)

    assert deliveries(stage) == [(1, 0.0), (2, 2.0), (3, 4.0)]
    assert stage.escalation.reason is Reason.COMMUNICATION_ERROR
    assert "coder gave no receipt within 60 s" in stage.escalation.detail
    assert stage.ids.count("VFR-101-test-runner-1") == 1


@pytest.mark.proves("A70", "A5", "G1")
@pytest.mark.parametrize("late_seconds", [0.0, 61.0])
def test_a_receipt_ends_the_wait_for_one(late_seconds: float) -> None:
    stage = staged(acks=True).run().advance(late_seconds).run()

    stage.acknowledge()

    assert [body.recovered for body in errors(stage)] == [True] * bool(late_seconds)
    assert "receipt" not in stage.deadlines
    stage.advance(300.0)
    assert not stage.state.paused


@pytest.mark.proves("R6", "A70")
def test_a_second_timeout_of_an_earlier_attempt_s_receipt_changes_nothing() -> None:
    stage = staged(acks=True).run().advance(61.0).run().advance(10.0)
    again = ev.DeadlineReached(name="receipt", due=60.0)

    assert "seconds left" in stage.refused(lambda: stage.apply(again))
    assert deliveries(stage) == [(1, 0.0), (2, 2.0)]


@pytest.mark.proves("A14", "A70")
def test_a_receipt_is_waited_for_as_long_after_a_pause_by_a_person() -> None:
    stage = staged(acks=True).run().advance(50.0)

    stage.apply(ev.Paused(by="ann"))
    stage.advance(1000.0)
    stage.apply(ev.Continued(by="ann"))

    stage.advance(9.0)
    assert deliveries(stage) == [(1, 0.0)]
    stage.advance(2.0).run()
    assert deliveries(stage) == [(1, 0.0), (2, 2.0)]


@pytest.mark.proves("G1")
def test_without_receipts_a_stored_message_is_a_delivered_one() -> None:
    stage = staged().run()

    assert set(stage.deadlines) == {OperationName.FIX.value, OperationName.ITERATION.value}
    assert not errors(stage)


@pytest.mark.proves("A70", "A61")
def test_the_fix_s_clock_runs_while_its_delivery_is_retried() -> None:
    stage = staged(acks=True, limits=Limits(fix_seconds=90.0)).run().advance(61.0).run()

    stage.advance_to(91.0)

    (reminder,) = stage.said("timeout-reminder")
    assert reminder.recipient == MAIN_AGENT
    assert deliveries(stage) == [(1, 0.0), (2, 2.0)]


@pytest.mark.proves("R8", "A70")
def test_an_agent_that_was_faster_than_its_mailbox_loses_nothing() -> None:
    stage = staged([AWAY, AWAY, AWAY])
    while not stage.said("failure-report"):
        stage.step()
    stage.acknowledge()
    stage.run()

    assert stage.active.status is Status.FIXING
    assert not errors(stage)
    assert stage.state.operation is not None
    stage.complete()
    assert stage.run().state.outcome is WorkflowOutcome.SUCCESS


@pytest.mark.proves("K20", "A70")
def test_an_extension_delivers_the_open_report_again_with_fresh_attempts() -> None:
    stage = staged([AWAY] * 3 + ["", AWAY, AWAY]).run()

    stage.decide("extend")
    stage.run()

    assert deliveries(stage)[3:] == [(1, 0.0), (2, 2.0), (3, 4.0)]
    assert stage.ids[-1].startswith("ERR-101-communication-")
    assert [body.recovered for body in errors(stage)] == [False, True]
    assert stage.active.status is Status.AWAITING_FIX
    assert stage.active.iteration == 1
    assert stage.state.delivery is not None
    assert stage.state.delivery.message_id == "VFR-101-test-runner-1"


@pytest.mark.proves("A14", "K27", "A70")
def test_the_escalation_is_delivered_to_the_main_orchestrator_s_mailbox_too() -> None:
    stage = staged([AWAY] * 3, notify=True).run()

    told = {ticket.step: ticket.priority for ticket in stage.pending}
    assert told == {"notify": 0, "escalate": 0}
    stage.step()
    stage.step()
    assert any("the mailbox of coder took ESC-101" in note for note in stage.notes)
    assert stage.state.paused


@pytest.mark.proves("A69", "A70")
def test_an_escalation_that_cannot_be_delivered_is_not_escalated() -> None:
    stage = staged([AWAY] * 6).run()
    while stage.pending:
        stage.step()

    assert deliveries(stage, "escalate") == [(1, 0.0), (2, 2.0), (3, 4.0)]
    assert len(stage.said("escalation")) == 1
    assert len(errors(stage)) == 1


@pytest.mark.proves("G1", "K39")
def test_a_receipt_of_an_escalation_is_kept_and_is_no_message() -> None:
    stage = staged([AWAY] * 3).run()
    report = stage.messages[-1]
    count = len(stage.messages)

    stage.apply(ev.ReceiptGiven(uid=report.uid, message_id=report.message_id, by="coder"))

    opened = stage.state.escalation
    assert opened is not None
    assert opened.uid == report.uid
    assert opened.receipt is not None
    assert opened.receipt.by == "coder"
    assert len(stage.messages) == count
    assert stage.state.paused


@pytest.mark.proves("K27")
def test_an_escalation_to_the_user_goes_to_no_mailbox() -> None:
    stage = staged().run()

    stage.apply(ev.BlockerSignalled(by="coder", text="no access"))

    assert not stage.pending


@pytest.mark.proves("G1")
def test_without_a_declared_agent_nothing_is_delivered() -> None:
    stage = Stage([fails("a"), passes()], answers=[Fix()]).run()

    assert {ticket.step for ticket in stage.executed} == {"validate", "report", "recheck"}
