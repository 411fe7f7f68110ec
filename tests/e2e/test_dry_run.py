"""`run --dry`: what would run and why, each check once, without a workflow."""

import re
from pathlib import Path

import pytest

from tests.fixtures.project import CALC, RIGHT, TOML, Project

pytestmark = pytest.mark.slow

NOWHERE = "redis://127.0.0.1:1/0"
LINT = '[specialist.code-quality]\ncommand = "grep -c import calc.py"\n'
FIXER = "[fixer]\ncommand = \"sh -c 'touch $HOME/asked'\"\n"


def test_a_dry_run_checks_every_phase_once_without_redis_or_a_number(tmp_path: Path) -> None:
    project = Project(
        tmp_path / "shop",
        toml=FIXER + TOML + LINT,
        calc=CALC + "import os\n",
        variables={"FIXLOOP_STATE_URL": NOWHERE},
    )
    refs = project.git("for-each-ref")

    told = project.fixloop("run", "--dry")

    assert told.code == 1, told.out + told.err
    lines = re.sub(r"\d+\.\d s", "… s", told.out).splitlines()
    assert lines[0].startswith(f"checks in {project.folder} with /")
    assert "    python check.py '{junit}'" in lines
    assert "    grep -c import calc.py" in lines
    assert lines[-4:] == [
        "Test Execution: check.py: 1 failure, … s",
        "  test_calc.py::adds (test_calc.py): 1 + 2 is not 3",
        "Code Quality: grep: passed, … s",
        "shop: 1 failure in 1 of 2 checks",
    ]
    assert not (project.home / "asked").exists()
    assert not (project.folder / ".fixloop").exists()
    assert project.git("for-each-ref") == refs


def test_a_passing_dry_run_says_so_with_its_number_of_checks(tmp_path: Path) -> None:
    told = Project(tmp_path / "shop", toml=TOML + LINT, calc=RIGHT + "import os\n").fixloop("run", "--dry")

    assert told.code == 0, told.out + told.err
    assert told.out.endswith("shop: passed (2 checks)\n")


@pytest.mark.parametrize(
    "word", ["passed", "skipped by a person", "Max iterations", "known issues", "issue "]
)
def test_a_dry_run_that_could_run_nothing_claims_nothing(tmp_path: Path, word: str) -> None:
    missing = '[specialist.security]\ncommand = "no-such-program"\n'

    told = Project(tmp_path / "shop", toml=missing).fixloop("run", "--dry")

    assert told.code == 3
    assert "nothing can be checked" in told.refusal
    assert word not in told.out + told.err


def test_a_dry_run_in_which_a_check_could_not_run_is_not_verified(tmp_path: Path) -> None:
    broken = '[specialist.security]\ncommand = "sh run.sh"\n'

    told = Project(tmp_path / "shop", toml=broken, files={"run.sh": "exec no-such-program\n"}).fixloop(
        "run", "--dry"
    )

    assert told.code == 3
    assert told.out.splitlines()[-1].startswith("shop: not verified: ")


def test_a_dry_run_leaves_a_live_workflow_alone(tmp_path: Path) -> None:
    project = Project(tmp_path / "shop", toml="max_iterations = 1\n" + TOML)
    assert project.run().code == 3
    before = project.log()

    told = project.run("--dry")

    assert told.code == 1
    assert project.log() == before


@pytest.mark.parametrize("option", ["--apply", "--restart"])
def test_a_dry_run_refuses_options_without_effect(tmp_path: Path, option: str) -> None:
    told = Project(tmp_path / "shop").fixloop("run", "--dry", option)

    assert told.code == 2
    assert told.refusal.startswith(f"{option} has no effect with --dry")
