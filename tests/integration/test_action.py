"""The GitHub Action: its steps as a runner runs them, with the runner's files."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from ruamel.yaml import YAML

from tests.fixtures.project import FIXLOOP, RIGHT, Project, environment

pytestmark = pytest.mark.slow

ROOT: Final = Path(__file__).parents[2]
ACTION: Final[Mapping[str, Any]] = YAML(typ="safe").load(ROOT / "action.yml")


class Runner:
    """A job of one step, which uses the action; fixloop is installed already."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.project = project
        self.files = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for path in self.files.values():
            path.touch()
        self.sarif = folder / "fixloop.sarif"

    def run(self, **more: str) -> "subprocess.CompletedProcess[str]":
        (step,) = [step for step in ACTION["runs"]["steps"] if step["id"] == "check"]
        inputs = {name: each["default"] for name, each in ACTION["inputs"].items()} | {
            "sarif": str(self.sarif)
        }
        given = {
            name: value.replace("${{ inputs.", "{").replace(" }}", "}").format(**inputs)
            for name, value in step["env"].items()
        }
        variables = {
            "GITHUB_ACTION_PATH": str(ROOT),
            **{k: str(v) for k, v in self.files.items()},
            **given,
            **more,
        }
        return subprocess.run(
            ["bash", "-c", step["run"]],
            cwd=self.project.folder,
            env=environment(self.project.home, variables),
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(Project(tmp_path / "shop"), tmp_path)


def test_a_job_fails_with_annotations_a_summary_and_sarif(runner: Runner) -> None:
    done = runner.run()

    assert done.returncode == 1, done.stderr
    assert "::error file=test_calc.py,title=test_calc.py%3A%3Aadds::test_calc.py::adds%0A" in done.stdout
    assert runner.files["GITHUB_OUTPUT"].read_text() == "exit-code=1\n"
    assert runner.files["GITHUB_STEP_SUMMARY"].read_text().startswith("## 1 failure in 1 of 1 checks\n")
    assert '"ruleId": "AssertionError"' in runner.sarif.read_text()


@pytest.mark.parametrize("is_shallow", [False, True])
def test_a_pull_request_is_compared_with_its_base(runner: Runner, is_shallow: bool) -> None:
    project = runner.project
    project.write("fixloop.toml", project.read("fixloop.toml") + 'baseline = "new"\n')
    base = project.commit()
    if not is_shallow:
        project.git("update-ref", "refs/remotes/origin/main", base)
    project.git("checkout", "--quiet", "-b", "feature")
    project.write("more.py", "x = 1\n")
    project.commit()

    done = runner.run(GITHUB_BASE_REF="main", GITHUB_EVENT_NAME="pull_request")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "::error" not in done.stdout
    assert runner.files["GITHUB_OUTPUT"].read_text() == "exit-code=0\n"


def test_a_checkout_without_a_base_says_so_and_counts_all(runner: Runner) -> None:
    done = runner.run(GITHUB_BASE_REF="main")

    assert done.returncode == 1
    assert "::warning title=fixloop::there is no base to compare with" in done.stdout


def test_arguments_are_passed_on(runner: Runner) -> None:
    runner.project.write("calc.py", RIGHT)

    assert runner.run(FIXLOOP_ACTION_ARGUMENTS="--only test-runner --base none").returncode == 0
    assert "nobody" in runner.run(FIXLOOP_ACTION_ARGUMENTS="--only nobody").stderr


def test_every_input_is_used_and_none_is_put_into_a_script() -> None:
    steps = ACTION["runs"]["steps"]
    used = " ".join(value for step in steps for value in step["env"].values())

    assert all(f"inputs.{name} " in used for name in ACTION["inputs"])
    assert not [step["id"] for step in steps if "${{" in step["run"]]
    assert os.access(ROOT / "config/action/check.sh", os.X_OK)
    assert FIXLOOP.exists()


def test_installing_runs_no_module_of_the_pull_request(runner: Runner, tmp_path: Path) -> None:
    for name in ("venv.py", "pip.py", "typer.py"):
        runner.project.write(name, f"open({str(tmp_path / 'ran')!r}, 'a').write(__name__)\n")
    variables = {
        "FIXLOOP_ACTION_PYTHON": sys.executable,
        "GITHUB_ACTION_PATH": str(tmp_path / "no package"),
        "GITHUB_PATH": str(tmp_path / "path"),
        "PIP_NO_INDEX": "1",
        "RUNNER_TEMP": str(tmp_path / "temp"),
    }

    subprocess.run(
        [ROOT / "config" / "action" / "install.sh"],
        cwd=runner.project.folder,
        env=environment(runner.project.home, variables),
        timeout=400,
        check=False,
    )

    assert not (tmp_path / "ran").exists()
    assert (tmp_path / "temp/fixloop/bin/pip").exists()
