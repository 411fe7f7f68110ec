"""What a run records of its environment, and what a later one has to find: real workspaces without a workflow."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fixloop.configuration.model import Check, Configuration, SpecialistChecks
from fixloop.configuration.settings import IntegritySettings, WorkspaceSettings
from fixloop.errors import InfrastructureError
from fixloop.repository.snapshot import Snapshot, take_snapshot
from tests.fixtures.memory_store import MemoryStore
from tests.fixtures.repositories import make_repository, write
from tests.integration.test_interpreter import make_venv, site_packages
from workers.commands.frozen import Frozen
from workers.workspaces.ground import Ground, Site

pytestmark = pytest.mark.slow


class Runs:
    """Runs of one workflow on one machine, each in a separate folder."""

    def __init__(self, folder: Path) -> None:
        self.cache, self.top = folder / "cache", make_repository(folder / "shop", {".gitignore": ".venv\n"})
        self.snapshot: Snapshot = take_snapshot(self.top, issue=0, cache=self.cache)
        self.store = MemoryStore(lambda: datetime.now(UTC))

    @contextmanager
    def run(
        self, kept: Mapping[str, str], *, failed: bool, trusted: str = "commit", **settings: Any
    ) -> Iterator[Frozen]:
        """A run after others, of which one has failed or none."""
        check = Check(name="tool", command=("tool", "--check"))
        configuration = Configuration(
            specialists=(SpecialistChecks(name="test-runner", checks=(check,)),),
            integrity=IntegritySettings(**settings),
        )
        specialist = SimpleNamespace(runs=(SimpleNamespace(passed=not failed),))
        state = SimpleNamespace(
            workflow="0a1b2c3d-42-1", trusted=trusted, environments=dict(kept), specialists=(specialist,)
        )
        work: Any = SimpleNamespace(holding=SimpleNamespace(state=state), store=self.store)
        with self.ground(configuration) as ground:
            yield Frozen(work, configuration, ground)

    @contextmanager
    def ground(self, configuration: Configuration) -> Iterator[Ground]:
        with Site(self.snapshot, configuration, self.cache, "t").ground(self.snapshot.commit) as ground:
            assert not ground.problem
            yield ground

    def kept(
        self, before: Mapping[str, str] | None = None, *, failed: bool = False, **more: Any
    ) -> dict[str, str]:
        with self.run(before or {}, failed=failed, **more) as frozen:
            return frozen.kept()

    def problem(self, kept: Mapping[str, str], *, failed: bool = True) -> str:
        with self.run(kept, failed=failed) as frozen:
            return frozen.problem()


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    # A shim on the PATH takes longer to be looked for than all of this.
    monkeypatch.setenv(
        "PATH", f"{tmp_path}/bin{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    write(tmp_path, {"bin/tool": "#!/bin/sh\n"})
    (tmp_path / "bin/tool").chmod(0o755)
    return Runs(tmp_path)


@pytest.mark.proves("I4")
def test_after_a_failure_the_environment_may_not_change(runs: Runs) -> None:
    venv = make_venv(runs.top / ".venv")
    kept = runs.kept()
    assert runs.problem(kept) == ""

    write(site_packages(venv), {"evil.pth": "import os\n"})

    assert runs.problem(kept) == (
        f"the environment changed since the snapshot: {site_packages(venv)}/evil.pth was added; undo that, as only "
        "`[workspace] setup` makes another one where dependency files change"
    )
    assert runs.kept(kept, failed=True) == kept
    (site_packages(venv) / "evil.pth").unlink()
    assert runs.problem(kept) == ""


def test_before_the_first_failure_checks_may_add_to_the_environment(runs: Runs) -> None:
    venv = make_venv(runs.top / ".venv")
    kept = runs.kept()

    write(site_packages(venv), {"filled.py": ""})

    assert runs.problem(kept, failed=False) == ""
    again = runs.kept(kept)
    assert again.keys() == kept.keys()
    assert again != kept
    assert runs.problem(again) == ""


@pytest.mark.proves("I4")
def test_a_new_environment_is_reported(runs: Runs) -> None:
    kept = runs.kept()

    made = make_venv(runs.top / ".venv")

    assert f"{made}/bin/python was added; " in runs.problem(kept)
    shutil.rmtree(made)
    assert runs.problem(kept) == ""


@pytest.mark.proves("I4")
def test_a_changed_program_of_a_check_and_new_settings_above_are_reported(runs: Runs, tmp_path: Path) -> None:
    kept = runs.kept()

    write(tmp_path, {"bin/tool": "#!/bin/sh\nexit 0\n", "ruff.toml": ""})

    told = runs.problem(kept)
    assert f"{tmp_path}/bin/tool was changed; " in told
    assert f"{tmp_path}/ruff.toml was added; " in told


def test_many_differences_are_counted(runs: Runs) -> None:
    venv = make_venv(runs.top / ".venv")
    kept = runs.kept()

    write(site_packages(venv), {f"evil{number}.pth": "" for number in range(5)})

    assert "evil2.pth was added; 2 more; undo that" in runs.problem(kept)


@pytest.mark.parametrize("more", [{"off": ("environment",)}, {"off": ("all",)}, {"trusted": ""}])
def test_no_listing_is_kept_where_nothing_is_compared(runs: Runs, more: dict[str, Any]) -> None:
    assert runs.kept(**more) == {}


def test_a_lost_listing_is_reported(runs: Runs) -> None:
    (key,) = runs.kept()

    with pytest.raises(InfrastructureError, match="the listing 000000000000 of the environment is missing"):
        runs.problem({key: "0" * 64})


def test_a_check_commits_as_fixloop_and_an_agent_as_its_user(runs: Runs, tmp_path: Path) -> None:
    def name(environment: Mapping[str, str]) -> str:
        command = ["git", "config", "--global", "user.name"]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    home = tmp_path / "home"
    write(home, {".gitconfig": "[user]\n\tname = Ann\n"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        with runs.ground(Configuration()) as ground:
            assert (name(ground.check_environment(())), name(ground.environment(()))) == ("fixloop", "Ann")
        with runs.ground(Configuration(workspace=WorkspaceSettings(home=True))) as ground:
            assert name(ground.check_environment(())) == "Ann"
