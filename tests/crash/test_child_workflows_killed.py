"""`kill -9` of all of `fixloop run` while a child workflow does an agent's work, then `fixloop resume` (S30).

At each place where the two hear of each other: the child begins, its ticket is put off, it works, its end wakes the
ticket, its end is the ticket's answer. One way in `make test`, all with CRASH_ALL=1.
"""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from fixloop.engine.bridging import child_of
from tests.crash.agents_scene import AgentsEnding, AgentsScene
from tests.crash.ledger import ISSUE

pytestmark = pytest.mark.slow

EVERY = pytest.mark.skipif(not os.environ.get("CRASH_ALL"), reason="minutes; CRASH_ALL=1 has them")
CHILDS: Final = "unit-test.validate.1.1"
WAYS: Final = {
    "begun": ("before child/{}", "after child/{}", "before putting off/{}", "after putting off/{}"),
    "working": (f"after claim/{CHILDS}", f"amid work/{CHILDS}", f"before commit/{CHILDS}"),
    "heard": ("after word/{}", "child ended/{}", "before commit/{}", "after commit/{}"),
    "unheard": (f"after commit/{CHILDS}",),
    "unsaid": ("before word/{}",),
}
"""`{}` is the ticket that the child works for; whose end goes unheard or unsaid is found after a minute."""
REPEATING: Final = (f"amid work/{CHILDS}", f"before commit/{CHILDS}")


class Judged(NamedTuple):
    """A profile one of whose agents is a validation loop."""

    profile: str
    agent: str

    @property
    def ticket(self) -> str:
        """The end of the id of its first ticket."""
        return f"{self.agent}.1.1"

    def scene(self, folder: Path) -> AgentsScene:
        return AgentsScene(folder, self.profile, self.agent)


HANDOFF, CYCLE = Judged("handoff", "reviewer"), Judged("cycle", "vas")


class Undisturbed:
    """The result of each scene without a death, and who ran."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found: dict[Judged, tuple[AgentsEnding, Counter[str]]] = {}

    def of(self, judged: Judged) -> tuple[AgentsEnding, Counter[str]]:
        if judged not in self._found:
            scene = judged.scene(self._folder / judged.profile)
            assert scene.call(*scene.run_words).code == 0, scene.said()
            self._found[judged] = scene.came_to(), Counter(scene.executions())
        return self._found[judged]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    return Undisturbed(tmp_path_factory.mktemp("undisturbed"))


@pytest.mark.proves("S30", "R14", "R8")
@pytest.mark.parametrize(
    ("judged", "points"),
    [
        pytest.param(HANDOFF, ("after child/{}",), id="handoff-sample"),
        *(
            pytest.param(judged, points, id=f"{judged.profile}-{way}", marks=EVERY)
            for judged in (HANDOFF, CYCLE)
            for way, points in WAYS.items()
        ),
    ],
)
def test_a_run_killed_while_a_workflow_works_for_it_ends_as_if_undisturbed(
    judged: Judged, points: tuple[str, ...], undisturbed: Undisturbed, tmp_path: Path
) -> None:
    ending, ran = undisturbed.of(judged)
    scene = judged.scene(tmp_path / "scene")

    for number, point in enumerate(points):
        scene.die_at(point.format(judged.ticket), *(scene.resume_words if number else scene.run_words))
    ended = scene.go_on()

    assert ended.code == 0, scene.said()
    assert scene.came_to() == ending
    again = sum(point in REPEATING for point in points)
    assert Counter(scene.executions()) == ran + Counter(check=again)


@EVERY
@pytest.mark.proves("S30", "K20")
def test_a_child_that_missed_its_parent_s_end_is_cancelled_before_its_next_step(tmp_path: Path) -> None:
    scene = HANDOFF.scene(tmp_path / "scene")
    scene.die_at(f"after claim/{CHILDS}", *scene.run_words)
    parent = json.loads(scene.call("status", str(ISSUE), "--json").out)["workflow_id"]

    scene.die_at("cancelled", "cancel", parent)
    ended = scene.call("resume", child_of(f"{parent}.{HANDOFF.ticket}"))

    assert (ended.code, "cancelled" in ended.out) == (1, True), scene.said()
    assert "check" not in scene.executions()
