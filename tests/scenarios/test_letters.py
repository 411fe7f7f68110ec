"""Letters of cycles and handoffs to outside agents: each is a step, tried three times, then a person is asked."""

from typing import Any

import pytest

from fixloop.profiles.cycle import events as cyc
from fixloop.profiles.handoff import events as hnd
from fixloop.protocol import agent_events
from fixloop.protocol.agent_events import DeadlineReached, MessageStored
from tests.fixtures.cycle_stage import COMMANDS as CYCLE_COMMANDS, CycleStage
from tests.fixtures.handoff_stage import COMMANDS as HANDOFF_COMMANDS, HandoffStage

PROFILES = ("cycle", "handoff")


def begun(profile: str) -> tuple[Any, Any, str]:
    """A workflow whose first agent is outside, the events of its profile, and who that is."""
    if profile == "cycle":
        return CycleStage(commands={**CYCLE_COMMANDS, "ra": ""}), cyc, "ra"
    return HandoffStage(commands={**HANDOFF_COMMANDS, "planner": ""}), hnd, "planner"


def undelivered(stage: Any, events: Any, *attempts: int) -> None:
    for _ in attempts:
        stage.apply(agent_events.DeliveryFailed(number=1, error="no mailbox"))


def waiting(stage: Any) -> list[str]:
    """Why a person is asked."""
    opened: Any = stage.state.escalations if isinstance(stage, CycleStage) else stage.state.questions
    return [each.reason for each in opened]


@pytest.mark.proves("K5", "A70")
@pytest.mark.parametrize("profile", PROFILES)
def test_an_undeliverable_letter_stays_the_same_and_then_escalates_to_a_person(profile: str) -> None:
    stage, events, agent = begun(profile)
    (letter,) = stage.state.letters
    (first,) = stage.last.steps

    undelivered(stage, events, 1)
    (second,) = stage.last.steps
    (again,) = stage.state.letters
    undelivered(stage, events, 2)
    (third,) = stage.last.steps
    undelivered(stage, events, 3)

    assert [step.id.rpartition(".letter.")[2] for step in (first, second, third)] == [
        f"{agent}.1.{attempt}" for attempt in (1, 2, 3)
    ]
    assert [step.delay_seconds for step in (first, second, third)] == [0.0, 2.0, 4.0]
    assert (again.uid, again.message_id) == (letter.uid, letter.message_id)
    assert (stage.state.letters, waiting(stage)) == ((), ["communication_error"])
    assert not stage.state.agent(agent).asked


@pytest.mark.proves("K20", "K12")
@pytest.mark.parametrize("profile", PROFILES)
def test_extend_after_a_lost_letter_sends_a_new_one(profile: str) -> None:
    stage, events, agent = begun(profile)
    undelivered(stage, events, 1, 2, 3)

    stage.apply(events.DecisionMade(decision="extend"))

    assert stage.state.agent(agent).asked
    assert [(letter.number, letter.attempt) for letter in stage.state.letters] == [(2, 1)]


@pytest.mark.proves("A70", "G1")
@pytest.mark.parametrize("profile", PROFILES)
def test_an_agent_that_started_without_its_letter_is_not_interrupted(profile: str) -> None:
    stage, events, agent = begun(profile)
    undelivered(stage, events, 1, 2)
    began = cyc.AgentStarted(agent=agent) if profile == "cycle" else hnd.AgentActivated(agent=agent)
    stage.apply(began)

    undelivered(stage, events, 3)

    assert (waiting(stage), stage.state.agent(agent).asked) == ([], True)


@pytest.mark.proves("R8")
@pytest.mark.parametrize("profile", PROFILES)
def test_a_second_outcome_of_a_delivered_letter_changes_nothing(profile: str) -> None:
    stage, _, _ = begun(profile)
    stage.apply(agent_events.MessageStored(number=1))
    before = stage.state

    stage.apply(agent_events.MessageStored(number=1))
    stage.apply(agent_events.DeliveryFailed(number=1, error="late"))

    assert (stage.state, stage.last.steps) == (before, ())


@pytest.mark.proves("A70")
@pytest.mark.parametrize("profile", PROFILES)
def test_an_answer_voids_the_letter_that_asks_for_it(profile: str) -> None:
    stage, _, _ = begun(profile)
    (letter,) = stage.last.steps

    if profile == "cycle":
        stage.work("ra")
    else:
        stage.plan()

    assert letter.id in stage.last.dropped
    assert stage.state.letters == ()


@pytest.mark.proves("C48", "G15")
def test_a_request_to_converge_is_a_separate_letter() -> None:
    stage = CycleStage(commands={**CYCLE_COMMANDS, "ra": ""})
    stage.apply(MessageStored(number=1))

    stage.at("10:31").apply(DeadlineReached(name="run/ra", due=stage.moment.clock - 60))

    (letter,) = stage.state.letters
    assert (letter.number, letter.kind) == (2, "cycle.input")
    assert letter.uid == stage.messages[-1].uid


@pytest.mark.proves("K23")
@pytest.mark.parametrize("profile", PROFILES)
def test_a_workflow_rebuilt_from_its_files_has_its_letters_delivered(profile: str) -> None:
    stage, events, _ = begun(profile)
    restored = {"cycle": "CycleRestored", "handoff": "HandoffsRestored"}[profile]
    kept = stage.state

    stage.outcomes.clear()
    stage.apply(getattr(events, restored)(workflow=kept.workflow, state=kept.model_dump(mode="json")))

    delivered = [step.id for step in stage.last.steps if step.step == "deliver"]
    assert f"{kept.workflow}.letter.{kept.letters[0].agent}.1.1" in delivered
