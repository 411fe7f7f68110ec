"""S17 and S23 with every named file checked byte by byte after every event.

    UPDATE_GOLDEN=1 pytest tests/scenarios/test_files_step_by_step.py

writes the golden accounts again; each says what a step changed, so that its difference is what a review has to see.
"""

import json
import os
from pathlib import Path

import pytest

from tests.scenarios.file_steps import account, artifacts_of, on_disk, steps_on_disk
from tests.scenarios.test_s17_cycle import the_seeds_cycle
from tests.scenarios.test_s23_s27_handoff import the_seeds_example

pytestmark = pytest.mark.heavy

GOLDEN = Path(__file__).parent / "golden"
DOCUMENTS = artifacts_of(
    *("r1", "r2", "i1", "i2", "v1", "v2"),
    *("exploration.md", "architecture.md", "plan.json", "issues.md", "test-results.json"),
)


def check(name: str, told: str) -> None:
    golden = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(told, encoding="utf-8")
    assert told == golden.read_text(encoding="utf-8")


@pytest.mark.proves("S17", "K23", "C10", "C14")
def test_s17_every_file_of_the_cycle_is_right_after_every_event(tmp_path: Path) -> None:
    *_, (_, stage) = the_seeds_cycle()

    check("s17-files.diff", account(steps_on_disk(tmp_path, stage.outcomes, DOCUMENTS)))


@pytest.mark.proves("S23", "K23", "D14", "D20")
def test_s23_every_file_of_the_handoffs_is_right_after_every_event(tmp_path: Path) -> None:
    stage = the_seeds_example()

    check("s23-files.diff", account(steps_on_disk(tmp_path, stage.outcomes, {})))


@pytest.mark.proves("C15", "C14", "C16")
def test_s17_on_disk_logs_only_grow_and_no_document_version_is_missing(tmp_path: Path) -> None:
    *_, (_, stage) = the_seeds_cycle()
    before: dict[str, bytes] = {}
    issued: set[tuple[str, bytes]] = set()

    for state, files in steps_on_disk(tmp_path, stage.outcomes, DOCUMENTS):
        assert before.keys() <= files.keys()
        for path, content in before.items():
            if path.endswith((".log", ".ndjson")):
                assert files[path].startswith(content)
            if "/history/" in path:
                assert files[path] == content
        issued |= {(document.agent, DOCUMENTS[document.digest]) for document in state.documents}
        there = {(path.split("/")[3], content) for path, content in files.items() if path.count("/") > 3}
        assert issued <= there
        before = files


@pytest.mark.proves("D15", "D22", "D23", "D49")
def test_s23_on_disk_the_state_file_names_existing_files(tmp_path: Path) -> None:
    stage = the_seeds_example()

    for now, files in steps_on_disk(tmp_path, stage.outcomes, {}):
        state = json.loads(files[".claude/state.json"])
        places = {
            Path(path).stem: Path(path).parent.name for path in files if path.startswith(".claude/handoffs/")
        }
        assert state["last_handoff"] is None or state["last_handoff"] in places
        assert sum(place == "accepted" for place in places.values()) <= 1
        active = [name for name, agent in state["agents"].items() if agent["status"] == "active"]
        assert active in ([], [state["current_agent"]])
        assert len(files[".claude/events.ndjson"].splitlines()) == len(now.events)


@pytest.mark.proves("K23", "R13")
def test_the_same_states_written_into_two_folders_are_the_same_bytes(tmp_path: Path) -> None:
    *_, (_, stage) = the_seeds_cycle()
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()

    list(steps_on_disk(one, stage.outcomes, DOCUMENTS))
    list(steps_on_disk(two, stage.outcomes[-1:], DOCUMENTS))

    assert on_disk(one) == on_disk(two)
