"""Redis rebuilt from named files when it lost them: what was committed continues, what disagrees is reported (K23)."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fixloop.engine.engine import ProfileEngine
from fixloop.errors import RefusedError, UsageError
from fixloop.outside.transfer import bring_work
from fixloop.profiles.handoff.engine import HANDOFF
from fixloop.profiles.handoff.events import HandoffsStarted
from fixloop.protocol.agent_events import Cancelled, Paused
from fixloop.repository.copied import DATE
from fixloop.repository.snapshot import bring, take_snapshot
from fixloop.repository.tree import commit_tree
from fixloop.statefiles.rebuild import lost, rebuild
from fixloop.statefiles.sync import project
from fixloop.store.contract import Store
from tests.contract.test_named_files import PROGRESS, tree_of, versions
from tests.fixtures.memory_store import MemoryStore
from tests.fixtures.profile_runs import FLOW, SCRIPTS, carry_out
from tests.fixtures.repositories import make_repository

pytestmark = pytest.mark.heavy

LAST = {"cycle": 9, "handoff": 5}
"""Steps of a whole workflow."""


def empty_store() -> MemoryStore:
    """The Redis that will be lost."""
    return MemoryStore(lambda: datetime(2026, 3, 1, tzinfo=UTC))


def gone_after(steps: int, name: str, root: Path) -> dict[str, Any]:
    """The results that are left when a Redis is lost after so many steps; its files are below `root`."""
    going, script = versions(empty_store(), root, name), SCRIPTS[name]
    for _ in range(steps + 1):
        next(going)
    results = script.results()
    for ticket in _TICKETS[name][:steps]:
        next(results[ticket])
    return results


_TICKETS = {
    "cycle": ["ra", "ep", "cd", "ra", "cd", "vas", "cd", "vas", ""],
    "handoff": ["planner", "builder", "reviewer", "fixer", "reviewer"],
}


def go_on(store: Store, name: str, root: Path, results: dict[str, Any]) -> list[str]:
    """Rebuild and go to the end; the tickets in the order they were done."""
    hinted: list[Any] = []
    rebuild(store, root, 7, hint=lambda ticket, state: hinted.append(ticket))
    for text in SCRIPTS[name].documents:  # those that agents will write from now on
        store.put_artifact(FLOW, text.encode())
    done, engine = [], ProfileEngine(store, SCRIPTS[name].profile)
    while hinted:
        ticket = hinted.pop(0)
        steps = carry_out(engine, SCRIPTS[name], ticket, results)
        assert steps is not None
        hinted.extend(steps)
        done.append(ticket.specialist)
        project(store, FLOW, root=root)
    return done


@pytest.mark.slow
@pytest.mark.proves("K23", "R13", "S17", "S23")
@pytest.mark.parametrize(
    ("name", "steps"), [(name, steps) for name, last in LAST.items() for steps in range(last)]
)
def test_a_workflow_continues_from_its_files_wherever_redis_was_lost(
    store: Store, tmp_path: Path, name: str, steps: int
) -> None:
    results = gone_after(steps, name, tmp_path)

    done = go_on(store, name, tmp_path, results)

    found = store.read(FLOW)
    assert found is not None
    assert done == _TICKETS[name][steps:]
    assert (found.fields["status"], found.fields["outcome"]) == ("completed", "success")
    assert store.verify(FLOW) == []
    assert lost(store, tmp_path) == []


@pytest.mark.proves("K23", "C15")
def test_documents_and_logs_are_rebuilt_byte_by_byte(store: Store, tmp_path: Path) -> None:
    gone_after(8, "cycle", tmp_path)
    before = tree_of(tmp_path)

    rebuild(store, tmp_path, 7)

    after = tree_of(tmp_path)
    changed = {path for path in before if after[path] != before[path]}
    assert changed == {f"{PROGRESS}/coordination/feedback.md", ".workflow/.cycle/cycle-v1-x.json"}
    log = after[f"{PROGRESS}/coordination/feedback.md"].decode()
    assert "Orchestrator: Rebuilt the cycle from its files, v1.1.0" in log


@pytest.mark.proves("K23")
def test_files_that_disagree_are_reported_with_field_and_value_and_nothing_is_rebuilt(
    store: Store, tmp_path: Path
) -> None:
    gone_after(1, "handoff", tmp_path)
    (handoff,) = (tmp_path / ".claude/handoffs/pending").iterdir()
    text = handoff.read_text()
    handoff.write_text(text.replace('"to": "builder"', '"to": "fixer"'))

    with pytest.raises(RefusedError) as refused:
        rebuild(store, tmp_path, 7)

    assert str(refused.value) == (
        f'.claude/handoffs/pending/{handoff.name} was edited by hand: to is "fixer", and was written as "builder"; '
        "undo that, then rebuild again: nothing was changed"
    )
    assert store.read(FLOW) is None
    handoff.write_text(text)
    assert rebuild(store, tmp_path, 7) == FLOW


@pytest.mark.proves("K23")
@pytest.mark.parametrize(
    ("path", "said"),
    [
        (f"{PROGRESS}/ra/requirements.md", "was edited by hand: its content is not the one of version"),
        (f"{PROGRESS}/ep/changes.log", 'was edited by hand: line 1 is "mine"'),
        (".workflow/.cycle/cycle-v1-x.json", "was edited by hand: cycle_id is not there, and was written as"),
    ],
)
def test_any_edited_file_of_a_cycle_is_named(store: Store, tmp_path: Path, path: str, said: str) -> None:
    gone_after(3, "cycle", tmp_path)
    new = json.dumps({"status": "completed"}) if path.endswith(".json") else "mine\n"
    (tmp_path / path).write_text(new)

    with pytest.raises(RefusedError, match="nothing was changed") as refused:
        rebuild(store, tmp_path, 7)

    assert f"{path} {said}" in str(refused.value)


@pytest.mark.proves("K23")
def test_a_workflow_that_redis_knows_is_not_rebuilt(store: Store, tmp_path: Path) -> None:
    for _ in versions(store, tmp_path, "handoff"):
        with pytest.raises(RefusedError, match=f"Redis knows workflow {FLOW}, and is right"):
            rebuild(store, tmp_path, 7)

    with pytest.raises(RefusedError, match="ended; there is nothing to go on with"):
        rebuild(empty_store(), tmp_path, 7)
    with pytest.raises(UsageError, match="no named files of issue 8"):
        rebuild(store, tmp_path, 8)


@pytest.mark.proves("K23", "K34")
@pytest.mark.parametrize("name", ["cycle", "handoff"])
def test_a_paused_workflow_is_paused_when_it_is_rebuilt(store: Store, tmp_path: Path, name: str) -> None:
    first, script = empty_store(), SCRIPTS[name]
    ProfileEngine(first, script.profile).start(script.begin)
    paused = script.profile.read_event(Paused(sender="user", reason="night").model_dump_json())
    ProfileEngine(first, script.profile).apply(FLOW, paused, operation="pause")
    project(first, FLOW, root=tmp_path)
    hinted: list[Any] = []

    rebuild(store, tmp_path, 7, hint=lambda ticket, state: hinted.append(ticket))

    found = store.read(FLOW)
    assert found is not None
    assert (found.fields["status"], found.fields["held"]) == ("paused", "1")
    (held,) = found.tickets
    assert store.claim(held.ticket.id, "host/1", "token").status != "ok"
    going = script.profile.read_event('{"kind": "continued", "sender": "user"}')
    ProfileEngine(store, script.profile).apply(FLOW, going, operation="continue")
    assert store.claim(held.ticket.id, "host/1", "token").status == "ok"


@pytest.mark.proves("K23", "R13")
def test_a_writer_that_was_killed_between_two_versions_leaves_files_to_rebuild_from(
    store: Store, tmp_path: Path
) -> None:
    steps = versions(empty_store(), tmp_path, "cycle")
    for _ in range(4):
        next(steps)
    kept = (tmp_path / f".fixloop/files/{FLOW}.json").read_bytes()
    next(steps)
    # All of the next version is written but its record.
    (tmp_path / f".fixloop/files/{FLOW}.json").rename(tmp_path / f".fixloop/files/{FLOW}.intent")
    (tmp_path / f".fixloop/files/{FLOW}.json").write_bytes(kept)

    rebuild(store, tmp_path, 7)

    assert SCRIPTS["cycle"].profile.load(_snapshot(store)).documents[0].version == "1.1.0"


def _snapshot(store: Store, workflow: str = FLOW) -> bytes:
    found = store.read(workflow)
    assert found is not None
    return found.snapshot


@pytest.mark.slow
@pytest.mark.proves("K23", "R14")
def test_a_rebuild_needs_the_work_so_far_and_brings_it_to_any_machine(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "shop", {"a.py": "1\n"})
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    taken = take_snapshot(repository, issue=7, cache=here)
    mirror = bring(taken, issue=7, cache=here)
    tip = commit_tree(mirror.git, taken.tree, [taken.commit], "an agent's\n", dated=DATE)
    mirror.keep(tip)
    facts = {"snapshot": taken.model_dump_json(), "tip": tip}
    first, again = empty_store(), empty_store()
    ProfileEngine(first, HANDOFF).start(SCRIPTS["handoff"].begin.model_copy(update=facts))
    project(first, FLOW)

    with pytest.raises(RefusedError, match=f"commit {tip[:12]}, the work of {FLOW} so far, is not in"):
        rebuild(again, repository, 7, cache=elsewhere)
    assert again.read(FLOW) is None
    rebuild(again, repository, 7, cache=here)

    state = HANDOFF.load(_snapshot(again))
    assert bring_work(again, state, elsewhere).has(tip)


@pytest.mark.proves("K23", "D19")
def test_a_workflow_that_waited_for_its_place_is_rebuilt_too(store: Store, tmp_path: Path) -> None:
    first, other = empty_store(), "0a1b2c3d-8-1"
    for workflow, issue in ((FLOW, 7), (other, 8)):
        begin = HandoffsStarted(workflow=workflow, issue=issue, name="Add user auth")
        ProfileEngine(first, HANDOFF).start(begin)
        project(first, workflow, root=tmp_path)
    assert sorted(record.workflow for record in lost(store, tmp_path)) == [FLOW, other]

    rebuild(store, tmp_path, 8)
    rebuild(store, tmp_path, 7)

    assert lost(store, tmp_path) == []
    assert HANDOFF.load(_snapshot(store, other)).agent("planner").asked
    ProfileEngine(store, HANDOFF).apply(FLOW, Cancelled(), operation="cancel")
    project(store, FLOW, root=tmp_path)
    assert project(store, other, root=tmp_path).written
    assert not (tmp_path / f".fixloop/files/{other}.json").exists()
