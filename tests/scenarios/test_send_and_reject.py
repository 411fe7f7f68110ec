"""A person's instructions to agents of a cycle, and handoffs that their addressee rejects."""

import pytest

from fixloop.errors import RefusedError
from fixloop.profiles.cycle.events import InputRequested
from fixloop.profiles.cycle.records import AgentStatus, InputKind
from fixloop.profiles.handoff.events import DecisionMade, HandoffRejected
from fixloop.profiles.handoff.returns import InvalidReturn
from fixloop.profiles.handoff.routes import HandoffStatus
from fixloop.profiles.handoff.runs import rejection
from fixloop.protocol.event import Unexpected
from tests.fixtures.cycle_stage import CycleStage
from tests.fixtures.handoff_stage import HandoffStage


def clarification(to: str, kind: InputKind = InputKind.CLARIFICATION, about: str = "") -> InputRequested:
    return InputRequested(recipient=to, input=kind, summary="use PKCE", actions=("use PKCE",), occasion=about)


@pytest.mark.proves("C20", "C23", "K15")
def test_a_completed_agent_works_again_on_a_person_s_instruction() -> None:
    stage = CycleStage()
    stage.work("ra")
    before = stage.agent("ra").runs

    stage.apply(clarification("ra"))

    assert (stage.agent("ra").asked, stage.agent("ra").runs) == (True, before + 1)
    assert stage.inputs("ra")[-1].actions == ("use PKCE",)


@pytest.mark.proves("C50", "C51")
def test_an_instruction_to_a_completed_agent_is_validated_before_the_cycle_ends() -> None:
    stage = CycleStage()
    for key in ("ra", "ep", "cd"):
        stage.work(key)
    stage.start("vas")
    under_way = stage.state

    stage.apply(clarification("cd"))
    assert stage.last.dropped == (f"{under_way.workflow}.vas.1.1",)
    assert stage.agent("vas").status is AgentStatus.WAITING
    stage.work("cd")
    stage.work("vas")
    stage.finish()

    assert (stage.state.outcome, stage.agent("vas").runs) == ("success", 2)


@pytest.mark.proves("C22", "K15")
def test_feedback_to_a_completed_agent_and_instructions_at_the_end_are_refused() -> None:
    stage = CycleStage()
    stage.work("ra")
    with pytest.raises(Unexpected, match="ra has completed, and feedback opens an iteration"):
        stage.apply(clarification("ra", InputKind.FEEDBACK))
    for key in ("ep", "cd", "vas"):
        stage.work(key)

    with pytest.raises(Unexpected, match="it is about to end; begin another one"):
        stage.apply(clarification("ra"))


@pytest.mark.proves("C22", "K15")
def test_one_clarification_is_sent_for_each_occasion() -> None:
    stage = CycleStage()
    stage.apply(clarification("ra"))

    with pytest.raises(Unexpected, match="ra has had its clarification"):
        stage.apply(clarification("ra"))
    stage.apply(clarification("ra", about="BLK-001"))

    assert len(stage.inputs("ra")) == 2


@pytest.mark.proves("G9", "D16")
def test_a_rejected_handoff_waits_for_a_person_and_is_sent_again_with_their_guidance() -> None:
    stage = HandoffStage().plan()
    stage.start("builder")
    event = rejection(stage.state, "builder", {"reason": "the spec contradicts itself"})

    stage.apply(event)
    [rejected] = stage.state.messages
    assert (rejected.status, rejected.status.folder) == (HandoffStatus.REJECTED, "completed")
    assert rejected.reason == "the spec contradicts itself"
    assert [question.reason for question in stage.state.questions] == ["handoff_rejected"]
    stage.apply(DecisionMade(decision="manual-fix", text="build the first half"))
    stage.start("builder")

    assert [message.status for message in stage.state.messages] == [
        HandoffStatus.REJECTED,
        HandoffStatus.ACCEPTED,
    ]
    assert stage.state.messages[1].payload == rejected.payload
    assert stage.state.agent("builder").answer == "build the first half"


@pytest.mark.proves("G9")
def test_a_rejection_without_a_handoff_or_a_reason_is_refused() -> None:
    stage = HandoffStage()
    with pytest.raises(InvalidReturn, match="planner has no handoff that it could reject"):
        rejection(stage.state, "planner", {"reason": "no"})
    stage.plan()

    with pytest.raises(InvalidReturn, match="builder rejects its handoff without a reason"):
        rejection(stage.state, "builder", {})


@pytest.mark.proves("G9", "D18")
def test_only_its_addressee_rejects_a_handoff_and_only_once() -> None:
    stage = HandoffStage().plan()
    [task] = stage.state.messages
    with pytest.raises(Unexpected, match="is for builder; fixer cannot reject it"):
        stage.apply(HandoffRejected(sender="fixer", message_id=task.message_id, reason="no"))
    stage.apply(HandoffRejected(sender="builder", message_id=task.message_id, reason="no"))

    with pytest.raises(RefusedError, match="a handoff that is rejected cannot become rejected"):
        stage.apply(HandoffRejected(sender="builder", message_id=task.message_id, reason="no"))
