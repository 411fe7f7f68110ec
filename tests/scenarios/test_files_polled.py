"""Readers that poll the files of a long workflow while several writers commit versions as fast as they can (K23)."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fixloop.statefiles.named_files import NamedFiles, Stamp
from fixloop.statefiles.rendering import drawn
from tests.fixtures.cycle_stage import CycleStage
from tests.fixtures.handoff_stage import HandoffStage
from tests.scenarios.file_steps import artifacts_of, on_disk

pytestmark = pytest.mark.slow

READER = Path(__file__).with_name("projection_reader.py")
WRITERS = 3
ROUNDS = 8


def text(name: str, round_: int) -> str:
    """A document that fills more than one page, so that half of it would be seen."""
    return f"<{name} {round_} {'x' * 20_000}>"


def long_cycle() -> tuple[list[Any], dict[str, bytes]]:
    names = ("requirements.md", "plan.json", "implementation.md", "validation.md")
    texts = {(name, round_): text(name, round_) for name in names for round_ in range(ROUNDS)}
    stage = CycleStage(max_iterations=ROUNDS + 1)

    def work(key: str, name: str, round_: int, status: str = "success", **facts: Any) -> None:
        stage.now = stage.now.replace(minute=round_, second=stage.now.second + 1)
        stage.start(key)
        stage.report(key, status, f"{name}={texts[name, round_]}", **facts)

    work("ra", "requirements.md", 0)
    work("ep", "plan.json", 0)
    work("cd", "implementation.md", 0)
    for round_ in range(1, ROUNDS):
        work("vas", "validation.md", round_, "failed", issues="[login fails]")
        work("cd", "implementation.md", round_)
    return stage.outcomes, artifacts_of(*texts.values())


def long_handoffs() -> tuple[list[Any], dict[str, bytes]]:
    stage = HandoffStage(max_iterations=2 * ROUNDS).plan().build()
    for _ in range(ROUNDS):
        stage.work("reviewer", status="needs_fixes", issues=1)
        stage.work("fixer", status="fixes_applied")
    return stage.outcomes, {}


def write_all(root: Path, outcomes: list[Any], artifacts: dict[str, bytes]) -> int:
    """All versions in their order; how many of them this writer wrote itself."""
    files, done = NamedFiles(root, "place"), 0
    for version, outcome in enumerate(outcomes, start=1):
        snapshot = outcome.state.model_dump_json(exclude_defaults=True).encode()
        stamp = Stamp(workflow=outcome.state.workflow, version=version)
        written = files.write(stamp, drawn(snapshot, artifacts.get))
        assert written.edited == ()
        done += written.done
    return done


@pytest.mark.proves("K23", "D15", "R13", "C15")
@pytest.mark.parametrize(("name", "run"), [("cycle", long_cycle), ("handoff", long_handoffs)])
def test_a_reader_sees_only_complete_consistent_files_while_several_write(
    tmp_path: Path, name: str, run: Any
) -> None:
    outcomes, artifacts = run()
    root, alone = tmp_path / "polled", tmp_path / "alone"
    root.mkdir()
    alone.mkdir()
    write_all(root, outcomes[:1], artifacts)
    command = [sys.executable, str(READER), str(root), name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "reading\n"

        with ThreadPoolExecutor(WRITERS) as writers:
            written = list(writers.map(lambda _: write_all(root, outcomes, artifacts), range(WRITERS)))

        (root / "stop").touch()
        looks, problem = reader.communicate(timeout=60)
    assert reader.returncode == 0, problem
    assert int(looks) > 10
    # A late writer writes nothing; the first skips nothing that a reader would miss at the end.
    assert sum(written) <= len(outcomes) - 1
    (root / "stop").unlink()
    write_all(alone, outcomes[-1:], artifacts)
    assert on_disk(root) == on_disk(alone)
