"""S17: the seed's own cycle, minute by minute, and the files it leaves."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from fixloop.profiles.cycle.files import named_files, state_document
from tests.fixtures.cycle_stage import CycleStage


def the_seeds_cycle() -> Iterator[tuple[str, CycleStage]]:
    """The stage after each row of the seed's table, with the row's time."""
    stage = CycleStage("10:00")
    yield "10:00", stage
    stage.at("10:05").start("ra")
    yield "10:05", stage
    stage.at("10:10").report("ra", "success", "requirements.md=r1", summary="Requirements completed")
    stage.start("ep")
    yield "10:10", stage
    stage.at("10:15").report(
        "ep", "success", "exploration.md", "architecture.md", "plan.json", summary="Architecture designed"
    )
    stage.start("cd")
    yield "10:15", stage
    stage.at("10:30").report(
        "cd", "partial", "implementation.md=i1", "issues.md", issues='["FR-003: OAuth optional vs required?"]'
    )
    yield "10:30", stage
    stage.at("10:31").start("ra")
    stage.report(
        "ra",
        "success",
        "requirements.md=r2",
        decision="Optional (can use password)",
        rationale="More flexible for users",
        impact="Affects FR-003 implementation",
    )
    yield "10:31", stage
    stage.at("10:35").start("cd")
    yield "10:35", stage
    stage.at("10:40").report("cd", "success", summary="Implementation complete")
    stage.start("vas")
    yield "10:40", stage
    stage.at("10:45").report("vas", "failed", "validation.md=v1", "test-results.json", issues="[login fails]")
    yield "10:45", stage
    stage.at("10:46").start("cd")
    yield "10:46", stage
    stage.at("10:48").report("cd", "success", "implementation.md=i2", summary="Fixed issues")
    yield "10:48", stage
    stage.at("10:50").start("vas")
    yield "10:50", stage
    stage.at("10:55").report("vas", "success", "validation.md=v2", summary="All passing")
    yield "10:55", stage
    stage.at("11:00").finish()
    yield "11:00", stage


def facts(stage: CycleStage) -> dict[str, Any]:
    """What a row of the table can name."""
    document = state_document(stage.state)
    return {
        "status": document["status"],
        "iteration": document["current_iteration"],
        **{key: agent["status"] for key, agent in document["agents"].items()},
    }


@pytest.mark.proves("S17", "C46", "C10", "K25")
def test_the_state_follows_the_seed_s_table_row_by_row() -> None:
    rows = {time: facts(stage) for time, stage in the_seeds_cycle()}

    running = {"status": "running", "iteration": 1}
    idle = {"ra": "idle", "ep": "idle", "cd": "idle", "vas": "idle"}
    second = {"status": "running", "iteration": 2, "ra": "completed", "ep": "completed"}
    assert rows["10:00"] == running | idle
    assert rows["10:05"] == running | idle | {"ra": "running"}
    assert rows["10:10"] == running | idle | {"ra": "completed", "ep": "running"}
    built = running | idle | {"ra": "completed", "ep": "completed"}
    assert rows["10:15"] == built | {"cd": "running"}
    assert rows["10:30"]["cd"] == "waiting"
    assert rows["10:31"] == built | {"cd": "waiting"}
    assert rows["10:35"] == built | {"cd": "running"}
    assert rows["10:40"] == built | {"cd": "completed", "vas": "running"}
    assert rows["10:45"] == second | {"cd": "waiting", "vas": "waiting"}
    assert rows["10:46"] == second | {"cd": "running", "vas": "waiting"}
    assert rows["10:48"] == second | {"cd": "completed", "vas": "waiting"}
    assert rows["10:50"] == second | {"cd": "completed", "vas": "running"}
    assert rows["10:55"] == second | {"cd": "completed", "vas": "completed"}
    assert rows["11:00"] == rows["10:55"] | {"status": "completed"}


@pytest.mark.proves("C47", "C48", "C49", "C52")
def test_blocker_clarification_and_feedback_enter_the_state_as_in_the_table() -> None:
    seen = {time: state_document(stage.state) for time, stage in the_seeds_cycle()}

    assert [blocker["status"] for blocker in seen["10:30"]["coordination"]["blockers"]] == ["open"]
    assert [blocker["status"] for blocker in seen["10:31"]["coordination"]["blockers"]] == ["resolved"]
    assert seen["10:30"]["version"] == "1.0.0"
    assert seen["10:31"]["version"] == "1.1.0"
    assert len(seen["10:40"]["coordination"]["feedback_log"]) == 0
    assert len(seen["10:45"]["coordination"]["feedback_log"]) == 1
    assert "1 blocking issue" in seen["10:45"]["agents"]["cd"]["message"]


@pytest.mark.proves("C14", "C50", "C63", "K11")
def test_a_completed_cycle_has_all_documents_at_one_version_and_archives_the_first() -> None:
    *_, (_, stage) = the_seeds_cycle()

    state = stage.state
    assert {document.version for document in state.documents} == {"1.1.0"}
    assert len(state.documents) == 8
    assert {old.name for old in state.archive} == {document.name for document in state.documents}
    assert {old.version for old in state.archive} == {"1.0.0"}
    counts = {agent.key: len(agent.completed_in) for agent in state.agents}
    assert counts == {"ra": 1, "ep": 1, "cd": 2, "vas": 1}
    assert [record.chosen_option for record in state.decisions] == ["Optional (can use password)"]


@pytest.mark.proves("C37", "C38", "C39")
def test_no_agent_starts_before_its_dependencies_are_complete() -> None:
    began: dict[str, str] = {}

    for time, stage in the_seeds_cycle():
        for agent in stage.state.agents:
            if agent.asked:
                began.setdefault(agent.key, time)

    assert began == {"ra": "10:00", "ep": "10:10", "cd": "10:15", "vas": "10:40"}


@pytest.mark.proves("C24", "C25", "C26", "C29")
def test_the_coordination_log_has_its_four_sections_and_its_timeline_is_in_order() -> None:
    *_, (_, stage) = the_seeds_cycle()

    log = {file.path: file.parts for file in named_files(stage.state)}[
        f".workflow/.cycle/{stage.state.cycle_id}.progress/coordination/feedback.md"
    ][0]
    heads = [line for line in log.splitlines() if line.startswith("#")]
    assert heads == [
        "# Feedback & Coordination Log - Version 1.1.0",
        "## Timeline",
        "## Decision Records",
        "## Blockers & Resolutions",
        "## Cross-Agent Dependencies",
    ]
    times = [line[3:11] for line in log.splitlines() if line.startswith("- [") and "Blocker:" not in line]
    assert times[:-1] == sorted(times[:-1])
    assert "- [10:10:00] EP: Exploration and planning started (depends on RA v1.0.0)" in log
    assert "- CD depends on: EP plan (v1.1.0)" in log


@pytest.mark.proves("C27", "C28", "C65")
def test_decision_and_blocker_are_recorded_with_their_reasons() -> None:
    *_, (_, stage) = the_seeds_cycle()

    *_, log_file, _ = named_files(stage.state)
    assert (
        "- [10:31:00] RA: FR-003: OAuth optional vs required?\n"
        "  - Decision: Optional (can use password)\n"
        "  - Rationale: More flexible for users\n"
        "  - Impact: Affects FR-003 implementation\n"
    ) in log_file.parts[0]
    assert (
        "- [10:30:00] Blocker: FR-003: OAuth optional vs required?\n"
        "  - Reported by: CD\n"
        "  - Resolution: Optional (can use password)\n"
        "  - Status: Resolved\n"
    ) in log_file.parts[0]


@pytest.mark.proves("C4", "C8", "C11", "C60")
def test_the_named_files_have_their_protocol_places_and_times_in_utc_plus_8() -> None:
    *_, (_, stage) = the_seeds_cycle()

    files = {file.path: file.parts for file in named_files(stage.state)}
    root = f".workflow/.cycle/{stage.state.cycle_id}"
    assert f"{root}.progress/ra/requirements.md" in files
    assert f"{root}.progress/ra/history/requirements-v1.0.0.md" in files
    assert f"{root}.progress/ep/history/plan-v1.0.0.json" in files
    state = json.loads(files[f"{root}.json"][0])
    assert state["created_at"] == "2026-01-22T10:00:00+08:00"
    assert state["agents"]["ra"]["completed_at"] == "2026-01-22T10:31:00+08:00"
    assert list(files)[-1] == f"{root}.json"


@pytest.mark.proves("C9", "C15")
def test_nothing_is_ever_removed_from_the_state_and_logs_only_grow() -> None:
    logs: dict[str, str] = {}
    keys: set[str] = set()
    fields = 0

    for _, stage in the_seeds_cycle():
        document = state_document(stage.state)
        assert keys <= document.keys()
        keys = set(document)
        assert len(document["field_history"]) >= fields
        fields = len(document["field_history"])
        for file in named_files(stage.state):
            if file.path.endswith(".log"):
                grown = "".join(file.parts)
                assert grown.startswith(logs.get(file.path, ""))
                logs[file.path] = grown
    assert (
        '"action": "version_sync"' in logs[f".workflow/.cycle/{stage.state.cycle_id}.progress/ep/changes.log"]
    )


@pytest.mark.proves("C2", "C6", "C45", "C66")
def test_agents_blockers_and_feedback_can_be_read_at_any_time() -> None:
    for _, stage in the_seeds_cycle():
        document = state_document(stage.state)
        assert document["agents"].keys() == {"ra", "ep", "cd", "vas"}
        assert {"blockers", "feedback_log", "decisions"} <= document["coordination"].keys()
        paths = [file.path for file in named_files(stage.state)]
        assert any(path.endswith("coordination/feedback.md") for path in paths)


@pytest.mark.proves("C12", "C19", "C30", "C31")
def test_an_agent_s_entry_looks_like_the_seed_s_example() -> None:
    stage = CycleStage("10:05")

    stage.start("ra")
    stage.at("10:15").report("ra", "success", "requirements.md", "edge-cases.md")

    progress = f".workflow/.cycle/{stage.state.cycle_id}.progress/ra"
    entry = state_document(stage.state)["agents"]["ra"]
    assert {name: entry[name] for name in list(entry)[:5]} == {
        "status": "completed",
        "started_at": "2026-01-22T10:05:00+08:00",
        "completed_at": "2026-01-22T10:15:00+08:00",
        "output_files": [
            f"{progress}/requirements.md",
            f"{progress}/edge-cases.md",
            f"{progress}/changes.log",
        ],
        "iterations_completed": 1,
    }


@pytest.mark.proves("C64")
def test_every_completion_in_the_timeline_names_the_version_that_is_complete() -> None:
    *_, (_, stage) = the_seeds_cycle()

    told = [f"{entry.actor}: {entry.text}" for entry in stage.state.timeline]

    assert {
        *("RA: Requirements completed, v1.0.0", "EP: Architecture designed, v1.0.0"),
        *("CD: Fixed issues, v1.1.0", "VAS: All passing, v1.1.0", "Orchestrator: Cycle completed, v1.1.0"),
    } <= set(told)


@pytest.mark.proves("C30")
def test_an_agent_s_entry_counts_the_iterations_that_it_completed() -> None:
    counted = [
        tuple(agent["iterations_completed"] for agent in state_document(stage.state)["agents"].values())
        for _, stage in the_seeds_cycle()
    ]

    assert (counted[0], counted[-1]) == ((0, 0, 0, 0), (1, 1, 2, 1))


@pytest.mark.proves("C13", "C17", "C67")
def test_a_log_is_plain_lines_each_with_its_time() -> None:
    *_, (_, stage) = the_seeds_cycle()

    logs = [file for file in named_files(stage.state) if file.path.endswith("changes.log")]

    assert len(logs) == 4
    for log in logs:
        lines = [json.loads(line) for line in "".join(log.parts).splitlines()]
        assert all(line["timestamp"].startswith("2026-01-22T") for line in lines)
        assert lines[-1]["version"] == "1.1.0"
