"""A project without its own workers, whose `run` has ended waiting for an outside agent (A56, A66, A73)."""

import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from tests.fixtures.project import TOML, Project, completed, processes_of, until

pytestmark = pytest.mark.slow

AGENT: Final = '[fixer]\nagent = "coder"\n[agent.coder]\n'
SHORT: Final = "[limits]\nfix_minutes = 0.05\nreminder_window_minutes = 0.05\n"
KEPT: Final = {"FIXLOOP_KEEP": "1"}
MOST_MEMORY_KB: Final = 40_000


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Project]]:
    """Makes a project whose processes have all ended at the end."""
    made: list[Project] = []

    def project(toml: str = AGENT + TOML, **variables: str) -> Project:
        folder = tmp_path / f"shop{len(made)}"
        made.append(Project(folder, toml=toml, variables=KEPT | variables))
        return made[-1]

    yield project
    for each in made:
        for pid in timekeepers(each):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        gone(each)


def timekeepers(project: Project) -> list[int]:
    """The ids of the processes that keep the project's clocks."""
    return [
        int(line.partition(":")[0])
        for line in processes_of(project.folder)
        if re.search(r"launch\.py keep ", line)
    ]


def gone(project: Project) -> None:
    """Nothing runs for the project any more, its Redis included."""
    until(lambda: not processes_of(project.folder), what="the end of all processes")


def told(project: Project) -> str:
    """The whole history as text, read without starting anything."""
    said = project.fixloop("log", "1", "--all", FIXLOOP_KEEP="0")
    assert said.code == 0, said.err
    return said.out


@pytest.mark.proves("A56", "A66", "A73")
def test_a_reminder_and_an_escalation_follow_after_run_has_ended_and_leave_nothing(
    make: Callable[..., Project], tmp_path: Path
) -> None:
    notified = tmp_path / "notified"
    project = make(f'notify = ["cp", "/dev/stdin", "{notified}"]\n' + AGENT + SHORT + TOML)

    ended = project.run()

    assert ended.code == 3, ended.err
    until(lambda: "TIMEOUT-1-" in told(project), what="the reminder")
    until(lambda: "ESC-1-" in told(project), what="the escalation")
    until(notified.exists, what="the notify command")
    gone(project)
    assert "keeps the clocks running until nothing waits" in ended.err


def test_the_next_command_restarts_a_killed_timekeeper_and_several_start_only_one(
    make: Callable[..., Project],
) -> None:
    project = make()
    assert project.run().code == 3
    (first,) = timekeepers(project)
    until(lambda: memory_kb(first)["Threads"] > 1, what="its work")

    assert max(memory_kb(first)[name] for name in ("Rss", "Pss")) < MOST_MEMORY_KB
    os.kill(first, signal.SIGKILL)
    until(lambda: not timekeepers(project), what="its death")
    said = [completed(each)[1] for each in [project.start("status", "1") for _ in range(5)]]

    assert sum("keeps the clocks" in each for each in said) == 1, said
    (second,) = timekeepers(project)
    assert f"process {second} keeps the clocks" in "".join(said)
    assert project.fixloop("cancel", "1").err == f"workflow {project.status()['workflow_id']} is cancelled\n"
    gone(project)


def memory_kb(pid: int) -> dict[str, int]:
    """The memory of a process: all that is resident, and with shared pages divided among those who share them."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text() + Path(f"/proc/{pid}/status").read_text()
    return {name: int(number) for name, number in re.findall(r"^(\w+):\s+(\d+)(?: kB)?$", text, re.MULTILINE)}


def deleted(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def test_without_a_timekeeper_status_says_that_clocks_have_stopped(make: Callable[..., Project]) -> None:
    project = make(FIXLOOP_KEEP="0")

    ended = project.run()

    assert "keeps the clocks" not in ended.err
    gone(project)
    stands = "but clocks are stopped until a worker runs"
    until(lambda: stands in project.fixloop("status", "1").out, what="clocks that stand still")
    assert "away" not in project.fixloop("status", "1").out
    assert (project.status()["deadline"], project.status()["clocks_stand_still"]) == (None, True)
    gone(project)
    now = project.fixloop("status", "1", FIXLOOP_KEEP="1")
    assert stands not in now.out
    assert timekeepers(project)


def test_a_timekeeper_ends_with_its_project(make: Callable[..., Project]) -> None:
    project = make()
    assert project.run().code == 3
    assert timekeepers(project)

    until(lambda: deleted(project.folder), what="the folder's end, in which Redis still writes")

    gone(project)


def test_work_that_needs_a_worker_has_no_clocks_without_one(make: Callable[..., Project]) -> None:
    project = make('[fixer]\ncommand = "sleep 300"\n' + TOML)
    running = project.start("run", ".", "--issue", "1")
    until(lambda: "FIXING" in project.fixloop("status", "1").out, what="the fix")

    running.send_signal(signal.SIGINT)

    assert "keeps the clocks" not in completed(running)[1]
    assert running.returncode == 130
    assert "keeps the clocks" not in project.fixloop("status", "1").err
    gone(project)
