"""`enqueue --profile`, and what outside agents leave in their directories, on a real repository."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

import fixloop
from fixloop.cli import main
from fixloop.errors import ExitCode
from fixloop.profiles.cycle.state import Cycle
from fixloop.store.redis_store import RedisStore
from tests.fixtures.command_stage import Said, said
from tests.fixtures.profile_stage import Profiles

pytestmark = pytest.mark.slow

Capsys = pytest.CaptureFixture[str]
CONFIGURATION = """
[cycle.agent.RA]
outside = true
[handoff.agent.planner]
command = "./plan.sh"
"""
RESULT = (
    "PHASE_RESULT:\n- phase: {}\n- status: success\n- files_written: [{}]\n- summary: done\n- issues: []\n"
)


def git(*words: str) -> str:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    return subprocess.run(["git", *who, *words], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def profiles(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Profiles]:
    """An empty Redis; the current directory is a checkout."""
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    (tmp_path / "shop").mkdir()
    monkeypatch.chdir(tmp_path / "shop")
    monkeypatch.setenv("FIXLOOP_STATE_URL", redis_url)
    monkeypatch.setenv("FIXLOOP_CACHE_DIR", str(tmp_path / "cache"))
    git("init", "-q", "-b", "main")
    Path("fixloop.toml").write_text(CONFIGURATION)
    Path("plan.sh").write_text("#!/bin/sh\n")
    Path("plan.sh").chmod(0o755)
    git("add", "-A")
    git("commit", "-qm", "first")
    store = RedisStore(redis_url)
    yield Profiles(store)
    store.close()


def enqueued(capsys: Capsys, *words: str) -> str:
    told = said(capsys, "enqueue", *words)
    assert told.code == ExitCode.DONE, told.err
    return told.out.strip()


def cycle(profiles: Profiles, workflow: str) -> Cycle:
    return profiles.cycles.state(workflow)


def directory(capsys: Capsys, issue: str, agent: str) -> Path:
    """Where `ack` says that the agent works."""
    told = said(capsys, "ack", issue, "--agent", agent)
    return Path(told.err.split("work in ")[1].split(", then ")[0])


def progress(state: Cycle, agent: str, name: str) -> str:
    return f".workflow/.cycle/{state.cycle_id}.progress/{agent}/{name}"


def leave(folder: Path, path: str, text: str) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text)


def submit(capsys: Capsys, tmp_path: Path, text: str, *words: str) -> Said:
    (tmp_path / "answer").write_text(text)
    return said(capsys, "fixed", "7", "--file", str(tmp_path / "answer"), *words)


@pytest.mark.proves("C45", "C4")
def test_a_cycle_is_submitted_once_with_its_task_its_files_and_the_work_so_far(
    profiles: Profiles, capsys: Capsys
) -> None:
    words = ("--profile", "cycle", "--issue", "7", "--name", "OAuth", "--task", "Log in.")

    first, again = enqueued(capsys, *words), enqueued(capsys, *words)

    state = cycle(profiles, first)
    assert first == again
    assert (state.name, state.description, state.status.value) == ("OAuth", "Log in.", "running")
    assert state.tip == git("rev-parse", "refs/fixloop/7/base")
    drawn = json.loads(Path(f".workflow/.cycle/{state.cycle_id}.json").read_text())
    assert (drawn["title"], drawn["status"]) == ("OAuth", "running")
    assert git("status", "--short") == ""


@pytest.mark.proves("D3", "D53")
def test_handoffs_are_submitted_with_their_kind_and_urgency(
    profiles: Profiles, capsys: Capsys, tmp_path: Path
) -> None:
    (tmp_path / "task.md").write_text("Sessions expire too early.\n")

    workflow = enqueued(
        capsys,
        *("--profile", "handoff", "--issue", "9", "--task-file", str(tmp_path / "task.md")),
        *("--type", "bugfix", "--priority", "critical"),
    )

    state = profiles.handoffs.state(workflow)
    assert (state.kind, state.priority) == ("bugfix", "critical")
    assert state.request == "Sessions expire too early.\n"
    assert state.agent("planner").command == "./plan.sh"
    assert json.loads(Path(".claude/state.json").read_text())["current_workflow"]["type"] == "bugfix"


def test_a_missing_agent_command_is_refused_before_anything_runs(profiles: Profiles, capsys: Capsys) -> None:
    Path("plan.sh").unlink()

    told = said(capsys, "enqueue", "--issue", "7", "--profile", "handoff")

    assert told.code == ExitCode.USAGE
    assert "planner's command './plan.sh' is not found or not executable; install it or mend " in told.err
    assert "`[handoff.agent.planner] command`" in told.err


def test_an_issue_live_with_another_task_or_profile_is_refused_and_can_be_restarted(
    profiles: Profiles, capsys: Capsys
) -> None:
    first = enqueued(capsys, "--profile", "cycle", "--issue", "7", "--task", "Log in.")

    other_task = said(capsys, "enqueue", "--profile", "cycle", "--issue", "7", "--task", "Log out.")
    other_profile = said(capsys, "enqueue", "--profile", "handoff", "--issue", "7")
    second = enqueued(capsys, "--profile", "handoff", "--issue", "7", "--restart")

    assert "issue 7 is live with another task" in other_task.err
    assert "issue 7 is live as a workflow of profile cycle" in other_profile.err
    assert cycle(profiles, first).outcome == "cancelled"
    assert profiles.handoffs.state(second).status == "running"


@pytest.mark.proves("C11", "C12", "C35")
def test_an_agent_s_directory_gives_its_documents_and_its_work(
    profiles: Profiles, capsys: Capsys, tmp_path: Path
) -> None:
    workflow = enqueued(capsys, "--profile", "cycle", "--issue", "7")
    state, folder = cycle(profiles, workflow), directory(capsys, "7", "ra")
    leave(folder, progress(state, "ra", "requirements.md"), "FR-001\n")
    leave(folder, "app.py", "print(1)\n")

    none = submit(capsys, tmp_path, "I am done")
    told = submit(capsys, tmp_path, RESULT.format("ra", "requirements.md"))

    assert none.code == ExitCode.USAGE, "an answer that was none costs nothing that was made"
    assert (told.code, told.out) == (ExitCode.DONE, "app.py\n")
    after = cycle(profiles, workflow)
    assert [(document.name, document.version) for document in after.documents] == [
        ("requirements.md", "1.0.0")
    ]
    assert Path(progress(state, "ra", "requirements.md")).read_text() == "FR-001\n"
    assert git("show", f"{after.tip}:app.py") == "print(1)"
    assert git("rev-parse", "fixloop/7") == after.tip
    assert (directory(capsys, "7", "ep") / "app.py").read_text() == "print(1)\n"


@pytest.mark.proves("D32", "D35", "D54")
def test_an_outside_planner_submits_its_specification_and_passes_on(
    profiles: Profiles, capsys: Capsys, tmp_path: Path
) -> None:
    Path("fixloop.toml").write_text("[handoff]\n")
    workflow = enqueued(capsys, "--profile", "handoff", "--issue", "7", "--task", "Log in.")
    leave(directory(capsys, "7", "planner"), "specs/20260122-auth.md", "Log in.\n")
    answer = json.dumps({"status": "completed", "spec": "specs/20260122-auth.md"})

    told = submit(capsys, tmp_path, answer)

    state = profiles.handoffs.state(workflow)
    assert (told.code, told.out) == (ExitCode.DONE, "specs/20260122-auth.md\n")
    assert (state.spec, state.agent("builder").asked) == ("specs/20260122-auth.md", True)
    assert git("show", f"{state.tip}:specs/20260122-auth.md") == "Log in."
    (handoff,) = Path(".claude/handoffs/pending").iterdir()
    assert json.loads(handoff.read_text())["type"] == "task_handoff"


@pytest.mark.proves("D22", "D56")
@pytest.mark.parametrize("written", ["specs/other.md", "ignored/20260122-auth.md"])
def test_a_specification_that_is_not_a_file_of_the_work_is_not_passed_on(
    profiles: Profiles, capsys: Capsys, tmp_path: Path, written: str
) -> None:
    Path("fixloop.toml").write_text("[handoff]\n")
    Path(".gitignore").write_text("ignored/\n")
    workflow = enqueued(capsys, "--profile", "handoff", "--issue", "7", "--task", "Log in.")
    folder = directory(capsys, "7", "planner")
    leave(folder, written, "Log in.\n")
    named = written if "ignored" in written else "specs/20260122-auth.md"
    answer = json.dumps({"status": "completed", "spec": named})

    told = submit(capsys, tmp_path, answer)

    assert told.code == ExitCode.USAGE
    assert f"spec '{named}' is no file of the work that was handed in; write it there" in told.err
    assert profiles.handoffs.state(workflow).agent("planner").asked
    leave(folder, "specs/20260122-auth.md", "Log in.\n")
    assert submit(capsys, tmp_path, answer.replace(named, "specs/20260122-auth.md")).code == ExitCode.DONE


@pytest.mark.proves("D34")
def test_the_changes_of_each_run_are_kept_and_named_to_the_next_agent(
    profiles: Profiles, capsys: Capsys, tmp_path: Path
) -> None:
    Path("fixloop.toml").write_text("[handoff]\n")
    enqueued(capsys, "--profile", "handoff", "--issue", "7", "--task", "Log in.")
    leave(directory(capsys, "7", "planner"), "specs/20260122-auth.md", "Log in.\n")
    submit(capsys, tmp_path, json.dumps({"status": "completed", "spec": "specs/20260122-auth.md"}))
    folder = directory(capsys, "7", "builder")
    for path in ("app.py", "tests/test_app.py"):
        leave(folder, path, "print(1)\n")
    submit(capsys, tmp_path, json.dumps({"status": "completed", "commit": "login"}))

    request = said(capsys, "ack", "7", "--agent", "reviewer").out
    leave(directory(capsys, "7", "reviewer"), "reviews/1.md", "One issue.\n")
    submit(capsys, tmp_path, json.dumps({"status": "needs_fixes", "issues": 1}))

    code = ["app.py", "tests/test_app.py"]
    assert said(capsys, "status", "7", "--json").document["artifacts"] == [
        {"agent": "planner", "run": 1, "kind": "spec", "files": ["specs/20260122-auth.md"], "count": 1},
        {"agent": "builder", "run": 1, "kind": "code", "files": code, "count": 2},
        {"agent": "reviewer", "run": 1, "kind": "report", "files": ["reviews/1.md"], "count": 1},
    ]
    assert "- made by builder in run 1: code: 2 files (app.py, tests/test_app.py)" in request
    assert "report: 1 file (reviews/1.md)" in said(capsys, "status", "7").out
    assert "| reviewer | 1 | report: 1 file (reviews/1.md) |" in said(capsys, "report", "7").out


@pytest.mark.proves("K17", "C43", "C62")
def test_work_done_by_others_meanwhile_is_kept_unless_it_conflicts(
    profiles: Profiles, capsys: Capsys, tmp_path: Path
) -> None:
    graph = {"RA": [], "front": [], "back": [], "ep": ["RA"], "cd": ["ep", "front", "back"], "vas": ["cd"]}
    (tmp_path / "plan.json").write_text(json.dumps(graph))
    workflow = enqueued(capsys, "--profile", "cycle", "--issue", "7", "--plan", str(tmp_path / "plan.json"))
    for agent, name in (("ra", "a.py"), ("front", "b.py"), ("back", "a.py")):
        leave(directory(capsys, "7", agent), name, agent)

    told = [
        submit(capsys, tmp_path, RESULT.format(agent, ""), "--agent", agent)
        for agent in ("ra", "front", "back")
    ]

    assert [each.code for each in told] == [ExitCode.DONE, ExitCode.DONE, ExitCode.USAGE]
    assert "changed the same lines in a.py; nothing was taken" in told[2].err
    state = cycle(profiles, workflow)
    assert {"a.py", "b.py"} <= set(git("ls-tree", "--name-only", state.tip).splitlines())
    assert not state.completed("back")


def test_the_checkout_itself_may_be_submitted(profiles: Profiles, capsys: Capsys, tmp_path: Path) -> None:
    workflow = enqueued(capsys, "--profile", "cycle", "--issue", "7")
    state = cycle(profiles, workflow)
    refused = submit(capsys, tmp_path, RESULT.format("ra", ""))
    leave(Path(), progress(state, "ra", "requirements.md"), "FR-001\n")
    leave(Path(), "app.py", "print(1)\n")

    told = submit(capsys, tmp_path, RESULT.format("ra", "requirements.md"), "--here")

    assert "ra has no directory yet; `fixloop ack 7 --agent ra` makes one" in refused.err
    assert (told.code, told.out) == (ExitCode.DONE, "app.py\n")
    assert cycle(profiles, workflow).documents[0].name == "requirements.md"
    assert main(["audit", "verify", "7"]) == ExitCode.DONE


def test_the_python_api_submits_a_cycle_and_reads_its_result(profiles: Profiles) -> None:
    submitted = fixloop.enqueue(issue=7, profile="cycle", task="Log in.")

    asked = fixloop.status(7)

    assert (submitted.profile, submitted.status, asked.owner) == ("cycle", "running", "agent")
    assert [agent["name"] for agent in asked.agents if agent["asked"]] == ["ra"]
    assert asked.specialists == ()
