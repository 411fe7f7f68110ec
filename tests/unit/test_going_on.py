"""Whether a process continues with the following step (docs/decisions/0050): the pure part of the decision."""

from threading import Event
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.fixtures.store_samples import QUEUE, ticket
from workers.steps.going_on import MOST_SECONDS, MOST_STEPS, Going, may_go_on

BEGUN: dict[str, Any] = {"serves": {QUEUE}, "speaks": False, "steps": 1, "own_seconds": 0.0}


def test_a_process_continues_in_a_queue_that_it_serves() -> None:
    assert may_go_on(ticket("b"), **BEGUN) == "first"


@pytest.mark.parametrize(
    "against", [{"serves": {"fixloop.other"}}, {"steps": MOST_STEPS}, {"own_seconds": MOST_SECONDS}]
)
def test_each_bound_returns_the_workflow_to_the_broker(against: dict[str, Any]) -> None:
    assert not may_go_on(ticket("b"), **{**BEGUN, **against})


def test_a_step_that_only_sends_messages_continues_in_any_queue() -> None:
    assert may_go_on(ticket("b"), **{**BEGUN, "serves": set(), "speaks": True}) == "past waiting"


@pytest.mark.parametrize("later", [{"attempt": 2}, {"delay_seconds": 1.0}])
def test_further_attempts_and_delays_are_left_to_celery(later: dict[str, Any]) -> None:
    assert not may_go_on(ticket("b", **later), **BEGUN)


@given(
    steps=st.integers(1, 40),
    own=st.floats(0, 1),
    serves=st.sets(st.sampled_from([QUEUE, "fixloop.fix"])),
    speaks=st.booleans(),
    more_steps=st.integers(0, 40),
    more=st.floats(0, 1),
)
def test_a_process_that_may_not_continue_may_not_later_either(
    steps: int, own: float, serves: set[str], speaks: bool, more_steps: int, more: float
) -> None:
    now = may_go_on(ticket("b"), serves=serves, speaks=speaks, steps=steps, own_seconds=own)
    later = may_go_on(
        ticket("b"), serves=serves, speaks=speaks, steps=steps + more_steps, own_seconds=own + more
    )

    assert now or not later
    assert not now or (steps < MOST_STEPS and own < MOST_SECONDS)


def test_the_time_of_checks_and_fixers_is_not_a_process_s_own() -> None:
    times = iter([100.0, 100.01, 160.01, 160.03])
    going = Going(lambda: next(times))

    with going.working():
        pass

    assert going.own_seconds() == pytest.approx(0.03)


def test_waiting_for_a_check_gives_a_process_no_more_time_of_its_own() -> None:
    going = Going()

    with going.working():
        Event().wait(0.02)

    assert 0 <= going.own_seconds() < MOST_SECONDS
