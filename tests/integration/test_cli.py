"""How the program ends when nothing reads its output."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fixloop.errors import ExitCode

pytestmark = pytest.mark.slow


def test_a_closed_pipe_ends_a_command_quietly(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)

    done = subprocess.run(
        [sys.executable, "-m", "fixloop.cli", "--help"],
        cwd=tmp_path,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)

    assert done.returncode == ExitCode.PIPE_CLOSED
    assert done.stderr == ""


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_on_a_full_disk_is_one_sentence(tmp_path: Path, unbuffered: str) -> None:
    with open("/dev/full", "w") as full:
        command = ["env", f"PYTHONUNBUFFERED={unbuffered}", sys.executable, "-m", "fixloop.cli", "--help"]
        done = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True)

    assert done.returncode == ExitCode.AWAY
    assert done.stderr == "fixloop: cannot write: No space left on device; make room on the disk\n"


def test_a_closed_output_ends_a_command_as_if_it_were_discarded(tmp_path: Path) -> None:
    command = ["sh", "-c", 'exec "$0" -m fixloop.cli --version >&-', sys.executable]

    done = subprocess.run(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)

    assert (done.returncode, done.stderr) == (0, "")
