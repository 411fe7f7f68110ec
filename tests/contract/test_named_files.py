"""Named files below a project and in workspaces, written from what the store has (K23)."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fixloop.engine.engine import ProfileEngine
from fixloop.profiles.handoff.events import LockAcquired
from fixloop.repository.git import Git
from fixloop.repository.snapshot import Snapshot
from fixloop.statefiles.sync import Projected, edited_in, lay, project, root_of, tell_of_edits
from fixloop.store.contract import Store
from tests.fixtures.profile_runs import FLOW, SCRIPTS, carry_out, run

pytestmark = pytest.mark.heavy

PROGRESS = ".workflow/.cycle/cycle-v1-x.progress"


def tree_of(root: Path) -> dict[str, bytes]:
    """The files that a reader finds, by path."""
    found = (Path(folder, name) for folder, _, names in os.walk(root, followlinks=True) for name in names)
    paths = ((path, path.relative_to(root).as_posix()) for path in found)
    return {
        name: path.read_bytes()
        for path, name in paths
        if not name.startswith((".fixloop/", ".claude/.")) and ".gitignore" not in name
    }


def versions(store: Store, root: Path, name: str) -> Iterator[int]:
    """Go through a whole workflow and project it after every commit."""
    script = SCRIPTS[name]
    hinted: list[Any] = []
    engine = ProfileEngine(store, script.profile, lambda ticket, state: hinted.append(ticket))
    engine.start(script.begin)
    for text in script.documents:
        store.put_artifact(FLOW, text.encode())
    results = script.results()
    while hinted:
        project(store, FLOW, root=root)
        found = store.read(FLOW)
        assert found is not None
        yield found.version
        hinted.extend(carry_out(engine, script, hinted.pop(0), results) or ())
    project(store, FLOW, root=root)


@pytest.mark.proves("K23", "C10", "C11", "C14")
def test_a_cycle_s_files_are_below_the_root_after_every_commit(store: Store, tmp_path: Path) -> None:
    for _ in versions(store, tmp_path, "cycle"):
        assert (tmp_path / ".workflow/.cycle/cycle-v1-x.json").is_file()

    state = json.loads((tmp_path / ".workflow/.cycle/cycle-v1-x.json").read_text())
    assert (state["status"], state["current_iteration"]) == ("completed", 2)
    assert (tmp_path / PROGRESS / "ra/requirements.md").read_text() == "2"
    assert (tmp_path / PROGRESS / "ra/history/requirements-v1.0.0.md").read_text() == "1"


@pytest.mark.proves("K23", "D14", "D15", "D19")
def test_handoffs_change_their_folder_as_the_store_says(store: Store, tmp_path: Path) -> None:
    seen = []
    for _ in versions(store, tmp_path, "handoff"):
        places = [path for path in tree_of(tmp_path) if "/handoffs/" in path]
        for path in places:
            status = json.loads((tmp_path / path).read_text())["status"]
            assert path.startswith(f".claude/handoffs/{status}/")
        seen.append(len(places))

    assert seen == [0, 1, 2, 3, 4]
    assert len(os.listdir(tmp_path / ".claude/handoffs/completed")) == 4
    assert json.loads((tmp_path / ".claude/state.json").read_text())["status"] == "completed"


@pytest.mark.proves("K23", "R13")
def test_projecting_a_version_already_written_does_nothing(store: Store, tmp_path: Path) -> None:
    run(store, SCRIPTS["handoff"])

    first, again = project(store, FLOW, root=tmp_path), project(store, FLOW, root=tmp_path)

    assert (first.written, again.written, first.problem) == (True, False, "")


@pytest.mark.proves("K23")
@pytest.mark.parametrize("name", ["cycle", "handoff"])
def test_a_workspace_gets_the_same_files_as_plain_ones(store: Store, tmp_path: Path, name: str) -> None:
    run(store, SCRIPTS[name])
    found = store.read(FLOW)
    assert found is not None
    outside, inside = tmp_path / "project", tmp_path / "work"
    outside.mkdir()
    inside.mkdir()

    project(store, FLOW, root=outside)
    lay(store, found.snapshot, inside)

    assert tree_of(inside) == tree_of(outside)
    assert not any(path.is_symlink() for path in inside.rglob("*"))


@pytest.mark.proves("K23")
def test_a_repository_that_is_elsewhere_has_no_place_for_files(store: Store, tmp_path: Path) -> None:
    run(store, SCRIPTS["handoff"])

    assert project(store, FLOW) == Projected(False)
    assert project(store, FLOW, root=tmp_path / "not here") == Projected(False)


@pytest.mark.proves("K23")
def test_the_root_is_the_folder_that_commands_run_in_and_a_url_has_none() -> None:
    taken = Snapshot(source="/srv/shop", subdirectory="api", commit="c", tree="t")
    far = Snapshot(source="https://example.org/a.git", commit="c", tree="t", is_url=True)

    assert root_of(json.dumps({"snapshot": taken.model_dump_json()}).encode()) == Path("/srv/shop/api")
    assert root_of(json.dumps({"snapshot": far.model_dump_json()}).encode()) is None


@pytest.mark.proves("K23")
def test_an_obstacle_is_reported_and_the_next_version_is_written(store: Store, tmp_path: Path) -> None:
    run(store, SCRIPTS["handoff"])
    (tmp_path / ".claude").write_text("mine")

    refused = project(store, FLOW, root=tmp_path)
    (tmp_path / ".claude").unlink()

    assert (refused.written, ".claude in .claude/.gitignore is no directory" in refused.problem) == (
        False,
        True,
    )
    assert project(store, FLOW, root=tmp_path).written


@pytest.mark.proves("D25")
def test_a_lock_is_in_the_state_file(store: Store, tmp_path: Path) -> None:
    engine = ProfileEngine(store, SCRIPTS["handoff"].profile)
    engine.start(SCRIPTS["handoff"].begin)

    engine.apply(FLOW, LockAcquired(sender="builder", resource="src/auth.ts"), operation="lock")
    project(store, FLOW, root=tmp_path)

    locks = json.loads((tmp_path / ".claude/state.json").read_text())["locks"]
    assert locks["src/auth.ts"]["agent"] == "builder"


@pytest.mark.proves("K23", "D19", "D15")
def test_a_handoff_moved_by_hand_is_reported_with_field_and_value_and_rewritten(
    store: Store, tmp_path: Path
) -> None:
    steps = versions(store, tmp_path, "handoff")
    for _ in range(2):
        before = next(steps)
    (handoff,) = (tmp_path / ".claude/handoffs/pending").iterdir()
    document = json.loads(handoff.read_text()) | {"status": "accepted"}
    handoff.write_text(json.dumps(document))
    state = ProfileEngine(store, SCRIPTS["handoff"].profile).state(FLOW)

    projected = project(store, FLOW, root=tmp_path, again=True)

    path = f".claude/handoffs/pending/{handoff.name}"
    (said,) = projected.edits
    assert said.startswith(
        f'{path} was edited by hand: status is "accepted", and was written as "pending"; it is kept in '
    )
    assert json.loads((tmp_path / path).read_text())["status"] == "pending"
    kept = next((tmp_path / ".fixloop/files/edited").rglob(handoff.name))
    assert json.loads(kept.read_text()) == document
    after = ProfileEngine(store, SCRIPTS["handoff"].profile).state(FLOW)
    assert after.with_(last_at=state.last_at) == state
    assert store.history(FLOW, before)[0].body["notes"] == [f"refused: state-written from hand: {said}"]
    assert not project(store, FLOW, root=tmp_path, again=True).edits


@pytest.mark.proves("C5", "K23")
def test_a_cycle_s_edited_state_file_is_refused_by_its_next_commit(store: Store, tmp_path: Path) -> None:
    steps = versions(store, tmp_path, "cycle")
    next(steps)
    file = tmp_path / ".workflow/.cycle/cycle-v1-x.json"
    file.write_text(file.read_text().replace('"max_iterations": 5', '"max_iterations": 50'))

    for _ in steps:
        pass

    assert json.loads(file.read_text())["max_iterations"] == 5
    notes = [note for entry in store.history(FLOW) for note in entry.body.get("notes", ())]
    (told,) = (note for note in notes if "by hand" in note)
    assert "cycle-v1-x.json was edited by hand: max_iterations is 50, and was written as 5" in told


@pytest.mark.proves("C5", "C18")
def test_an_agent_s_change_to_others_files_is_detected(store: Store, tmp_path: Path) -> None:
    run(store, SCRIPTS["cycle"])
    found = store.read(FLOW)
    assert found is not None
    lay(store, found.snapshot, tmp_path)
    assert edited_in(store, found.snapshot, tmp_path) == {}

    (tmp_path / PROGRESS / "ra/requirements.md").write_text("mine\n")
    (tmp_path / ".workflow/.cycle/cycle-v1-x.json").unlink()

    assert edited_in(store, found.snapshot, tmp_path) == {
        f"{PROGRESS}/ra/requirements.md": (
            f'{PROGRESS}/ra/requirements.md was edited by hand: line 1 is "mine", and was written as "2"'
        ),
        ".workflow/.cycle/cycle-v1-x.json": ".workflow/.cycle/cycle-v1-x.json was removed by hand",
    }


@pytest.mark.proves("K23")
def test_the_live_one_of_two_handoff_workflows_keeps_the_files_until_it_ends(
    store: Store, tmp_path: Path
) -> None:
    other = "0a1b2c3d-8-1"
    script = SCRIPTS["handoff"]
    steps = versions(store, tmp_path, "handoff")
    next(steps)
    begin = script.begin.model_copy(update={"workflow": other, "issue": 8})
    ProfileEngine(store, script.profile).start(begin)

    refused = project(store, other, root=tmp_path)
    for _ in steps:
        pass
    taken = project(store, other, root=tmp_path)

    assert refused.problem == (
        f"the named files in {tmp_path} are those of {FLOW}; those of {other} take their place when it has ended"
    )
    assert taken.written
    assert project(store, FLOW, root=tmp_path, again=True).written is False
    assert json.loads((tmp_path / ".claude/state.json").read_text())["agents"]["planner"] == {
        "status": "idle"
    }


@pytest.mark.proves("K23")
def test_git_ignores_the_named_files(store: Store, tmp_path: Path) -> None:
    git = Git(tmp_path)
    git.run("init", "-q")
    for name in ("cycle", "handoff"):
        other = f"0a1b2c3d-{len(name)}-1"
        begin = SCRIPTS[name].begin.model_copy(update={"workflow": other})
        ProfileEngine(store, SCRIPTS[name].profile).start(begin)
        project(store, other, root=tmp_path)

    assert (tmp_path / ".claude/state.json").is_file()
    assert (tmp_path / ".workflow/.cycle/cycle-v1-x.json").is_file()
    assert git.text("status", "--porcelain", "--untracked-files=all") == ""


@pytest.mark.proves("D19", "K10", "D15")
def test_an_agent_of_handoffs_that_moves_a_file_is_reported_and_changes_nothing(
    store: Store, tmp_path: Path
) -> None:
    steps = versions(store, tmp_path / "no root", "handoff")
    for _ in range(2):
        next(steps)
    found = store.read(FLOW)
    assert found is not None
    work = tmp_path / "work"
    work.mkdir()
    lay(store, found.snapshot, work)
    (handoff,) = (work / ".claude/handoffs/pending").iterdir()
    handoff.rename(work / ".claude/handoffs/accepted" / handoff.name)

    told = tell_of_edits(store, found.snapshot, work, "builder")

    assert told == (
        f".claude/handoffs/pending/{handoff.name} was removed by hand; the state is written by events under the "
        "lock of state.json, never by its file",
    )
    (entry,) = store.history(FLOW, found.version)
    assert entry.body["notes"] == [f"refused: state-written from builder: {told[0]}"]
    before, after = (
        SCRIPTS["handoff"].profile.load(each.snapshot) for each in (found, store.read(FLOW) or found)
    )
    assert after.with_(last_at=before.last_at) == before
