"""`kill -9` of all of `fixloop run` in each step of S17 and of S23 in turn, then `fixloop resume` (S30).

Only with CRASH_ALL=1: a way through dies once in each step, each way at other boundaries. In
`make test` work processes of both scenes die in tests/e2e/test_s21_s27_at_work.py, and all points are passed in
memory in test_agents_boundaries.py.
"""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.contract.test_profiles import CYCLE_TICKETS, HANDOFF_TICKETS
from tests.crash.agents_scene import AgentsEnding, AgentsScene

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("CRASH_ALL"), reason="minutes; CRASH_ALL=1 has them"),
]

BOUNDARIES: Final = (
    "before claim",
    "after claim",
    "before receipt",
    "after receipt",
    "amid work",
    "before commit",
    "after commit",
    "before hint",
    "after hint",
)
OF_AGENTS: Final = ("before receipt", "after receipt", "amid work")
FOLLOWING: Final = ("before hint", "after hint")
REPEATING: Final = ("amid work", "before commit")
TICKETS: Final = {"cycle": CYCLE_TICKETS, "handoff": HANDOFF_TICKETS}


class Undisturbed(NamedTuple):
    """The result of a profile's scene without a death, and who ran."""

    profile: str
    ending: AgentsEnding
    ran: Counter[str]


@pytest.fixture(scope="module", params=TICKETS)
def undisturbed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    scene = AgentsScene(tmp_path_factory.mktemp("undisturbed"), request.param)
    assert scene.call(*scene.run_words).code == 0, scene.said()
    return Undisturbed(request.param, scene.came_to(), Counter(scene.executions()))


def points(profile: str, shift: int) -> Sequence[str]:
    """One of each step; the last one's run may end before its worker looks for the next ticket."""
    chosen = []
    for place, ticket in enumerate(TICKETS[profile]):
        boundary = BOUNDARIES[(place + shift) % len(BOUNDARIES)]
        without = OF_AGENTS if ticket.startswith("finish") else ()
        if boundary in without or (ticket == TICKETS[profile][-1] and boundary in FOLLOWING):
            boundary = "after commit"
        chosen.append(f"{boundary}/{ticket}")
    return chosen


@pytest.mark.proves("S30", "R14", "R7")
@pytest.mark.parametrize("shift", range(len(BOUNDARIES)))
def test_a_run_killed_in_each_step_ends_as_if_undisturbed(
    undisturbed: Undisturbed, shift: int, tmp_path: Path
) -> None:
    scene = AgentsScene(tmp_path / "scene", undisturbed.profile)
    dies_at = points(undisturbed.profile, shift)

    for number, point in enumerate(dies_at):
        scene.die_at(point, *(scene.resume_words if number else scene.run_words))
    ended = scene.go_on()

    assert ended.code == 0, scene.said()
    assert scene.came_to() == undisturbed.ending
    tickets = [point.partition("/")[2] for point in dies_at if point.startswith(REPEATING)]
    # No agent finishes a cycle.
    again = Counter(ticket.split(".")[0] for ticket in tickets if not ticket.startswith("finish"))
    assert Counter(scene.executions()) == undisturbed.ran + again
