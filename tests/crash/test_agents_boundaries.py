"""
Death at every boundary of every step of cycles and handoffs, on the real engine, step handlers and the store in memory.

The measure is that of tests/crash/test_boundaries.py: state, messages, history and named files as undisturbed, and
nothing done again but what its worker died over.
"""

import os
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Final

import pytest

from tests.contract.test_profiles import CYCLE_TICKETS, HANDOFF_TICKETS
from tests.crash.agents_rerun import AgentsRerun
from tests.crash.rerun import Boundary, Ending, Point, Scene

pytestmark = pytest.mark.slow

SCENES: Final = {
    "S17": Scene("cd: unclear ok; vas: no ok", kind="cycle"),
    "S22": Scene("cd: stuck", kind="cycle", notify=True),
    "S23": Scene("reviewer: no ok", kind="handoff"),
    "S24": Scene("planner: note ok; builder: !bad bad", kind="handoff"),
    "no answer": Scene("ra: bad", kind="cycle"),
    "plan": Scene("cd: plan ok", kind="cycle"),
    "fatal": Scene("planner: fatal", kind="handoff"),
    "asks": Scene("builder: ask", kind="handoff", notify=True),
    "cd outside": Scene("", kind="cycle", outside=("cd",)),
    "planner outside": Scene("", kind="handoff", outside=("planner",)),
}
TICKETS: Final = {
    "S17": CYCLE_TICKETS,
    "S22": ["ra.1.1", "ep.1.1", "cd.1.1", "notify.6"],
    "S23": HANDOFF_TICKETS,
    "S24": ["planner.1.1", "builder.1.1", "builder.1.2", "builder.1.3"],
    "no answer": ["ra.1.1", "ra.2.1"],
    "plan": ["ra.1.1", "ep.1.1", "cd.1.1", "ep.2.1", "cd.2.1", "vas.1.1", "finish.1"],
    "fatal": ["planner.1.1"],
    "asks": ["planner.1.1", "builder.1.1", "notify.3"],
    "cd outside": ["ra.1.1", "ep.1.1", "letter.cd.1.1", "letter.cd.2.1"],
    "planner outside": ["letter.planner.1.1"],
}
WAITS: Final = {
    "S22": "blocker",
    "S24": "retries_exhausted",
    "no answer": "invalid_response",
    "fatal": "fatal_error",
    "asks": "spec_ambiguity",
    "cd outside": "timeout",
    "planner outside": "timeout",
}
"""The question to a person at the end, and its reason."""
REPEATING: Final = (Boundary.MID_WORK, Boundary.BEFORE_COMMIT)


@cache
def undisturbed(name: str) -> tuple[Ending, tuple[Point, ...], Counter[str], AgentsRerun]:
    """Its end, every point on the way, the work done, and by whom."""
    rerun = AgentsRerun(SCENES[name])
    return rerun.play(), tuple(rerun.passed), rerun.executed, rerun


def assert_as_undisturbed(name: str, rerun: AgentsRerun, dies_at: Iterable[Point] = ()) -> None:
    ending, _, executed, calm = undisturbed(name)
    assert rerun.play() == ending
    # One that is sent again is the same letter.
    assert set(rerun.letters) == set(calm.letters)
    again = {point.what for point in dies_at if point.boundary in REPEATING}
    assert rerun.executed == executed + Counter(what for what in executed if what in again)


@pytest.mark.parametrize("name", SCENES)
def test_an_undisturbed_scene_does_each_step_once_and_reaches_each_boundary(name: str) -> None:
    ending, points, executed, calm = undisturbed(name)

    assert set(calm.letters.values()) <= {1}
    assert list(executed) == TICKETS[name]
    waiting = [*ending.state.get("escalations", ()), *ending.state.get("questions", ())]
    assert [opened["reason"] for opened in waiting][-1:] == [
        why for scene, why in WAITS.items() if scene == name
    ]
    assert set(executed.values()) == {1}
    assert {Point(boundary, what) for what in executed for boundary in Boundary} <= set(points)


def every_single_death() -> list[object]:
    """All with CRASH_ALL=1, as `make chaos` has them; else those of S17 and S23 that a supervisor sees."""
    is_all = bool(os.environ.get("CRASH_ALL"))
    return [
        pytest.param(name, point, is_seen, id=f"{name}, {point}, {'seen' if is_seen else 'unseen'}")
        for name in (SCENES if is_all else ["S17", "S23", "cd outside", "planner outside"])
        for point in undisturbed(name)[1]
        for is_seen in ((True, False) if is_all else (True,))
    ]


@pytest.mark.proves("S30", "R14", "R7", "R8")
@pytest.mark.parametrize(("name", "point", "is_seen"), every_single_death())
def test_a_worker_that_dies_once_changes_nothing(name: str, point: Point, is_seen: bool) -> None:
    rerun = AgentsRerun(SCENES[name], [point], is_seen=is_seen)

    assert_as_undisturbed(name, rerun, [point])


@pytest.mark.proves("S30", "R14", "D49")
@pytest.mark.parametrize("shift", range(len(Boundary)))
@pytest.mark.parametrize("name", SCENES)
def test_workers_that_die_in_each_step_change_nothing(name: str, shift: int) -> None:
    points = undisturbed(name)[1]
    dies_at = []
    for place, what in enumerate(dict.fromkeys(point.what for point in points)):
        of_step = [point for point in points if point.what == what]
        dies_at.append(of_step[(place + shift) % len(of_step)])

    rerun = AgentsRerun(SCENES[name], dies_at, is_seen=shift % 2 == 0)

    assert_as_undisturbed(name, rerun, dies_at)


@pytest.mark.proves("S30", "R7", "R8", "D49")
@pytest.mark.parametrize("boundary", Boundary)
@pytest.mark.parametrize("name", ["S17", "S23", "cd outside"])
def test_a_copy_of_every_message_sent_to_a_second_worker_changes_nothing(
    name: str, boundary: Boundary
) -> None:
    assert_as_undisturbed(name, AgentsRerun(SCENES[name], copies_at=boundary))
