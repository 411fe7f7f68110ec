"""The guard: limits, cancellation, and nothing that outlives the worker."""

import os
import signal
import subprocess
import sys
import time
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fixloop.errors import InfrastructureError
from fixloop.machine.guard import GuardedResult, mode_in_use, run_guarded
from fixloop.testing.processes import comes
from tests.fixtures.patience import slack
from tests.fixtures.processes import running

pytestmark = pytest.mark.slow

PYTHON = sys.executable


def guarded(*argv: str, **options: Any) -> GuardedResult:
    chosen: dict[str, Any] = {"cwd": Path("/"), "env": dict(os.environ), "timeout_seconds": 30.0} | options
    return run_guarded(argv, **chosen)


@pytest.fixture(autouse=True, params=["namespace", "watched"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each test in both modes, the first where the kernel grants it."""
    name = str(request.param)
    if name == "namespace" and mode_in_use().name != name:
        pytest.skip(f"no PID namespace here: {mode_in_use().reason}")
    monkeypatch.setenv("FIXLOOP_GUARD", name)
    return name


def are_there(folder: Path) -> bool:
    """Whether all of a family have started."""
    return len(list(folder.iterdir())) == 4


def family(folder: Path) -> str:
    """A shell program, its child, grandchild and double-forked orphan, each with `folder` in its command line."""
    sleeper = "sleep 600; true"
    return (
        f"touch {folder}/self; "
        f"sh -c 'touch {folder}/child; {sleeper}' & "
        f"sh -c 'sh -c \"touch {folder}/grandchild; {sleeper}\" & wait' & "
        f"(setsid sh -c 'touch {folder}/orphan; {sleeper}' &) ; "
    )


def test_exit_code_and_output_of_both_streams_are_reported() -> None:
    result = guarded("sh", "-c", "echo out; echo err >&2; exit 3")

    assert (result.exit_code, result.output, result.signal) == (3, "out\nerr\n", None)


def test_stdout_and_stderr_can_be_kept_separately_each_with_the_limit() -> None:
    result = guarded("sh", "-c", "printf 12345678; printf abcdefgh >&2", apart=True, output_limit_bytes=4)

    assert (result.output, result.talk) == (
        "12\n[… 4 bytes left out …]\n78",
        "ab\n[… 4 bytes left out …]\ngh",
    )


@pytest.mark.proves("K40")
@pytest.mark.parametrize(
    ("number", "injured"), [("KILL", True), ("TERM", True), ("SEGV", False), ("ABRT", False)]
)
def test_a_death_by_signal_is_reported_and_only_kill_and_term_are_injuries(
    number: str, injured: bool
) -> None:
    result = guarded("sh", "-c", f"kill -{number} $$")

    assert result.signal == getattr(signal, f"SIG{number}")
    assert (result.exit_code, result.injured) == (None, injured)


def test_a_command_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")

    assert guarded("no-such-command").not_found
    assert guarded(str(tmp_path / "text")).not_found


def test_a_working_directory_that_does_not_exist_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="cannot start 'true' in"):
        guarded("true", cwd=tmp_path / "absent")


def test_a_large_stdin_and_a_large_output_do_not_block_each_other() -> None:
    text = b"0123456789" * 200_000

    result = guarded("cat", stdin=text, output_limit_bytes=10_000_000)

    assert result.output.encode() == text


def test_a_command_that_does_not_read_its_stdin_is_no_problem() -> None:
    assert guarded("true", stdin=b"x" * 1_000_000).exit_code == 0


def test_a_command_that_closes_its_streams_and_keeps_running_is_waited_for() -> None:
    assert guarded("sh", "-c", "exec >&- 2>&- <&-; sleep 0.3; exit 5").exit_code == 5


@pytest.mark.proves("K41")
def test_huge_output_takes_bounded_memory_and_keeps_both_ends() -> None:
    program = "import sys; [sys.stdout.write('x' * 1_000_000) for _ in range(50)]; print('last')"
    tracemalloc.start()
    try:
        result = guarded(PYTHON, "-c", f"print('first'); {program}", output_limit_bytes=100_000)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert result.output.startswith("first\n")
    assert result.output.endswith("xlast\n")
    assert "[… 49,900,011 bytes left out …]" in result.output
    assert len(result.output) < 100_100
    assert peak_bytes < 2_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has these scores")
def test_a_command_is_killed_before_redis_and_workers_when_memory_runs_out() -> None:
    own = int(Path("/proc/self/oom_score_adj").read_text())

    found = guarded("cat", "/proc/self/oom_score_adj")

    assert own < int(found.output) == 500


def test_time_is_limited(tmp_path: Path) -> None:
    result = guarded("sh", "-c", family(tmp_path) + "echo before; wait", timeout_seconds=2.0)

    # A shell that is killed after its children may still have said that they were.
    assert (result.timed_out, result.output.split()[0], result.injured) == (True, "before", False)
    assert 2.0 <= result.duration_seconds < slack(20)
    assert are_there(tmp_path)
    assert running(tmp_path) == []


def test_a_cancelled_command_is_killed_with_everything_it_started(tmp_path: Path) -> None:
    result = guarded("sh", "-c", family(tmp_path) + "wait", cancelled=lambda: are_there(tmp_path))

    assert result.cancelled
    assert are_there(tmp_path)
    assert running(tmp_path) == []


def test_an_error_while_asking_about_cancellation_leaves_nothing_behind(tmp_path: Path) -> None:
    def asking() -> bool:
        assert comes(lambda: are_there(tmp_path), slack(10))
        raise ConnectionError

    with pytest.raises(ConnectionError):
        guarded("sh", "-c", family(tmp_path) + "wait", cancelled=asking)

    assert are_there(tmp_path)
    assert running(tmp_path) == []


def test_processes_that_a_command_leaves_are_killed_when_it_ends(tmp_path: Path) -> None:
    result = guarded(
        "sh", "-c", family(tmp_path) + f'while [ "$(ls {tmp_path} | wc -l)" -lt 4 ]; do sleep 0.05; done'
    )

    assert result.exit_code == 0
    assert are_there(tmp_path)
    assert running(tmp_path) == []


@pytest.mark.proves("K40")
def test_everything_dies_with_a_worker_that_is_killed(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    begun.mkdir()
    worker = start_worker(begun)
    assert comes(lambda: are_there(begun), slack(10))

    # With its whole group, as a supervisor or a terminal would.
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()

    assert comes(lambda: not running(begun), slack(10))


@pytest.mark.proves("A14", "K34")
def test_a_limit_runs_from_the_last_sign_of_life() -> None:
    lived = guarded("sleep", "1", timeout_seconds=0.4, since=time.monotonic)
    unheard = time.monotonic()
    ended = guarded("sleep", "60", timeout_seconds=0.4, since=lambda: unheard)

    assert (lived.exit_code, lived.timed_out) == (0, False)
    assert ended.timed_out


@pytest.mark.skipif(sys.platform != "linux", reason="needs the parent death signal")
def test_a_killed_guard_is_an_injury_and_leaves_no_process(tmp_path: Path) -> None:
    def kill() -> bool:
        guards = set(running("guard_program")) & set(running(tmp_path)) if are_there(tmp_path) else set()
        for pid in guards:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return False

    result = guarded("sh", "-c", family(tmp_path) + "wait", cancelled=kill)

    assert result.injured
    assert running(tmp_path) == []


def test_signals_that_the_worker_ignores_reach_the_command() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        result = guarded("sh", "-c", "kill -INT $$; echo alive")
    finally:
        signal.signal(signal.SIGINT, before)

    assert (result.signal, result.output) == (signal.SIGINT, "")


def test_a_command_inherits_none_of_the_guards_pipes() -> None:
    result = guarded(PYTHON, "-c", "import os; print(sorted(os.listdir('/proc/self/fd'))[:-1])")

    assert result.output == "['0', '1', '2']\n"


def start_worker(folder: Path) -> subprocess.Popen[bytes]:
    program = (
        "import sys; from pathlib import Path; from fixloop.machine.guard import run_guarded\n"
        f"run_guarded(['sh', '-c', {family(folder) + 'wait'!r}], cwd=Path('/'), "
        f"env={{'PATH': {os.environ['PATH']!r}}}, timeout_seconds=600)\n"
    )
    root = Path(__file__).parents[2]
    return subprocess.Popen([PYTHON, "-c", program], cwd=root, start_new_session=True)
