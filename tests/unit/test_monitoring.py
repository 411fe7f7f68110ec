"""The checks of the main agent that the log derives: every two minutes of engine time while it is awaited."""

from datetime import timedelta

import pytest

from fixloop.protocol import events as ev
from fixloop.protocol.messages import MAIN_AGENT
from fixloop.protocol.monitoring import Look, Tick, running, ticks
from fixloop.protocol.specialists import Status
from fixloop.protocol.state import Limits, State
from tests.fixtures.script import SILENT, fails
from tests.fixtures.validation_stage import START, Stage

MINUTE = 60.0


def looks(stage: Stage) -> list[Look]:
    """The workflow's state after each event."""
    states = [State.model_validate_json(snapshot) for snapshot in stage.snapshots]
    return [
        Look(n, moment.at, moment.clock, state.active.status, state.held is not None or state.ended)
        for n, ((_, moment), state) in enumerate(zip(stage.applied, states, strict=True), 1)
    ]


def seen(stage: Stage) -> list[Tick]:
    present = Look(0, stage.now.at, stage.now.clock, Status.PENDING)
    return list(ticks(looks(stage), present))


def waiting() -> Stage:
    """The report is sent at 0; no answer comes by itself."""
    return Stage([fails("a")], answers=None).run()


def minutes(found: list[Tick]) -> list[float]:
    return [tick.elapsed_seconds / MINUTE for tick in found]


@pytest.mark.proves("B30", "K39")
def test_s6_a_silent_agent_is_checked_every_two_minutes_before_and_after_its_reminder() -> None:
    stage = waiting().advance_to(30 * MINUTE + 1)

    found = seen(stage)
    stage.advance_to(50 * MINUTE)

    assert minutes(found) == list(range(2, 31, 2))
    assert minutes(seen(stage)) == list(range(2, 35, 2))
    assert found[0] == Tick(START + timedelta(minutes=2), MAIN_AGENT, 120.0, Status.AWAITING_FIX, 3)


@pytest.mark.proves("B30")
def test_a_status_check_has_the_status_of_its_time() -> None:
    stage = waiting().advance_to(3 * MINUTE)
    stage.acknowledge()
    stage.advance_to(5 * MINUTE)

    assert [tick.status for tick in seen(stage)] == [Status.AWAITING_FIX, Status.FIXING]
    assert minutes(seen(stage)) == [2, 4]


@pytest.mark.proves("B30")
def test_status_checks_restart_with_each_request() -> None:
    stage = Stage([fails("a"), fails("b"), SILENT], answers=None).run().advance_to(3 * MINUTE)
    stage.complete()
    stage.run()
    stage.advance_to(6 * MINUTE)

    assert minutes(seen(stage)) == [2, 2]
    stage.complete()
    stage.run()
    stage.advance_to(20 * MINUTE)
    assert minutes(seen(stage)) == [2, 2]


@pytest.mark.proves("B30", "K34")
def test_s34_no_agent_is_checked_while_the_engine_is_away() -> None:
    stage = waiting().advance_to(10 * MINUTE).away(14 * 3600.0).advance(5 * MINUTE)
    stage.complete()

    found = seen(stage)

    assert minutes(found) == [2, 4, 6, 8, 10, 12, 14]
    assert all(tick.at <= stage.now.at for tick in found)


@pytest.mark.proves("B30", "A14")
def test_no_agent_is_checked_during_a_pause() -> None:
    stage = waiting().advance_to(3 * MINUTE)
    stage.pause()
    stage.advance(60 * MINUTE)
    stage.go_on()
    stage.advance(3.5 * MINUTE)

    found = seen(stage)

    assert minutes(found) == [2, 4, 6]
    assert found[1].at == START + timedelta(minutes=64)


@pytest.mark.proves("B30")
def test_no_agent_is_checked_after_the_end_or_while_a_person_decides() -> None:
    cancelled = waiting().advance_to(3 * MINUTE)
    cancelled.apply(ev.Cancelled())
    escalated = waiting().advance_to(35 * MINUTE + 1)
    before = len(seen(escalated))

    assert minutes(seen(cancelled.advance(20 * MINUTE))) == [2]
    assert len(seen(escalated.advance(20 * MINUTE))) == before


def test_a_clock_set_back_causes_no_status_checks() -> None:
    first = Look(1, START, 500.0, Status.AWAITING_FIX)
    second = Look(2, START, 100.0, Status.AWAITING_FIX)

    assert list(ticks([first], second)) == []


def runs(stage: Stage) -> list[tuple[str, float | None, float | None, bool]]:
    """Running operations: name, elapsed and limit in minutes, and whether reminded."""
    return [
        (
            each.name.value,
            None if each.elapsed_seconds is None else each.elapsed_seconds / MINUTE,
            None if each.limit_seconds is None else each.limit_seconds / MINUTE,
            each.reminded,
        )
        for each in running(stage.state, stage.clock, stage.deadlines)
    ]


@pytest.mark.proves("A90")
def test_the_clock_of_an_open_request_runs_with_that_of_its_iteration() -> None:
    stage = waiting().advance_to(12 * MINUTE)

    assert runs(stage) == [("main-agent-fix", 12, 30, False), ("total-iteration", 12, 30, False)]
    stage.advance_to(31 * MINUTE)
    assert runs(stage)[0] == ("main-agent-fix", 31, 30, True)


@pytest.mark.proves("A90", "K34")
def test_a_check_runs_from_its_claim_and_one_that_waits_does_not() -> None:
    stage = Stage([SILENT], limits=Limits(reminder_seconds=10 * MINUTE)).advance(5 * MINUTE)

    assert runs(stage) == [("specialist-validation", None, 30, False)]
    stage.run()
    stage.advance(7 * MINUTE)

    assert runs(stage) == [("specialist-validation", 7, 30, False)]


@pytest.mark.proves("A90", "A14")
def test_a_paused_operation_does_not_age() -> None:
    stage = waiting().advance_to(12 * MINUTE)
    stage.pause()
    stage.advance(60 * MINUTE)

    assert runs(stage) == [("main-agent-fix", 12, 30, False), ("total-iteration", 12, 30, False)]


@pytest.mark.proves("A90", "K6")
def test_without_limits_durations_are_still_reported() -> None:
    limits = Limits(fix_seconds=None, iteration_seconds=None)
    stage = Stage([fails("a")], answers=None, limits=limits).run().advance(3 * MINUTE)

    assert runs(stage) == [("main-agent-fix", 3, None, False), ("total-iteration", 3, None, False)]


@pytest.mark.proves("A90")
def test_nothing_runs_while_a_person_decides() -> None:
    assert runs(Stage([fails("a")] * 3).run()) == []
