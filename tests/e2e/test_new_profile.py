"""A profile is one package and one line in one table; nothing else of the product is touched (R1)."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.fixtures.project import FIXLOOP, Project, Told, environment, processes_of, until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
APPLICATION = ("workers", "workflows", "config")
LINE = '    "pair": "tests.e2e.pair",\n'
BEFORE = '    "handoff": "fixloop.profiles.handoff",\n'


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources with one line more."""
    folder = tmp_path_factory.mktemp("product")
    left_out = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", folder / "src", ignore=left_out)
    for name in APPLICATION:
        shutil.copytree(ROOT / name, folder / name, ignore=left_out)
    table = folder / "src" / "fixloop" / "profile_table.py"
    text = table.read_text()
    assert text.count(BEFORE) == 1
    table.write_text(text.replace(BEFORE, BEFORE + LINE))
    return folder


class PairProject(Project):
    """A project whose user has this product."""

    def call(self, *words: str) -> Told:
        process = self.start(*words)
        out, err = process.communicate(timeout=400)
        assert process.returncode == 0, err
        return Told(process.returncode, out, err, 0.0)

    def runs(self) -> list[str]:
        """Which agents have started, in order."""
        runs = self.folder.parent / "runs"
        return [line.split()[0] for line in runs.read_text().splitlines()] if runs.exists() else []


def project(product: Path, folder: Path) -> PairProject:
    variables = {"PYTHONPATH": os.pathsep.join((str(product / "src"), str(ROOT)))}
    return PairProject(folder / "passing", variables=variables)


@pytest.mark.proves("R1", "K30")
def test_a_profile_of_one_package_and_one_line_survives_run_kill_and_resume(
    product: Path, tmp_path: Path
) -> None:
    pair = project(product, tmp_path)
    hold = tmp_path / "hold-second"
    hold.touch()
    running = subprocess.Popen(
        [str(FIXLOOP), "run", ".", "--issue", "7", "--profile", "pair"],
        cwd=pair.folder,
        env=environment(pair.home, pair.variables),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    until(lambda: pair.runs() == ["first", "second"], what="the second agent's run")

    at_work = json.loads(pair.call("status", "7", "--json").out)
    assert (at_work["profile"], at_work["status"], at_work["turn"]) == ("pair", "passing", "second")
    assert "1 of 2 have passed it on" in pair.call("status", "7").out

    working = int((tmp_path / "runs").read_text().split()[-1])
    running.send_signal(signal.SIGKILL)
    running.wait(60)
    os.kill(working, signal.SIGKILL)
    hold.unlink()
    resumed = pair.call("resume", "7")

    assert resumed.out.splitlines()[-1] == "#7 passing: success"
    assert pair.runs() == ["first", "second", "second"]
    log = pair.call("log", "7").out
    assert log.count("first has passed it on") == log.count("second has passed it on") == 1
    assert json.loads(pair.call("status", "7", "--json").out)["outcome"] == "success"
    pair.call("audit", "verify", "7")
    assert not [each for each in processes_of(tmp_path) if "launch.py supervise" in each]


def test_a_workflow_of_an_unknown_profile_is_left_to_a_newer_version(product: Path, tmp_path: Path) -> None:
    pair = project(product, tmp_path)
    pair.call("run", ".", "--issue", "7", "--profile", "pair")

    told = pair.fixloop("status", "7")

    assert told.code != 0
    assert "is of profile 'pair', which this version does not have" in told.err
