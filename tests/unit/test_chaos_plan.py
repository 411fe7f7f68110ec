"""The plan of a chaos run: seeded, of every kind, at places where the injury makes sense."""

from collections import Counter

import pytest
from hypothesis import given, strategies as st

from fixloop.errors import UsageError
from fixloop.testing.plan import CHAT, COMMAND, CYCLE, HANDOFF, VALIDATION, Boundary, Injury, Places, plan

RUNS = {"work": 200, "finish": 20, COMMAND: 30}
TURNS = {"answer": 100, "close": 10}
TICKETS = {"validate": 60, "report": 80, "fix": 90, "recheck": 80, "confirm": 20, COMMAND: 12}


def test_the_same_seed_makes_the_same_plan_and_another_seed_another() -> None:
    assert plan(1, 40, TICKETS, VALIDATION) == plan(1, 40, TICKETS, VALIDATION)
    assert plan(1, 40, TICKETS, VALIDATION) != plan(2, 40, TICKETS, VALIDATION)


@pytest.mark.parametrize(("tickets", "places"), [(TICKETS, VALIDATION), (RUNS, CYCLE), (TURNS, CHAT)])
@given(seed=st.integers(), injuries=st.integers(0, 120))
def test_each_injury_has_its_own_occasion_where_it_makes_sense(
    tickets: dict[str, int], places: Places, seed: int, injuries: int
) -> None:
    made = plan(seed, injuries, tickets, places)

    assert len(made) == injuries
    for occasion, injury in made.items():
        assert (occasion.step, occasion.boundary) in places[injury]
        assert 1 <= occasion.number <= tickets[occasion.step]


@given(seed=st.integers())
def test_no_kind_of_injury_is_left_out_of_a_long_enough_plan(seed: int) -> None:
    assert set(plan(seed, len(VALIDATION), TICKETS, VALIDATION).values()) == set(VALIDATION)
    assert set(plan(seed, len(CHAT), TURNS, CHAT).values()) == set(CHAT)


def test_an_injury_without_a_fitting_step_is_left_out_of_the_plan() -> None:
    without = {step: count for step, count in TICKETS.items() if step != COMMAND}

    assert set(VALIDATION) - set(plan(1, 60, without, VALIDATION).values()) == {
        Injury.KILL_COMMAND,
        Injury.NO_ROOM,
    }


def test_work_processes_are_killed_at_every_boundary() -> None:
    killed = Counter(
        occasion.boundary
        for seed in range(40)
        for occasion, injury in plan(seed, 40, TICKETS, VALIDATION).items()
        if injury is Injury.KILL_WORKER
    )

    assert set(killed) == set(Boundary)


def test_a_report_has_no_mid_work_and_the_first_hint_is_the_caller_s() -> None:
    assert not any(("report", Boundary.MID_WORK) in places for places in VALIDATION.values())
    assert not any(("validate", Boundary.BEFORE_HINT) in places for places in VALIDATION.values())


@pytest.mark.parametrize("tickets", [{}, {"fix": 3}])
def test_more_injuries_than_there_are_places_for_are_refused(tickets: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="take more workflows"):
        plan(1, 60, tickets, VALIDATION)


def test_every_injury_applies_to_workers_or_chat_players() -> None:
    assert {*VALIDATION, *CHAT} == set(Injury)
    assert set(CYCLE) == set(HANDOFF) == set(VALIDATION)
