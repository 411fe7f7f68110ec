"""The environment of `[workspace] setup`: made once for each state of the dependency files, whole or not at all."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fixloop.errors import InfrastructureError, UsageError
from fixloop.repository.snapshot import mirror_of, take_snapshot
from tests.fixtures.repositories import make_repository, write
from workers.workspaces.setup import Setup, prepare

pytestmark = pytest.mark.slow


class Project:
    """A repository whose setup counts how often it ran."""

    def __init__(self, tmp_path: Path) -> None:
        self.cache = tmp_path / "cache"
        self.repository = make_repository(tmp_path / "r", {"requirements.txt": "a", "code.py": "1"})
        self.count = tmp_path / "count"

    def prepare(self, script: str = "mkdir .venv", **options: object) -> Path:
        snapshot = take_snapshot(self.repository, issue=1, cache=self.cache)
        command = ("sh", "-c", f"echo ran >> {self.count}; {script}")
        setup = Setup(command, {"PATH": os.environ["PATH"]}, **options)  # type: ignore[arg-type]
        return prepare(
            self.cache, mirror_of(snapshot, self.cache), snapshot.commit, subdirectory="", setup=setup
        )

    def runs(self) -> int:
        return len(self.count.read_text().splitlines())


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_setup_runs_once_for_many_workers_and_again_when_dependencies_change(project: Project) -> None:
    with ThreadPoolExecutor() as pool:
        made = list(pool.map(lambda _: project.prepare("sleep 0.2; mkdir .venv"), range(4)))
    write(project.repository, {"code.py": "2"})

    assert project.prepare("sleep 0.2; mkdir .venv") == made[0]
    assert (made[0] / ".venv").is_dir()
    assert (len(set(made)), project.runs()) == (1, 1)
    write(project.repository, {"requirements.txt": "b"})
    assert project.prepare("sleep 0.2; mkdir .venv") != made[0]
    assert project.runs() == 2


def test_a_failure_says_how_and_is_tried_again(project: Project) -> None:
    for _ in range(2):
        with pytest.raises(UsageError, match=r"ended with exit code 3: no such package"):
            project.prepare("echo no such package; exit 3")
    with pytest.raises(UsageError, match="took more than 0 s"):
        project.prepare("sleep 9", timeout_seconds=0.3)

    assert project.runs() == 3
    assert not [path for path in (project.cache / "setups").iterdir() if path.suffix != ".lock"]


@pytest.mark.proves("K40")
def test_a_killed_or_cancelled_setup_is_an_injury(project: Project) -> None:
    with pytest.raises(InfrastructureError, match="was killed before its end"):
        project.prepare("kill -9 $$")
    with pytest.raises(InfrastructureError, match="was cancelled before its end"):
        project.prepare("sleep 9", cancelled=lambda: True)


@pytest.mark.proves("K40")
def test_an_environment_that_a_killed_worker_left_unfinished_is_never_used(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # From inside a namespace, setup could not kill its worker.
    monkeypatch.setenv("FIXLOOP_GUARD", "watched")
    flag = tmp_path / "first"
    dying = f"{{ touch {flag}; kill -9 $(cat {tmp_path}/worker); sleep 9; }}"
    script = f"mkdir .venv; [ -e {flag} ] || {dying}; touch .venv/whole"
    program = (
        "import os; from pathlib import Path; from tests.integration.test_preparation import Project\n"
        f"Path({str(tmp_path / 'worker')!r}).write_text(str(os.getpid()))\n"
        "project = Project.__new__(Project)\n"
        f"project.__dict__ = dict(cache=Path({str(project.cache)!r}), repository=Path({str(project.repository)!r}), "
        f"count=Path({str(project.count)!r}))\n"
        f"project.prepare({script!r})\n"
    )
    died = subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[2], check=False)
    assert died.returncode == -9

    made = project.prepare(script)

    assert (made / ".venv/whole").exists()
    assert project.runs() == 2
    assert len(list((project.cache / "setups").glob("*.made-*"))) == 1
