"""Repeating the tests, with real runs of pytest."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.again import ROOT

pytestmark = pytest.mark.slow

RARELY_RED = """
from pathlib import Path

def test_it():
    times = Path(__file__).with_name("times")
    times.write_text((times.read_text() if times.exists() else "") + "x")
    assert times.read_text() != "xx"

def test_the_other():
    pass
"""


def test_a_test_that_fails_once_is_named_with_its_run_and_the_exit_code_is_1(tmp_path: Path) -> None:
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


def test_all_green_is_exit_code_0(tmp_path: Path) -> None:
    (tmp_path / "test_always.py").write_text("def test_it():\n    pass\n")

    done = subprocess.run(
        [sys.executable, "-m", "tests.again", "--times", "1", "--", "-n", "0", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stdout.splitlines()[1]) == (0, "all green"), done.stdout + done.stderr
