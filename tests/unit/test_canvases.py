"""The canvases of cycles and handoffs: from any state, the tickets that follow if all succeed, by their ids."""

import pytest
from hypothesis import given, strategies as st

from fixloop.engine.hints import task_name
from fixloop.profiles.cycle.outcome import Outcome as CycleOutcome
from fixloop.protocol.ticket import Ticket
from tests.fixtures.cycle_stage import COMMANDS, CycleStage
from tests.fixtures.handoff_stage import HandoffStage
from workers.app import app
from workers.steps.execution import STEP_HANDLERS
from workflows import canvas, cycle, handoff


def ids(tickets: list[Ticket]) -> list[str]:
    return [ticket.id.partition(".")[2] for ticket in tickets]


def ahead(outcome: CycleOutcome, place: int = 0) -> list[str]:
    """The canvas after one of the tickets that an outcome of a cycle made."""
    return ids(list(cycle.following(outcome.state, outcome.steps[place])))


@pytest.mark.proves("R3")
def test_no_task_can_wait_inside_another_because_no_results_are_stored() -> None:
    assert (app.conf.result_backend, app.conf.task_ignore_result) == (None, True)


@pytest.mark.proves("R3", "C38", "C50")
def test_a_cycle_s_canvas_leads_from_its_first_agent_to_its_end() -> None:
    assert ahead(CycleStage().last) == ["ep.1.1", "cd.1.1", "vas.1.1", "finish.1"]


@pytest.mark.proves("R3", "C49", "C54")
def test_a_blocked_agent_comes_after_the_one_that_unblocks_it_and_then_the_others() -> None:
    stage = CycleStage()
    stage.work("ra")
    stage.work("ep")
    stage.start("cd")
    blocked = stage.report("cd", "partial", issues='["FR-003: unclear"]')

    assert ids(list(blocked.steps)) == ["ra.2.1"]
    assert ahead(blocked) == ["cd.2.1", "vas.1.1", "finish.1"]


@pytest.mark.proves("C43", "K17", "K31")
def test_agents_that_start_together_have_one_canvas_each_and_the_last_reaches_the_end() -> None:
    graph = {"ra": (), "docs": (), "ep": ("ra",), "cd": ("ep",), "vas": ("cd", "docs")}
    stage = CycleStage(graph=graph, commands=COMMANDS | {"docs": "d"})

    assert ids(list(stage.last.steps)) == ["ra.1.1", "docs.1.1"]
    assert ahead(stage.last, 0) == ["ep.1.1", "cd.1.1"]
    assert ahead(stage.last, 1) == []
    stage.work("docs")
    assert ids(list(cycle.following(stage.state, stage.outcomes[0].steps[0]))) == [
        "ep.1.1",
        "cd.1.1",
        "vas.1.1",
        "finish.1",
    ]


@pytest.mark.proves("K31")
def test_a_canvas_ends_where_an_outside_agent_is_waited_for() -> None:
    stage = CycleStage(commands={key: "c" for key in ("ra", "ep", "vas")})
    builders_outside = HandoffStage(commands={"planner": "p", "reviewer": "r", "fixer": "f"})

    assert ahead(stage.last) == ["ep.1.1"]
    assert list(handoff.following(builders_outside.state, builders_outside.last.steps[0])) == []


@pytest.mark.proves("R3", "D55")
def test_handoffs_lead_to_the_review_and_each_further_round_has_its_own_canvas() -> None:
    stage = HandoffStage()
    first = stage.last.steps[0]

    assert ids(list(handoff.following(stage.state, first))) == [
        "builder.1.1",
        "reviewer.1.1",
        "fixer.1.1",
        "reviewer.2.1",
    ]
    stage.plan().build()
    found = stage.work("reviewer", status="needs_fixes", issues=1)
    assert ids(list(handoff.following(stage.state, found.steps[0]))) == ["reviewer.2.1"]


@pytest.mark.proves("R2", "R3")
@given(st.lists(st.sampled_from(["success", "partial", "failed"]), max_size=12))
def test_every_ticket_that_follows_was_foreseen_when_all_succeed(statuses: list[str]) -> None:
    stage, outcome = CycleStage(), None
    for status in statuses:
        working = [agent.key for agent in stage.state.agents if agent.asked]
        if not working:
            return
        outcome = stage.work(
            working[0], status, issues='["FR-1: unclear"]' if status == "partial" else "none"
        )
        if status != "success" or len(outcome.steps) != 1:
            continue
        (made,) = outcome.steps
        foreseen = cycle.following(stage.outcomes[-2].state, _ticket_of(stage, working[0]))
        assert made.id in {ticket.id for ticket in foreseen}


def _ticket_of(stage: CycleStage, key: str) -> Ticket:
    found: Ticket = next(
        step for outcome in reversed(stage.outcomes[:-1]) for step in outcome.steps if step.specialist == key
    )
    return found


@pytest.mark.proves("R2", "R12")
def test_every_step_of_every_canvas_is_a_task_of_its_profile_on_a_queue_that_workers_serve() -> None:
    app.loader.import_default_modules()
    for stage in (CycleStage(), HandoffStage()):
        signatures = canvas(app, stage.state, stage.last.steps[0])
        for signature in signatures:
            assert signature.task in app.tasks
            assert signature.options["queue"] in ("fixloop.cycle", "fixloop.handoff", "fixloop.control")
            assert signature.kwargs["ticket"] == signature.options["task_id"]
    names = {
        task_name(name, step)
        for name, shop in STEP_HANDLERS.items()
        if name != "validation"
        for step in shop.steps
    }
    assert names == {
        "fixloop.cycle.work",
        "fixloop.cycle.finish",
        "fixloop.cycle.deliver",
        "fixloop.cycle.notify",
        "fixloop.cycle.push",
        "fixloop.handoff.work",
        "fixloop.handoff.deliver",
        "fixloop.handoff.notify",
        "fixloop.handoff.push",
        "fixloop.handoff.attend",
    }
