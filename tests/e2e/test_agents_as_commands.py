"""S17 to S20 and S23 with agents that are commands: in their own workspaces, with the named files, through git."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fixloop.profiles.cycle.events import DecisionMade
from fixloop.profiles.cycle.messages import Input, Message, Violation
from tests.contract.test_profiles import CYCLE_TICKETS, HANDOFF_TICKETS
from tests.e2e.file_observer import drawn_at_each_version
from tests.fixtures.crews import AGENTS, Crews
from tests.fixtures.cycle_stage import reported
from tests.fixtures.deployment import ROOT, deployed
from tests.fixtures.repositories import git, make_repository

pytestmark = pytest.mark.slow

PROGRAMS = ROOT / "tests" / "e2e"
WITHOUT_SPEC = """
[handoff]
attempts = 1
[handoff.agent.planner]
command = ["echo", '{"status": "completed", "spec": "specs/20260122-user-auth.md"}']
"""


def project(folder: Path, profile: str, agents: Iterable[str] = (), scene: str = "") -> Path:
    """A repository whose configuration names the commands of these agents, or of all."""
    program = [str(PROGRAMS / "scenes_agent.py"), scene] if scene else [str(PROGRAMS / "seeds_agent.py")]
    command = json.dumps([sys.executable, *program])
    roles = "".join(
        f"[{profile}.agent.{agent}]\ncommand = {command}\n" for agent in agents or AGENTS[profile]
    )
    return make_repository(folder, {"fixloop.toml": roles, "README.md": "Users.\n"})


class Played(NamedTuple):
    """All scenes, started together to run in parallel; project and workflow of each."""

    cycles: Crews
    handoffs: Crews
    projects: Mapping[str, Path]
    workflows: Mapping[str, str]


@pytest.fixture(scope="module")
def played(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    folder = tmp_path_factory.mktemp("commands")
    projects = {
        "S17": project(folder / "s17", "cycle"),
        "S23": project(folder / "s23", "handoff"),
        "S19": project(folder / "s19", "cycle", ("ep", "cd"), "S19"),
        "S20": project(folder / "s20", "cycle", ("cd",), "S20"),
        "H60": make_repository(folder / "s60", {"fixloop.toml": WITHOUT_SPEC}),
    }
    with deployed(redis_url, folder, FIXLOOP_CREW="workers.commands.crew:commands") as deployment:
        cycles, handoffs = Crews(deployment, "cycle"), Crews(deployment, "handoff")
        workflows = {
            scene: (handoffs if scene in ("S23", "H60") else cycles).begin_in(where, int(scene[1:]))
            for scene, where in projects.items()
        }
        for scene, key in (("S19", "ra"), ("S20", "ra"), ("S20", "ep")):
            cycles.tell(workflows[scene], reported(key))
        yield Played(cycles, handoffs, projects, workflows)


@pytest.mark.proves("S17", "C11")
def test_s17_is_played_by_commands_that_see_each_others_work(played: Played) -> None:
    cycles, workflow, repository = played.cycles, played.workflows["S17"], played.projects["S17"]

    state = cycles.ended(workflow)

    assert (state.outcome, state.iteration) == ("success", 2)
    assert _done(cycles, workflow) == CYCLE_TICKETS
    cycles.deployment.until(lambda: _is_published(repository, 17), about=workflow)
    assert git(repository, "diff", "--name-only", "main", "fixloop/17") == "auth.py"
    _check_files_of_cycle(repository)


@pytest.mark.proves("D22", "D56")
def test_a_command_that_names_a_specification_and_writes_none_has_failed(played: Played) -> None:
    handoffs, workflow = played.handoffs, played.workflows["H60"]

    state = handoffs.ended(workflow)

    (question,) = state.questions
    assert (question.reason, state.spec, state.messages) == ("retries_exhausted", "", ())
    assert question.details.startswith("spec 'specs/20260122-user-auth.md' is no file of the work")


@pytest.mark.proves("S23", "D14", "D34")
def test_s23_is_played_by_commands_that_see_each_others_work(played: Played) -> None:
    handoffs, workflow, repository = played.handoffs, played.workflows["S23"], played.projects["S23"]

    state = handoffs.ended(workflow)

    assert (state.outcome, state.commit) == ("success", "abc123")
    assert _done(handoffs, workflow) == HANDOFF_TICKETS
    assert [(made.agent, made.kind, made.files) for made in state.made] == [
        ("planner", "spec", ("specs/20260122-user-auth.md",)),
        ("builder", "code", ("auth.py",)),
        ("fixer", "code", ("auth.py",)),
    ]
    handoffs.deployment.until(lambda: _is_published(repository, 23), about=workflow)
    _check_files_of_handoffs(repository)


def _is_published(repository: Path, issue: int) -> bool:
    """Whether the branch has the last commit, and the files record the end; both follow the end."""
    state = [*repository.glob(".workflow/.cycle/*.json"), *repository.glob(".claude/state.json")]
    if [json.loads(path.read_text())["status"] for path in state] != ["completed"]:
        return False
    refs = git(repository, "for-each-ref", "--format=%(refname:short)", f"refs/heads/fixloop/{issue}")
    return bool(refs) and "return True" in git(repository, "show", f"{refs}:auth.py")


def _done(crews: Crews, workflow: str) -> list[str]:
    """The tickets of runs whose results were committed, in order; letters and notices are delivered in addition."""
    by = [entry.body.get("by", {}) for entry in crews.deployment.store.history(workflow)]
    done = [told["ticket"].removeprefix(f"{workflow}.") for told in by if told]
    return [ticket for ticket in done if not ticket.startswith(("letter.", "notify."))]


def _check_files_of_cycle(repository: Path) -> None:
    top = repository / ".workflow/.cycle"
    assert json.loads((top / "cycle-17.json").read_text())["status"] == "completed"
    progress = top / "cycle-17.progress"
    assert (progress / "ra/requirements.md").read_text() == "FR-003: OAuth is optional\n"
    assert (progress / "ra/history/requirements-v1.0.0.md").read_text() == "FR-003: OAuth?\n"
    own = [json.loads(line) for line in (progress / "ra/changes.log").read_text().splitlines()]
    assert [line["action"] for line in own].count("update") == 2
    assert git(repository, "status", "--porcelain") == ""


def _check_files_of_handoffs(repository: Path) -> None:
    folders = repository / ".claude/handoffs"
    assert {folder.name: len(list(folder.iterdir())) for folder in folders.iterdir()} == {
        "pending": 0,
        "accepted": 0,
        "completed": 4,
    }
    state = json.loads((repository / ".claude/state.json").read_text())
    # The fixer wrote both; the second is not its own.
    assert (state["coverage"], state["status"]) == (81, "completed")
    assert git(repository, "status", "--porcelain") == ""


def _said(crews: Crews, workflow: str) -> list[Message]:
    history = crews.deployment.store.history(workflow)
    return [Message.model_validate(line) for entry in history for line in entry.body.get("messages", ())]


@pytest.mark.proves("S18", "C52", "C3", "C15")
def test_s18_which_is_the_first_round_of_s17_clears_an_unclear_requirement(played: Played) -> None:
    cycles, workflow = played.cycles, played.workflows["S17"]
    state, said = cycles.ended(workflow), _said(cycles, workflow)

    lines = [(m.sender, m.recipient, m.body.kind) for m in said]
    first = lines.index(("cd", "orchestrator", "cycle.phase-result"))
    assert lines[first + 1 : first + 5] == [
        ("orchestrator", "ra", "cycle.input"),
        ("ra", "orchestrator", "cycle.phase-result"),
        ("orchestrator", "cd", "cycle.input"),
        ("cd", "orchestrator", "cycle.phase-result"),
    ]
    clarification = said[first + 3].body
    assert isinstance(clarification, Input)
    assert (clarification.file, clarification.version) == ("ra/requirements.md", "1.1.0")
    assert not [m for m in said if "orchestrator" not in (m.sender, m.recipient)]
    assert [blocker.status for blocker in state.blockers] == ["resolved"]
    assert [(made.chosen_option, bool(made.rationale)) for made in state.decisions] == [
        ("OAuth is optional", True)
    ]
    log = f".workflow/.cycle/{state.cycle_id}.progress/ra/changes.log"
    before = b""
    for tree in drawn_at_each_version(cycles.deployment.store, cycles.profile, workflow).values():
        assert tree.get(log, b"").startswith(before)
        before = tree.get(log, b"")


@pytest.mark.proves("S19", "C54", "C43")
def test_s19_a_plan_gets_a_further_task_and_completed_ones_stay_completed(played: Played) -> None:
    cycles, workflow = played.cycles, played.workflows["S19"]

    cycles.deployment.until(lambda: "run/vas" in _deadlines(cycles, workflow), about=workflow)
    state = cycles.state(workflow)
    assert _done(cycles, workflow) == ["ep.1.1", "cd.1.1", "ep.2.1", "cd.2.1"]
    assert (state.plan[-1].id, state.plan[-1].depends_on) == ("TASK-008", ("TASK-003",))
    assert {task.status for task in state.plan} == {"completed"}
    assert state.document("ep", "plan.json").version == "1.1.0"
    digest = state.document("cd", "implementation.md").digest
    written = cycles.deployment.store.get_artifact(workflow, digest)
    assert written == b"".join(b"TASK-%03d\n" % number for number in range(3, 9))
    sent = [m.body for m in _said(cycles, workflow) if m.recipient == "cd" and isinstance(m.body, Input)]
    assert sent[-1].file == "ep/plan.json"


def _deadlines(cycles: Crews, workflow: str) -> Iterable[str]:
    found = cycles.deployment.store.read(workflow)
    return found.deadlines if found is not None else ()


@pytest.mark.proves("S20", "C35", "C36", "C61")
def test_s20_an_answer_beyond_its_authority_is_requested_again_then_escalated(played: Played) -> None:
    cycles, workflow = played.cycles, played.workflows["S20"]

    before = _kept(cycles.ended(workflow))
    cycles.tell(workflow, DecisionMade(decision="manual-fix", text="report your own work"))
    state = cycles.ended(workflow)

    problems = [m.body.problem for m in _said(cycles, workflow) if isinstance(m.body, Violation)]
    place = f".workflow/.cycle/{state.cycle_id}.json"
    told = [
        """cd reports plan '["mine"]', which only ep writes""",
        "cd reports for phase 'vas'",
        "status 'done' is none of a PHASE_RESULT's",
        f"cd may read this file and not change it: {place}",
    ]
    assert len(problems) == len(told)
    assert [problem for problem, words in zip(problems, told, strict=True) if words not in problem] == []
    assert [opened.reason for opened in state.escalations] == ["invalid_response"]
    assert _kept(state) == before
    assert cycles.kinds(workflow).count("phase-reported") == 2


def _kept(state: Any) -> tuple[Any, ...]:
    """Everything that an answer could have changed."""
    statuses = {agent.key: agent.status for agent in state.agents}
    return state.fields, state.plan, state.documents, state.iteration, state.tip, statuses
