"""Running the tests again and again: what of it was red, how often, beside loops that end with it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.again import ROOT, Run, red_in_all

RARELY_RED = """
from pathlib import Path

def test_it():
    times = Path(__file__).with_name("times")
    times.write_text((times.read_text() if times.exists() else "") + "x")
    assert times.read_text() != "xx"

def test_the_other():
    pass
"""


def test_what_was_red_is_counted_over_all_runs_the_most_often_red_first() -> None:
    runs = [Run(1, 9, 0, {"a": ""}), Run(1, 9, 0, {"b": "", "a": ""}), Run(0, 9, 0, {})]

    assert red_in_all(runs) == ["2 of 3: a", "1 of 3: b"]


def test_a_run_without_a_result_says_with_which_exit_code_pytest_ended() -> None:
    assert str(Run(5, 0, 0, {})) == "pytest ended with exit code 5; 0 passed, 0 skipped, 0 red"


@pytest.mark.slow
def test_a_test_that_is_red_once_is_named_with_its_run_and_the_exit_code_is_1(tmp_path: Path) -> None:
    (tmp_path / "test_rarely.py").write_text(RARELY_RED)
    words = ["--times", "3", "--burn", "1", "--", "-n", "0", str(tmp_path), "-p", "no:cacheprovider"]

    done = subprocess.run(
        [sys.executable, "-m", "tests.again", *words], cwd=ROOT, capture_output=True, text=True
    )

    lines = done.stdout.splitlines()
    assert done.returncode == 1, done.stderr
    assert lines[0].startswith("run 1 of 3: 2 passed, 0 skipped, 0 red (")
    assert lines[1].startswith("run 2 of 3: 1 passed, 0 skipped, 1 red (")
    assert "test_rarely.py::test_it: AssertionError: assert 'xx' != 'xx'" in lines[2]
    assert lines[3].startswith("run 3 of 3: 2 passed")
    assert re.fullmatch(r"1 of 3: \S*test_rarely\.py::test_it", lines[4])


@pytest.mark.slow
def test_all_green_is_exit_code_0(tmp_path: Path) -> None:
    (tmp_path / "test_always.py").write_text("def test_it():\n    pass\n")

    done = subprocess.run(
        [sys.executable, "-m", "tests.again", "--times", "1", "--", "-n", "0", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stdout.splitlines()[1]) == (0, "all green"), done.stdout + done.stderr
