"""Commands in the runner: guarded like those below a worker, and without the worker's variables."""

import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from fixloop.machine.guard import RUNNER
from fixloop.testing.processes import comes
from tests.fixtures.patience import slack
from tests.fixtures.processes import running
from tests.integration import test_guard

pytestmark = pytest.mark.slow

mode = test_guard.mode
#: What those of a guard promise that does not depend on whose child it is.
SAME: Final = (
    test_guard.test_exit_code_and_output_of_both_streams_are_reported,
    test_guard.test_stdout_and_stderr_can_be_kept_separately_each_with_the_limit,
    test_guard.test_a_command_that_does_not_exist_is_reported,
    test_guard.test_a_large_stdin_and_a_large_output_do_not_block_each_other,
    test_guard.test_a_command_that_does_not_read_its_stdin_is_no_problem,
    test_guard.test_time_is_limited,
    test_guard.test_a_cancelled_command_is_killed_with_everything_it_started,
    test_guard.test_processes_that_a_command_leaves_are_killed_when_it_ends,
    test_guard.test_everything_dies_with_a_worker_that_is_killed,
    test_guard.test_a_killed_guard_is_an_injury_and_leaves_no_process,
    test_guard.test_a_command_inherits_none_of_the_guards_pipes,
)


@contextmanager
def serving(place: Path) -> Iterator["subprocess.Popen[bytes]"]:
    program = [sys.executable, "-m", "fixloop.cli", "runner", str(place)]
    told = {"PATH": os.environ["PATH"], "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    with subprocess.Popen(program, env=told) as process:
        try:
            assert comes(place.exists)
            yield process
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where one runner serves all that leave it alive: each command comes with its guard settings."""
    place = tmp_path_factory.mktemp("runner") / "socket"
    with serving(place):
        yield place


@pytest.fixture(autouse=True)
def runner(mode: str, socket: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RUNNER, str(socket))


@pytest.mark.parametrize("promise", SAME, ids=lambda promise: promise.__name__)
def test_a_command_elsewhere_is_guarded_as_one_here(promise: Callable[..., None], tmp_path: Path) -> None:
    promise(*[tmp_path][: len(inspect.signature(promise).parameters)])


def test_a_command_elsewhere_is_given_nothing_but_its_own_variables() -> None:
    result = test_guard.guarded("env", env={"PATH": os.environ["PATH"], "OWN": "1"})

    told = {line.partition("=")[0] for line in result.output.splitlines()}
    assert told - {"PWD", "SHLVL", "_", "LC_CTYPE"} == {"PATH", "OWN"}


def test_a_runner_that_is_killed_is_an_injury_of_the_command(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path_factory.mktemp("killed") / "socket"
    monkeypatch.setenv(RUNNER, str(place))
    with serving(place) as own:

        def kill() -> bool:
            if test_guard.are_there(tmp_path):
                own.kill()
            return False

        result = test_guard.guarded("sh", "-c", test_guard.family(tmp_path) + "wait", cancelled=kill)

    assert result.injured
    assert comes(lambda: not running(tmp_path), slack(10))
