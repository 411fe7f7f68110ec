"""Nothing that a command leaves behind survives its end, in both modes, with and without the rights of root."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import lru_cache
from typing import Any

import pytest

from fixloop.machine.guard import ANSWER_SECONDS, mode_in_use
from tests.attacks import guarded_worker, stray_processes
from tests.fixtures.patience import slack
from tests.fixtures.processes import running
from tests.proofs import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and subreapers"),
]

SLACK_SECONDS = 10.0
"""The machine may be busy with other tests."""
# Of the rights that the first exec still has nothing is left at the second.
PROBE = (
    "import subprocess, sys, fixloop.machine.guard; subprocess.run([sys.executable, '-c', ''], check=True)"
)
AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


MODES = ("namespace", "watched")
USERS = ("oneself", "nobody")
Trials = dict[tuple[str, tuple[str, ...]], "subprocess.Popen[str]"]


@pytest.fixture(scope="module")
def trials() -> Iterator[Trials]:
    """For each mode and interpreter a process that runs all ways in turn; in parallel, as they mostly wait."""
    begun: Trials = {}
    with ExitStack() as held:
        for user in USERS:
            with suppress(pytest.skip.Exception):
                words = entering(user)
                begun |= {(mode, words): held.enter_context(trial(mode, words)) for mode in MODES}
        yield begun


def trial(mode: str, words: tuple[str, ...]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*words, "-m", "tests.attacks.guarded_worker", *stray_processes.WAYS],
        cwd=ROOT,
        env={**environment(), "FIXLOOP_GUARD": mode},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@lru_cache
def told(process: "subprocess.Popen[str]") -> dict[str, Any]:
    """The result of each way."""
    out, err = process.communicate()
    if "this machine refuses one" in err:
        pytest.skip(f"no PID namespace here: {err.splitlines()[-1]}")
    assert process.returncode == 0, err
    return {each["way"]: each for each in map(json.loads, out.splitlines())}


@lru_cache
def entering(user: str) -> tuple[str, ...]:
    """An interpreter for a user; root's own may be inaccessible to others."""
    if user == "oneself":
        return (sys.executable,)
    if os.getuid() or not shutil.which("setpriv"):
        pytest.skip("only root can become somebody else")
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        words = (*AS_NOBODY, python)
        probed = subprocess.run([*words, "-c", PROBE], env=environment(), cwd=ROOT, capture_output=True)
        if probed.returncode == 0:
            return words
    pytest.skip("no Python here that nobody may run")


def environment() -> dict[str, str]:
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "src", sysconfig.get_path("purelib"))))
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": paths}


@pytest.mark.proves("K40")
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", stray_processes.WAYS)
def test_no_process_is_left_and_the_time_limit_holds(way: str, mode: str, user: str, trials: Trials) -> None:
    found = told(trials[mode, entering(user)])[way]

    assert found["left"] == 0
    assert found["seconds"] < guarded_worker.LIMIT_SECONDS + ANSWER_SECONDS + slack(SLACK_SECONDS)


def test_an_unguarded_process_is_detected() -> None:
    """The trial itself: a process outside any guard is found by the token that it was given."""
    token = "of-this-test-alone"
    left = subprocess.Popen([sys.executable, stray_processes.__file__, "survive", token])
    try:
        while left.pid not in running(token):
            assert left.poll() is None
    finally:
        left.kill()
        left.wait()


def test_the_guard_mode_in_use_is_reported_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIXLOOP_GUARD", "watched")
    assert mode_in_use().name == "watched"
    monkeypatch.delenv("FIXLOOP_GUARD")
    mode = mode_in_use()
    assert mode.name == "namespace" or mode.reason
