"""What a user does to a run: Ctrl-C, a repeated command, another tree, a second terminal."""

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from fixloop.testing.processes import comes
from tests.crash.ledger import EXECUTIONS, ISSUE, change_the_tree, untouched
from tests.crash.scene import LONGEST_SECONDS, Scene
from tests.fixtures.patience import slack
from tests.fixtures.repositories import git

pytestmark = pytest.mark.slow


def begun(scene: Scene, execution: str) -> bool:
    return execution in scene.executions()


def has_members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.proves("R14")
def test_ctrl_c_ends_everything_in_order_and_one_line_says_how_to_continue(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "scene")
    before = untouched(scene.project)
    process = scene.start(*scene.run_words)
    assert comes(lambda: begun(scene, "fix test-runner 1"), LONGEST_SECONDS), scene.said()

    os.killpg(process.pid, signal.SIGINT)
    interrupted = scene.ended(process)

    assert interrupted.code == 130, scene.said()
    plan, *said = [line for line in interrupted.err.splitlines()[1:] if not line.startswith("  ")]
    assert plan.startswith("checks in ")
    assert said == [f"interrupted; continue with `fixloop resume {ISSUE}`"]
    assert interrupted.seconds < slack(20)
    assert comes(lambda: not scene.survivors(), LONGEST_SECONDS), scene.survivors()
    assert list((scene.cache / "work").iterdir()) == []
    assert untouched(scene.project) == before

    resumed = scene.call(*scene.resume_words)

    assert resumed.code == 0, scene.said()
    assert set(Counter(scene.executions()) - Counter(EXECUTIONS)) <= {"fix test-runner 1"}
    assert untouched(scene.project) == before


def test_a_repeated_run_joins_refuses_another_tree_and_repairs_a_lost_branch(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "scene")
    scene.die_at("after claim/test-runner.recheck.2.1", *scene.run_words)
    notes = scene.project / "notes.txt"
    as_it_was = notes.read_text()

    change_the_tree(scene.project)
    refused = scene.call(*scene.run_words)
    notes.write_text(as_it_was)
    joined = scene.call(*scene.run_words)

    assert (refused.code, refused.out) == (2, "")
    assert "is live on another tree" in refused.err
    assert all(word in refused.err for word in (f"fixloop cancel {ISSUE}", "--restart"))
    assert joined.code == 0, scene.said()
    assert f"issue {ISSUE}: ledger, workflow" in joined.err
    assert scene.executions() == EXECUTIONS

    tip = git(scene.project, "rev-parse", f"fixloop/{ISSUE}")
    git(scene.project, "update-ref", "-d", f"refs/heads/fixloop/{ISSUE}")
    again = scene.call(*scene.resume_words)

    assert again.code == 0
    assert again.out
    assert joined.out.endswith(again.out)
    assert git(scene.project, "rev-parse", f"fixloop/{ISSUE}") == tip
    assert scene.executions() == EXECUTIONS


@pytest.mark.parametrize("dies", [False, True], ids=["undisturbed", "killed before that"])
def test_a_run_does_not_end_before_the_person_who_has_to_decide_was_notified(
    dies: bool, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    command = f"cat > {tmp_path}/part; sleep 0.5; mv {tmp_path}/part {told}"
    scene = Scene(tmp_path / "scene", f'max_iterations = 1\nnotify = ["sh", "-c", "{command}"]\n')
    if dies:
        scene.die_at("after commit/test-runner.validate.1.1", *scene.run_words)

    ended = scene.call(*(scene.resume_words if dies else scene.run_words))

    assert ended.code == 3, scene.said()
    assert f"fixloop decide {ISSUE} manual-fix" in ended.out
    assert "Escalation" in told.read_text()


@pytest.mark.proves("R14", "S30")
def test_a_second_run_of_the_issue_finishes_the_work_of_a_dead_first(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "scene")
    first = scene.start(*scene.run_words)
    assert comes(lambda: begun(scene, "check ledger.txt with 3 bad"), LONGEST_SECONDS), scene.said()
    second = scene.start(*scene.run_words)
    assert comes(lambda: begun(scene, "fix test-runner 2"), LONGEST_SECONDS), scene.said()

    # The program alone: its worker has to notice by itself.
    os.kill(first.pid, signal.SIGKILL)
    assert scene.ended(first).code == -signal.SIGKILL
    assert comes(lambda: not has_members(first.pid), LONGEST_SECONDS), scene.survivors()
    ended = scene.ended(second)

    assert ended.code == 0, scene.said()
    again = Counter(scene.executions()) - Counter(EXECUTIONS)
    assert again.total() <= 1, again
    assert scene.ending().audited == 0
