"""Cycles and handoffs through real workers and a real Redis, by the mechanism that the validation loop has."""

import os
import signal
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from fixloop.profiles.cycle.state import Limits
from fixloop.protocol.agent_events import Cancelled, Continued, Paused
from fixloop.repository.snapshot import Snapshot
from fixloop.store.keys import workflow_id
from tests.contract.test_profiles import CYCLE_TICKETS, HANDOFF_TICKETS
from tests.e2e.file_observer import drawn_at_each_version, seen_below
from tests.e2e.parallel_crew import OUTLASTING
from tests.fixtures.crews import Crews
from tests.fixtures.cycle_stage import reported
from tests.fixtures.deployment import PROJECT, ROOT, Deployment, deployed
from tests.scenarios.file_steps import on_disk

pytestmark = pytest.mark.slow

BESIDE: dict[str, Any] = {
    "graph": {"ra": (), "docs": (), "ep": ("ra",), "cd": ("ep",), "vas": ("cd",)},
    "commands": dict.fromkeys(("ra", "docs", "ep", "cd", "vas"), "scripted"),
    "tip": "commit-0",
}
SHORT = Limits(run_seconds=0.3, converge_seconds=0.3)


Scenes = Mapping[str, tuple[Crews, str]]


@pytest.fixture(scope="module")
def deployment(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder, crew = tmp_path_factory.mktemp("agents"), "tests.e2e.parallel_crew:parallel_crew"
    with deployed(redis_url, folder, concurrency=4, FIXLOOP_CREW=crew, PYTHONPATH=str(ROOT)) as running:
        yield running


@pytest.fixture(scope="module")
def begun(deployment: Deployment) -> Scenes:
    """By name, workflows that all start together, to run in parallel."""
    cycles, handoffs, issues = Crews(deployment, "cycle"), Crews(deployment, "handoff"), count(1)
    return {
        "killed": (cycles, cycles.begin("ra: $ok~1", next(issues))),
        "cancelled": (handoffs, handoffs.begin("planner: $ok~60", next(issues))),
        "late": (cycles, cycles.begin("ra: $silent~60", next(issues), limits=SHORT, notify=True)),
        "S17": (cycles, cycles.begin("cd: unclear ok; vas: no ok", next(issues))),
        "S23": (handoffs, handoffs.begin("reviewer: no ok", next(issues))),
        "failing": (handoffs, handoffs.begin("planner: !ok; builder: bad", next(issues), notify=True)),
        "outside": (cycles, cycles.begin("", next(issues), commands={"ep": "e", "cd": "c", "vas": "v"})),
    }


@pytest.mark.proves("S30", "K40", "R7")
def test_killing_a_work_process_during_a_run_only_repeats_the_run(begun: Scenes) -> None:
    cycles, workflow = begun["killed"]
    os.kill(cycles.deployment.owner_pid(workflow), signal.SIGKILL)

    assert cycles.ended(workflow).outcome == "success"
    assert cycles.tickets(workflow) == ["ra.1.1", "ra.1.1", "ep.1.1", "cd.1.1", "vas.1.1"]
    assert cycles.kinds(workflow).count("agent-started") == 4
    assert cycles.kinds(workflow).count("phase-reported") == 4


@pytest.mark.proves("R9", "K31")
def test_a_cancelled_workflow_ends_the_command_that_runs_for_it(begun: Scenes) -> None:
    handoffs, workflow = begun["cancelled"]
    handoffs.deployment.owner_pid(workflow)

    handoffs.tell(workflow, Cancelled(reason="no longer wanted"))

    ticket = f"{workflow}.planner.1.1"
    handoffs.deployment.until(lambda: (ticket, "cancelled") in handoffs.deployment.deliveries())
    assert handoffs.state(workflow).outcome == "cancelled"
    assert handoffs.tickets(workflow) == ["planner.1.1"]


@pytest.mark.proves("G15", "U13", "R6")
def test_a_late_run_is_asked_to_converge_then_ended_and_a_person_asked(begun: Scenes) -> None:
    cycles, workflow = begun["late"]

    state = cycles.ended(workflow)

    assert [opened.reason for opened in state.escalations] == ["timeout"]
    assert cycles.kinds(workflow).count("deadline-reached") == 2
    assert cycles.kinds(workflow).count("person-notified") == 1
    ticket = f"{workflow}.ra.1.1"
    cycles.deployment.until(lambda: (ticket, "cancelled") in cycles.deployment.deliveries())


@pytest.mark.proves("S17", "R2", "R3", "C50")
def test_s17_a_cycle_repeats_until_its_validation_passes(begun: Scenes) -> None:
    cycles, workflow = begun["S17"]

    state = cycles.ended(workflow)
    assert (state.status, state.outcome, state.iteration) == ("completed", "success", 2)
    assert cycles.tickets(workflow) == CYCLE_TICKETS[:-1]
    assert {document.version for document in state.documents} == {"1.1.0"}
    assert cycles.deployment.store.verify(workflow) == []


@pytest.mark.proves("S23", "R2", "R3", "D53")
def test_s23_handoffs_pass_between_agents_until_the_review_approves(begun: Scenes) -> None:
    handoffs, workflow = begun["S23"]

    state = handoffs.ended(workflow)
    assert (state.status, state.outcome, state.iteration) == ("completed", "success", 2)
    assert handoffs.tickets(workflow) == HANDOFF_TICKETS
    assert {message.status for message in state.messages} == {"completed"}
    assert handoffs.deployment.store.verify(workflow) == []


@pytest.mark.proves("C43", "K17", "R3")
def test_agents_work_in_parallel_and_the_last_one_s_work_is_merged_onto_the_others(
    deployment: Deployment,
) -> None:
    cycles = Crews(deployment, "cycle")
    workflow = cycles.begin(OUTLASTING, 102, **BESIDE)

    state = cycles.ended(workflow)

    assert state.outcome == "success"
    # Started before any other was done; which of two free processes starts first is not determined.
    assert set(cycles.tickets(workflow)[:2]) == {"ra.1.1", "docs.1.1"}
    reports = [event for event in cycles.events(workflow) if event["kind"] == "phase-reported"]
    assert reports[-1]["sender"] == "docs"
    assert reports[-1]["base"] == reports[-2]["tip"]
    assert state.tip == f"{reports[-2]['tip']}+commit-docs-1"


@pytest.mark.proves("A14", "C59")
def test_a_pause_lets_the_run_end_and_starts_nothing_until_continued(deployment: Deployment) -> None:
    cycles = Crews(deployment, "cycle")
    workflow = cycles.begin("ra: ok~2", 101)
    deployment.owner_pid(workflow)
    cycles.tell(workflow, Paused(reason="lunch"))
    cycles.deployment.until(lambda: "phase-reported" in cycles.kinds(workflow), about=workflow)

    held = cycles.deployment.store.read(workflow)
    cycles.tell(workflow, Continued())

    assert held is not None
    assert [(kept.ticket.id, kept.status) for kept in held.tickets] == [(f"{workflow}.ep.1.1", "delayed")]
    assert cycles.ended(workflow).outcome == "success"
    assert cycles.tickets(workflow) == ["ra.1.1", "ep.1.1", "cd.1.1", "vas.1.1"]


@pytest.mark.proves("D37", "D40", "D56", "K5")
def test_attempts_that_raise_or_return_nothing_are_retried_then_escalated(begun: Scenes) -> None:
    handoffs, workflow = begun["failing"]

    state = handoffs.ended(workflow)

    assert handoffs.tickets(workflow) == [
        "planner.1.1",
        "planner.1.2",
        "builder.1.1",
        "builder.1.2",
        "builder.1.3",
    ]
    assert [question.reason for question in state.questions] == ["retries_exhausted"]
    assert handoffs.kinds(workflow).count("person-notified") == 1
    assert state.messages[0].status == "accepted"


@pytest.mark.proves("K31", "C39")
def test_an_outside_agent_holds_no_process_and_its_report_is_followed_up(begun: Scenes) -> None:
    cycles, workflow = begun["outside"]

    def held() -> tuple[list[str], list[str]]:
        found = cycles.deployment.store.read(workflow)
        assert found is not None
        return [kept.ticket.step for kept in found.tickets], list(found.deadlines)

    # A worker delivers its letter, and then holds nothing.
    cycles.deployment.until(lambda: held() == ([], ["run/ra"]), about=workflow)
    assert cycles.tickets(workflow) == []

    cycles.tell(workflow, reported("ra"))

    assert cycles.ended(workflow).outcome == "success"
    assert cycles.tickets(workflow) == ["ep.1.1", "cd.1.1", "vas.1.1"]


@pytest.mark.proves("K23", "S17", "S23", "C10")
@pytest.mark.parametrize(
    ("profile", "script", "issue"),
    [("cycle", "cd: unclear ok; vas: no ok", 111), ("handoff", "reviewer: no ok", 112)],
)
def test_s17_and_s23_leave_the_files_of_every_version_byte_by_byte(
    deployment: Deployment, tmp_path: Path, profile: str, script: str, issue: int
) -> None:
    crews = Crews(deployment, profile)
    here = Snapshot(source=str(tmp_path), commit="c", tree="t").model_dump_json()
    place = "handoff" if profile == "handoff" else workflow_id(PROJECT, issue, 1)
    with seen_below(tmp_path, place) as seen:
        workflow = crews.begin(script, issue, snapshot=here)
        crews.ended(workflow)
        wanted = drawn_at_each_version(deployment.store, crews.profile, workflow)
        deployment.until(lambda: max(wanted) in seen, about=workflow)

    assert on_disk(tmp_path) == wanted[max(wanted)]
    assert len(seen) > len(wanted) / 2, f"only {sorted(seen)} of {len(wanted)} were seen"
    assert seen == {version: wanted[version] for version in seen}
