"""Death at every boundary of every step, on the real engine and the store in memory, by a virtual clock.

The measure: state, messages and history as undisturbed, and nothing done again but what its worker died over.
With real processes, a sample of this is tests/crash/test_run_killed.py, and `fixloop chaos`.
"""

import os
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Final

import pytest

from fixloop.protocol.events import DecisionMade
from fixloop.protocol.messages import Decision
from fixloop.protocol.state import Limits
from tests.crash.rerun import Boundary, Ending, Point, Rerun, Scene

pytestmark = pytest.mark.slow

BACK_END: Final = ("unit-test", "integration-test", "test-runner", "code-quality", "security")
SCENES: Final = {
    "S2": Scene("a -"),
    "S4": Scene("abcde abcd abc ab a"),
    # Without the iteration's cap, which is due at the same moment as the reminder: either may be recorded first.
    "S6": Scene("a", fixer="outside", limits=Limits(iteration_seconds=None)),
    "S12": Scene(
        "abcde abcd abc ab a f -", decisions=(DecisionMade(decision=Decision.EXTEND, iterations=3, by="ann"),)
    ),
    "rejected": Scene(
        "a b - -",
        held=("test-runner.recheck.3.1",),
        decisions=(DecisionMade(decision=Decision.REJECT, reason="the test was right", by="ann"),),
    ),
    "accepted": Scene(
        "a - -",
        held=("test-runner.recheck.2.1",),
        decisions=(DecisionMade(decision=Decision.ACCEPT, by="ben"),),
    ),
    "S16": Scene("test-runner: abc b -; security: a -", BACK_END),
    "S31": Scene("test-runner: abc b -; security: a -; unit-test: - u -", BACK_END),
}
LINES: Final = {"S2": 6, "S4": 18, "S6": 5, "S12": 27, "rejected": 15, "accepted": 7, "S16": 22, "S31": 29}
REPEATING: Final = (Boundary.MID_WORK, Boundary.BEFORE_COMMIT)
"""Where the work has started and its result is not stored."""


@cache
def undisturbed(name: str) -> tuple[Ending, tuple[Point, ...], Counter[str]]:
    """Its end, every point on the way, and the work done."""
    rerun = Rerun(SCENES[name])
    return rerun.play(), tuple(rerun.passed), rerun.executed


def one_in_each_step(name: str, shift: int) -> list[Point]:
    """One boundary of each step, a different one in each shift: seven shifts cover all."""
    points = undisturbed(name)[1]
    chosen = []
    for place, what in enumerate(dict.fromkeys(point.what for point in points)):
        of_step = [point for point in points if point.what == what]
        chosen.append(of_step[(place + shift) % len(of_step)])
    return chosen


def assert_as_undisturbed(name: str, rerun: Rerun, dies_at: Iterable[Point] = ()) -> None:
    ending, _, executed = undisturbed(name)
    assert rerun.play() == ending
    again = {point.what for point in dies_at if point.boundary in REPEATING}
    assert rerun.executed == executed + Counter(what for what in executed if what in again)


@pytest.mark.parametrize("name", SCENES)
def test_an_undisturbed_scene_sends_its_messages_and_reaches_each_boundary(name: str) -> None:
    ending, points, executed = undisturbed(name)

    assert len(ending.messages) == LINES[name]
    assert {Point(boundary, what) for what in executed for boundary in Boundary} <= set(points)
    assert set(executed.values()) == {1}


@pytest.mark.proves("S30", "R14", "R7", "R8")
@pytest.mark.parametrize("shift", range(len(Boundary)))
@pytest.mark.parametrize("name", SCENES)
def test_workers_that_die_in_each_step_change_nothing(name: str, shift: int) -> None:
    dies_at = one_in_each_step(name, shift)

    # In turn, a supervisor sees it at once or the lease has to run out.
    rerun = Rerun(SCENES[name], dies_at, is_seen=shift % 2 == 0)

    assert_as_undisturbed(name, rerun, dies_at)


def test_the_shifts_cover_every_boundary() -> None:
    for name in SCENES:
        died = {point for shift in range(len(Boundary)) for point in one_in_each_step(name, shift)}
        assert died == set(undisturbed(name)[1])


def every_single_death() -> list[object]:
    """All with CRASH_ALL=1, as `make chaos` has them; else those of S2."""
    return [
        pytest.param(name, point, is_seen, id=f"{name}, {point}, {'seen' if is_seen else 'unseen'}")
        for name in (SCENES if os.environ.get("CRASH_ALL") else ["S2"])
        for point in undisturbed(name)[1]
        for is_seen in (True, False)
    ]


@pytest.mark.proves("S30", "R14", "R7", "R8")
@pytest.mark.parametrize(("name", "point", "is_seen"), every_single_death())
def test_a_worker_that_dies_once_changes_nothing(name: str, point: Point, is_seen: bool) -> None:
    rerun = Rerun(SCENES[name], [point], is_seen=is_seen)

    assert_as_undisturbed(name, rerun, [point])


@pytest.mark.proves("S30", "R7", "R8")
@pytest.mark.parametrize("boundary", Boundary)
@pytest.mark.parametrize("name", ["S2", "S6", "S31"])
def test_a_copy_of_every_message_sent_to_a_second_worker_changes_nothing(
    name: str, boundary: Boundary
) -> None:
    assert_as_undisturbed(name, Rerun(SCENES[name], copies_at=boundary))


def deaths_of_continuing_workers() -> list[object]:
    """After a commit is between it and the start of the step that was claimed with it."""
    going = {
        name: Rerun(SCENES[name], goes_on=True)
        for name in (SCENES if os.environ.get("CRASH_ALL") else ["S2"])
    }
    return [
        pytest.param(name, point, is_seen, id=f"{name}, {point}, {'seen' if is_seen else 'unseen'}")
        for name, rerun in going.items()
        if rerun.play()
        for point in rerun.passed
        for is_seen in (True, False)
    ]


@pytest.mark.proves("S30", "R7", "R8")
@pytest.mark.parametrize(("name", "point", "is_seen"), deaths_of_continuing_workers())
def test_a_worker_that_dies_after_continuing_changes_nothing(name: str, point: Point, is_seen: bool) -> None:
    rerun = Rerun(SCENES[name], [point], is_seen=is_seen, goes_on=True)

    assert_as_undisturbed(name, rerun, [point])


@pytest.mark.parametrize("name", SCENES)
def test_continuing_in_one_process_leads_to_the_same_end(name: str) -> None:
    rerun = Rerun(SCENES[name], goes_on=True)

    assert_as_undisturbed(name, rerun)
    claimed = [point for point in rerun.passed if point.boundary is Boundary.BEFORE_CLAIM]
    assert len(claimed) < len(rerun.executed)
