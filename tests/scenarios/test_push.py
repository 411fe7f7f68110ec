"""Cycles and handoffs that are to push: the branch is the last step, and decides nothing about the work."""

from typing import Any

import pytest

from fixloop.profiles.cycle import events as cyc
from fixloop.profiles.handoff import events as hnd
from fixloop.profiles.handoff.returns import Returned
from fixloop.protocol import agent_events
from fixloop.protocol.event import Unexpected
from tests.fixtures.cycle_stage import CycleStage
from tests.fixtures.handoff_stage import HandoffStage

PROFILES = ("cycle", "handoff")


def successful(profile: str, **facts: Any) -> tuple[Any, Any]:
    """A workflow whose work is done, and the events of its profile."""
    if profile == "handoff":
        handoffs = HandoffStage(push=True, **facts).plan().build()
        handoffs.start("reviewer")
        handoffs.apply(hnd.AgentReturned(sender="reviewer", result=Returned(status="approved")))
        return handoffs, hnd
    cycle = CycleStage(push=True, **facts)
    for key in ("ra", "ep", "cd", "vas"):
        cycle.work(key)
    cycle.finish()
    return cycle, cyc


@pytest.mark.parametrize("profile", PROFILES)
def test_a_workflow_that_is_to_push_ends_when_its_branch_is_there(profile: str) -> None:
    stage, _ = successful(profile)
    [step] = stage.last.steps
    assert (stage.state.outcome, stage.state.closing, step.step) == ("", "success", "push")

    stage.apply(agent_events.BranchPushed(branch="fixloop/9"))

    assert (stage.state.outcome, stage.state.pushed, stage.state.closing) == ("success", "fixloop/9", "")
    assert stage.last.withdraws_tickets


@pytest.mark.proves("K5")
@pytest.mark.parametrize("profile", PROFILES)
def test_an_unreachable_server_is_tried_three_times_and_the_outcome_stands(profile: str) -> None:
    stage, _ = successful(profile)
    delays = []
    for attempt in (1, 2, 3):
        delays += [step.delay_seconds for step in stage.last.steps]
        stage.apply(agent_events.BranchPushed(attempt=attempt, error="nobody answers"))

    assert delays == [0.0, 2.0, 4.0]
    assert (stage.state.outcome, stage.state.pushed) == ("success", "")
    assert stage.state.push_error == "nobody answers"
    stage.apply(agent_events.BranchPushed(branch="fixloop/9"))
    assert (stage.state.pushed, stage.state.push_error, stage.last.steps) == ("fixloop/9", "", ())


@pytest.mark.parametrize("profile", PROFILES)
def test_a_refused_push_is_not_tried_again(profile: str) -> None:
    stage, _ = successful(profile)

    stage.apply(agent_events.BranchPushed(error="the branch is somebody else's", fatal=True))

    assert (stage.state.outcome, stage.last.steps) == ("success", ())


@pytest.mark.parametrize("profile", PROFILES)
def test_during_a_push_nothing_starts_and_the_workflow_can_be_cancelled(profile: str) -> None:
    stage, _ = successful(profile)
    late: Any = cyc.CycleFinished() if profile == "cycle" else hnd.LockAcquired(sender="fixer", resource="a")

    with pytest.raises(Unexpected, match="its branch is pushed"):
        stage.apply(late)
    stage.apply(agent_events.Cancelled())

    assert stage.state.outcome == "cancelled"
    with pytest.raises(Unexpected, match="has no work to push: it is cancelled"):
        stage.apply(agent_events.BranchPushed(branch="fixloop/9"))


@pytest.mark.parametrize("profile", PROFILES)
def test_a_workflow_without_a_push_pushes_nothing(profile: str) -> None:
    stage: Any = CycleStage() if profile == "cycle" else HandoffStage()

    with pytest.raises(Unexpected, match="has no work to push: it is running"):
        stage.apply(agent_events.BranchPushed(branch="fixloop/9"))


@pytest.mark.proves("K20")
@pytest.mark.parametrize("profile", PROFILES)
def test_a_workflow_that_a_person_lets_pass_is_pushed_too(profile: str) -> None:
    facts: Any = {"push": True, "max_iterations": 1}
    stage: Any = CycleStage(**facts) if profile == "cycle" else HandoffStage(**facts).plan().build()
    if profile == "cycle":
        for key in ("ra", "ep", "cd"):
            stage.work(key)
        stage.work("vas", "failed", issues="[login fails]")
    else:
        stage.start("reviewer")
        found = Returned(status="needs_fixes", issues=1)
        stage.apply(hnd.AgentReturned(sender="reviewer", result=found))

    stage.decide("skip")
    assert (stage.state.closing, [step.step for step in stage.last.steps]) == ("skipped", ["push"])
    stage.apply(agent_events.BranchPushed(branch="fixloop/9"))

    assert stage.state.outcome == "skipped"


@pytest.mark.proves("K23")
@pytest.mark.parametrize("profile", PROFILES)
def test_a_workflow_rebuilt_during_its_push_pushes_again(profile: str) -> None:
    stage, events = successful(profile)
    kept = stage.state
    restored = {"cycle": "CycleRestored", "handoff": "HandoffsRestored"}[profile]

    stage.outcomes.clear()
    stage.apply(getattr(events, restored)(workflow=kept.workflow, state=kept.model_dump(mode="json")))

    assert [step.id for step in stage.last.steps] == [f"{kept.workflow}.push.1"]
