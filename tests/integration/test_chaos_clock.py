"""A wrong wall clock: what a process sees of it, and what not."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fixloop.testing import clock

pytestmark = pytest.mark.slow

PROGRAM = """
import datetime, json, sys, time
from time import time as imported_before
from pathlib import Path
import sitecustomize
from celery import Celery

def off():
    real = time.clock_gettime(time.CLOCK_REALTIME)
    seen = [time.time(), imported_before(), time.time_ns() / 1e9, datetime.datetime.now().timestamp()]
    seen += [datetime.datetime.now(datetime.UTC).timestamp(), Celery().now().timestamp()]
    return [round((one - real) / 10) * 10 for one in seen]

found = [off(), time.monotonic()]
sitecustomize.set_clock(Path(sys.argv[1]), -30.0)
print(json.dumps([*found, off(), time.monotonic(), round(sitecustomize.skew_seconds())]))
"""


@pytest.mark.proves("R6")
def test_every_part_of_a_process_sees_a_wrong_clock_and_its_changes(tmp_path: Path) -> None:
    path, place = tmp_path / "clock", tmp_path / "place"
    place.mkdir()
    shutil.copy(clock.__file__, place / "sitecustomize.py")
    clock.set_clock(path, 30.0)

    said = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)],
        env=os.environ | {"PYTHONPATH": str(place), clock.VARIABLE: str(path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert said.returncode == 0, said.stderr
    ahead, at, behind, later, skew = json.loads(said.stdout)
    assert ahead == [30] * 6
    assert (behind, skew) == ([-30] * 6, -30)
    assert 0 <= later - at < 20


def test_other_processes_keep_the_right_clock() -> None:
    assert abs(clock.skew_seconds()) < 1
