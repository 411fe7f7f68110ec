"""How the program ends when nothing reads its output."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fixloop.commands.exit_codes import ExitCode

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
