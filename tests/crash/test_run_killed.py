"""`kill -9` of all of `fixloop run` at every boundary and at random moments, then `fixloop resume`.

The measure: message for message, status, commits and final tree as undisturbed, each fix made once. Only what the
killed step had begun may run again. No process is left, and the user's checkout is as it was.

All points one by one take an hour on two cores, so only some are tried unless CRASH_ALL=1 is set.
"""

import os
import random
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from fixloop.testing.processes import comes
from tests.crash.ledger import EXECUTIONS, ISSUE, STEPS, Step, untouched
from tests.crash.scene import LONGEST_SECONDS, Ended, Ending, Scene
from tests.fixtures.repositories import git

pytestmark = pytest.mark.slow

STARTING: Final = ("before Redis", "Redis starting", "snapshot taken", "created", "no worker yet")
ENDING: Final = ("draining", "before branch")
BOUNDARIES: Final = (
    "before claim",
    "after claim",
    "before commit",
    "after commit",
    "before hint",
    "after hint",
)
REPEATING: Final = ("amid work", "before commit")
"""Where a step's command has started and its result is not stored."""

CHAINS: Final = (
    (
        "before claim/test-runner.validate.1.1",
        "amid work/test-runner.fix.1.1",
        "after commit/code-quality.fix.1.1",
    ),
    (
        "after claim/test-runner.recheck.2.1",
        "before receipt/test-runner.fix.2.1",
        "after hint/test-runner.recheck.3.1",
    ),
    ("before hint/test-runner.report.1.1", "before commit/code-quality.fix.1.1", "draining"),
    ("after receipt/test-runner.fix.1.1", "amid work/code-quality.recheck.2.1", "before branch"),
)
"""Every boundary once, over different steps; a run that dies three times is also a run that dies once."""

GOING_ON: Final = (
    (
        "after commit/test-runner.validate.1.1",
        "after commit/test-runner.report.1.1",
        "before commit/test-runner.recheck.2.1",
    ),
    (
        "after commit/test-runner.fix.1.1",
        "amid work/test-runner.recheck.3.1",
        "after commit/code-quality.fix.1.1",
    ),
)
"""If a process continues, the commit has claimed the next step by then, and it has not started."""

_RANDOM: Final = random.Random(47)
MOMENTS: Final = [_RANDOM.uniform(0.02, 1.0) for _ in range(20)]


class Undisturbed(NamedTuple):
    """The run without a death."""

    ended: Ended
    ending: Ending


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    scene = Scene(tmp_path_factory.mktemp("undisturbed"))
    before = untouched(scene.project)
    ended = scene.call(*scene.run_words)
    assert (ended.code, scene.executions()) == (0, EXECUTIONS), scene.said()
    assert untouched(scene.project) == before
    assert list(scene.temporary.iterdir()) == []
    return Undisturbed(ended, scene.ending())


def every_point() -> Iterable[str]:
    yield from (*STARTING, *ENDING)
    for step in STEPS:
        further = (("amid work",) if step.execution else ()) + (
            ("before receipt", "after receipt") if step.execution.startswith("fix") else ()
        )
        yield from (f"{boundary}/{step.ticket}" for boundary in (*BOUNDARIES, *further))


def points_of_continuing_workers() -> Iterable[str]:
    for step in STEPS:
        amid = ("amid work",) if step.execution else ()
        yield from (f"{boundary}/{step.ticket}" for boundary in (*amid, "before commit", "after commit"))


def chosen(all_of: list[tuple[str, ...]], sample: list[tuple[str, ...]]) -> list[object]:
    found = all_of if os.environ.get("CRASH_ALL") else sample
    return [pytest.param(points, id=", ".join(points)) for points in found]


@pytest.mark.proves("R14", "S30")
@pytest.mark.parametrize("points", chosen([(point,) for point in every_point()], [STARTING, *CHAINS]))
def test_a_run_killed_at_these_points_ends_as_if_undisturbed(
    points: tuple[str, ...],
    tmp_path: Path,
    undisturbed: Undisturbed,
    record_property: Callable[[str, object], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FIXLOOP_GO_ON", "0")
    scene = Scene(tmp_path / "scene")
    before = untouched(scene.project)

    for number, point in enumerate(points):
        scene.die_at(point, *(scene.run_words if number == 0 or point in STARTING else scene.resume_words))
        assert_no_process_survives(scene)
        assert untouched(scene.project) == before
    ended = scene.go_on()
    record_property("resumed_seconds", round(ended.seconds, 1))

    assert_as(undisturbed, scene, ended)
    assert untouched(scene.project) == before
    again = [step.execution for step in STEPS for point in points if repeats(point, step)]
    assert Counter(scene.executions()) == Counter(EXECUTIONS + again)


@pytest.mark.proves("R7", "R14", "S30")
@pytest.mark.parametrize(
    "points", chosen([(point,) for point in points_of_continuing_workers()], list(GOING_ON))
)
def test_a_run_whose_process_continues_ends_as_if_undisturbed(
    points: tuple[str, ...], tmp_path: Path, undisturbed: Undisturbed
) -> None:
    scene = Scene(tmp_path / "scene")

    for number, point in enumerate(points):
        scene.die_at(point, *(scene.resume_words if number else scene.run_words))
        assert_no_process_survives(scene)
    ended = scene.go_on()

    assert_as(undisturbed, scene, ended)
    again = [step.execution for step in STEPS for point in points if repeats(point, step)]
    assert Counter(scene.executions()) == Counter(EXECUTIONS + again)


@pytest.mark.proves("R14", "S30")
@pytest.mark.parametrize("part", MOMENTS if os.environ.get("CRASH_ALL") else MOMENTS[:2], ids="{:.3f}".format)
def test_a_run_killed_at_a_random_moment_ends_as_if_undisturbed(
    part: float, tmp_path: Path, undisturbed: Undisturbed, record_property: Callable[[str, object], None]
) -> None:
    scene = Scene(tmp_path / "scene")
    before = untouched(scene.project)

    scene.die_after(part * undisturbed.ended.seconds, *scene.run_words)
    # At once: a process about to end, such as the keeper of the Redis, must not interfere.
    ended = scene.go_on()
    record_property("resumed_seconds", round(ended.seconds, 1))

    assert_as(undisturbed, scene, ended)
    assert untouched(scene.project) == before
    again = Counter(scene.executions()) - Counter(EXECUTIONS)
    assert again.total() <= 1, again


def repeats(point: str, step: Step) -> bool:
    """Whether dying at `point` makes a step run its command a second time."""
    boundary, _, ticket = point.partition("/")
    return ticket == step.ticket and boundary in REPEATING and bool(step.execution)


def assert_no_process_survives(scene: Scene) -> None:
    assert comes(lambda: not scene.survivors(), LONGEST_SECONDS), f"{scene.survivors()} survived"


def assert_as(undisturbed: Undisturbed, scene: Scene, ended: Ended) -> None:
    assert ended.code == 0, scene.said()
    assert ended.out.splitlines()[-1] == undisturbed.ended.out.splitlines()[-1]
    found = scene.ending()
    assert found.messages == undisturbed.ending.messages
    assert found == undisturbed.ending
    completions = Counter(
        (message["message_id"], message["rendered"])
        for message in found.messages
        if message["message_type"] == "fix-completion"
    )
    assert set(completions.values()) == {1}
    assert git(scene.project, "rev-parse", f"refs/fixloop/{ISSUE}/tip") == git(
        scene.project, "rev-parse", f"fixloop/{ISSUE}"
    )
    assert_no_process_survives(scene)
    # One whose removal was interrupted has no owner any more, and has to be a minute old to be nobody's.
    left = [path.parent.name for path in scene.cache.glob("work/*/.owner")]
    assert left == [], f"workspaces of the dead were left: {left}"
