"""What an agent of a cycle left in its workspace: its documents, added log lines, and no other agent's files."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from fixloop.engine.engine import ProfileEngine
from fixloop.profiles.cycle import events as cyc
from fixloop.profiles.cycle.agent_output import Writings, written_by
from fixloop.profiles.cycle.engine import CYCLE
from fixloop.profiles.cycle.phase_result import InvalidResult, PhaseResult
from fixloop.profiles.cycle.records import ResultStatus
from fixloop.statefiles.sync import lay
from tests.fixtures.memory_store import MemoryStore

WORKFLOW = "0a1b2c3d-7-1"
CYCLE_ID = "cycle-v1-x"
ONE = "2026-01-22T10:00:00+08:00 one\n"
TWO = "2026-01-22T10:01:00+08:00 two\n"


class Workspace:
    """A cycle in memory, and the folder in which one of its agents works."""

    def __init__(self, folder: Path) -> None:
        self.store = MemoryStore(lambda: datetime(2026, 3, 1, tzinfo=UTC))
        self.engine = ProfileEngine(self.store, CYCLE)
        self.engine.start(cyc.CycleStarted(workflow=WORKFLOW, issue=7, name="OAuth", cycle_id=CYCLE_ID))
        self.folder = folder
        self.lay()

    def lay(self) -> None:
        found = self.store.read(WORKFLOW)
        assert found is not None
        self.snapshot = found.snapshot
        lay(self.store, self.snapshot, self.folder)

    def path(self, agent: str, name: str) -> Path:
        made = self.folder / f".workflow/.cycle/{CYCLE_ID}.progress/{agent}/{name}"
        made.parent.mkdir(parents=True, exist_ok=True)
        return made

    def written(self, agent: str) -> Writings:
        return written_by(self.store, self.engine.state(WORKFLOW), self.snapshot, agent, self.folder)

    def report(self, agent: str) -> None:
        """Report what it wrote; then all files are written again."""
        found = self.written(agent)
        result = PhaseResult(phase=agent, status=ResultStatus.SUCCESS, summary="done")
        event = cyc.PhaseReported(
            sender=agent, result=result, documents=found.documents, logs=found.logs, plan=found.plan
        )
        self.engine.apply(WORKFLOW, event, operation=f"{agent} {len(self.store.history(WORKFLOW))}")
        self.lay()

    def content(self, digest: str) -> bytes | None:
        return self.store.get_artifact(WORKFLOW, digest)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_a_file_made_to_fill_memory_is_not_read(workspace: Workspace) -> None:
    with workspace.path("ra", "requirements.md").open("wb") as file:
        file.truncate(1 << 40)

    assert workspace.written("ra").documents == ()


@pytest.mark.heavy
@pytest.mark.parametrize("small", [0, 800])
def test_files_made_to_fill_redis_are_refused(workspace: Workspace, small: int) -> None:
    """Five large ones are too much, and so are four with many small ones: each counts 4 KiB more than it has."""
    for number, size in enumerate([16_000_000] * (4 if small else 5) + [1] * small):
        workspace.path("ra", f"{number}.md").write_bytes(b"x" * size)

    with pytest.raises(InvalidResult, match=r"more in .* than 64 MiB"):
        workspace.written("ra")


@pytest.mark.proves("C11", "C12")
def test_documents_that_are_new_or_changed_are_taken_and_the_others_are_not(workspace: Workspace) -> None:
    workspace.path("ra", "requirements.md").write_text("FR-001")
    workspace.path("ra", "edge-cases.md").write_text("none")
    workspace.report("ra")
    workspace.path("ra", "requirements.md").write_text("FR-001, FR-002")

    (changed,) = workspace.written("ra").documents

    assert changed.name == "requirements.md"
    assert workspace.content(changed.digest) == b"FR-001, FR-002"


@pytest.mark.proves("C13", "C15")
def test_only_the_added_lines_of_a_log_are_taken(workspace: Workspace) -> None:
    workspace.path("ra", "changes.log").write_text(ONE)
    workspace.report("ra")
    with workspace.path("ra", "changes.log").open("a") as log:
        log.write(TWO)

    (grown,) = workspace.written("ra").logs

    assert grown.intact
    assert workspace.content(grown.digest) == TWO.encode()
    assert not workspace.written("ra").documents


@pytest.mark.proves("C15")
def test_a_log_whose_earlier_lines_changed_is_refused_when_it_is_reported(workspace: Workspace) -> None:
    workspace.path("ra", "changes.log").write_text(ONE)
    workspace.report("ra")
    workspace.path("ra", "changes.log").write_text(f"2026-01-22T10:00:00Z other\n{TWO}")

    assert not workspace.written("ra").logs[0].intact


@pytest.mark.proves("C17")
def test_a_line_that_an_agent_adds_to_a_log_without_its_time_is_refused(workspace: Workspace) -> None:
    workspace.path("ra", "changes.log").write_text(f"{ONE}\nwrote the requirements\n")

    with pytest.raises(InvalidResult, match=r"line 3 of changes\.log has no time; write one into each line"):
        workspace.written("ra")


@pytest.mark.proves("C17")
def test_an_invalid_time_is_refused(workspace: Workspace) -> None:
    workspace.path("ra", "changes.log").write_text(f"{ONE}2026-99-99T99:99:99 wrote the requirements\n")

    with pytest.raises(InvalidResult, match=r"line 2 of changes\.log has no time"):
        workspace.written("ra")


@pytest.mark.proves("C67", "C13")
def test_text_after_an_unterminated_line_starts_a_new_line(workspace: Workspace) -> None:
    log = workspace.path("ra", "changes.log")
    log.write_text(ONE.rstrip("\n"))

    workspace.report("ra")

    assert log.read_text() == ONE


@pytest.mark.proves("C18", "C5")
@pytest.mark.parametrize(
    ("path", "named"),
    [
        (f".workflow/.cycle/{CYCLE_ID}.json", f"{CYCLE_ID}.json"),
        (f".workflow/.cycle/{CYCLE_ID}.progress/ra/requirements.md", "ra/requirements.md"),
    ],
)
def test_another_agent_s_file_can_be_read_but_not_changed(
    workspace: Workspace, path: str, named: str
) -> None:
    workspace.path("ra", "requirements.md").write_text("FR-001")
    workspace.report("ra")
    (workspace.folder / path).write_text("mine now")

    with pytest.raises(InvalidResult, match=f"ep may read this file and not change it: .*{named}"):
        workspace.written("ep")


@pytest.mark.proves("C54")
def test_the_plan_is_read_from_the_file_it_was_written_to(workspace: Workspace) -> None:
    workspace.path("ep", "plan.json").write_text('{"tasks": [{"id": "TASK-001", "files": ["a.py"]}]}')

    plan = workspace.written("ep").plan

    assert plan is not None
    assert [(task.id, task.files) for task in plan] == [("TASK-001", ("a.py",))]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[{", "plan.json is not valid JSON"),
        ('[{"id": "first"}]', "plan.json is no plan: 0.id: string should match pattern"),
        ("7", "plan.json is no plan: tasks: input should be a valid tuple"),
    ],
)
def test_an_invalid_plan_is_one_sentence(workspace: Workspace, text: str, sentence: str) -> None:
    workspace.path("ep", "plan.json").write_text(text)

    with pytest.raises(InvalidResult, match=sentence):
        workspace.written("ep")


def test_a_link_is_not_followed(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a secret")
    workspace.path("ra", "requirements.md").symlink_to(tmp_path / "secret")

    assert workspace.written("ra") == Writings()
