"""The processes that a killed guard leaves, in any number, are ended by the process above."""

import os
import subprocess
import sys

import pytest

from fixloop.machine.guard_program import children
from fixloop.machine.orphans import adopting

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and subreapers"),
]

MANY = 3000
LEAVES_MANY = f"""
import os
os.setsid()
for _ in range({MANY}):
    if os.fork() == 0:
        os._exit(0)
"""


def test_thousands_of_ended_processes_are_reaped_in_time() -> None:
    """What moves on from process to process leaves as many behind a guard that was not let run."""
    before = children(os.getpid())
    with adopting() as ward:
        subprocess.run([sys.executable, "-I", "-S", "-c", LEAVES_MANY], check=True)
        left = len(children(os.getpid()))

        ward.end()

    assert (left, children(os.getpid())) == (len(before) + MANY, before)
