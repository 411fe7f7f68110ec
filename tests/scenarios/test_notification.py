"""The notify command of cycles and handoffs: one step for each question to a person; nothing depends on it."""

from typing import Any

import pytest

from fixloop.profiles.cycle import events as cyc
from fixloop.profiles.handoff import events as hnd
from fixloop.protocol import agent_events
from fixloop.protocol.agent_events import AgentFailed
from fixloop.protocol.event import Unexpected
from fixloop.protocol.ticket import Ticket
from tests.fixtures.cycle_stage import CycleStage
from tests.fixtures.handoff_stage import HandoffStage

PROFILES = ("cycle", "handoff")
BESIDE = {"graph": {"ra": (), "ep": (), "cd": ("ra", "ep"), "vas": ("cd",)}}


def waiting(profile: str, **settings: Any) -> tuple[Any, Any]:
    """A workflow whose first agent has failed for good, and the events of its profile."""
    stage: Any = CycleStage(**settings) if profile == "cycle" else HandoffStage(**settings)
    events: Any = cyc if profile == "cycle" else hnd
    agent = "ra" if profile == "cycle" else "planner"
    stage.start(agent)
    stage.apply(agent_events.AgentFailed(agent=agent, reason="out of credit", fatal=True))
    return stage, events


def notices(stage: Any) -> list[Ticket]:
    """All notifications of a person so far."""
    return [step for outcome in stage.outcomes for step in outcome.steps if step.step == "notify"]


@pytest.mark.proves("K20", "K12")
@pytest.mark.parametrize("profile", PROFILES)
def test_a_person_is_notified_once_and_before_all_other_work(profile: str) -> None:
    stage, _ = waiting(profile, notify=True)

    (ticket,) = notices(stage)
    assert ticket.id == f"{stage.state.workflow}.notify.{stage.state.lines}"
    assert (ticket.queue, ticket.priority, ticket.delay_seconds) == (f"fixloop.{profile}", 0, 0.0)


@pytest.mark.proves("K20")
@pytest.mark.parametrize("profile", PROFILES)
def test_without_a_command_no_person_is_notified(profile: str) -> None:
    stage, _ = waiting(profile)

    assert notices(stage) == []


@pytest.mark.proves("K20", "R8")
@pytest.mark.parametrize("profile", PROFILES)
def test_the_notification_s_result_is_only_a_note(profile: str) -> None:
    stage, _ = waiting(profile, notify=True)
    before = stage.state

    outcome = stage.apply(agent_events.PersonNotified(detail="mail ended with exit code 1"))

    assert outcome.notes == ("notified: mail ended with exit code 1",)
    assert (outcome.state, outcome.steps, outcome.messages) == (before, (), ())


@pytest.mark.proves("K20")
@pytest.mark.parametrize("profile", PROFILES)
def test_a_cancelled_workflow_notifies_nobody(profile: str) -> None:
    stage, _ = waiting(profile, notify=True)

    outcome = stage.apply(agent_events.Cancelled(reason="no longer wanted"))

    assert outcome.withdraws_tickets
    assert outcome.steps == ()
    with pytest.raises(Unexpected, match="person-notified came after"):
        stage.apply(agent_events.PersonNotified(detail="late"))


@pytest.mark.proves("K8", "K20")
def test_a_cycle_s_second_escalation_is_notified_in_its_turn() -> None:
    stage, _ = waiting("cycle", notify=True, **BESIDE)
    stage.start("ep")
    stage.apply(AgentFailed(agent="ep", reason="out of memory", fatal=True))
    before = len(notices(stage))

    stage.decide("extend")

    assert (before, len({ticket.id for ticket in notices(stage)})) == (1, 2)


@pytest.mark.proves("D42", "K20")
def test_each_question_of_handoffs_is_notified_even_one_that_blocks_nothing() -> None:
    stage = HandoffStage(notify=True)
    stage.start("planner")
    stage.escalate("planner", blocking=False)
    stage.escalate("planner", "JWT")

    stage.answer("JWT")

    assert len({ticket.id for ticket in notices(stage)}) == len(notices(stage)) == 2
