"""A killed process is known to be dead."""

import os
import subprocess

import pytest

from fixloop.machine.owner import identity, is_dead_here

pytestmark = pytest.mark.slow


@pytest.mark.proves("K40")
def test_a_killed_process_is_dead_from_the_moment_its_files_are_closed() -> None:
    for _ in range(100):
        reading, writing = os.pipe()
        child = subprocess.Popen(["sleep", "60"], pass_fds=(writing,))
        os.close(writing)
        owner = identity(child.pid)

        child.kill()
        os.read(reading, 1)

        assert is_dead_here(owner)
        child.wait()
        os.close(reading)
        assert is_dead_here(owner)
