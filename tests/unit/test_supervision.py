"""What a supervisor says of a process that ended, and its delay before restarting it."""

import signal
from pathlib import Path

import pytest

from workers.processes.child import BACKOFF_SECONDS, NONE, Kills, kills, pause_after, reason


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (0, "exit code 0"),
        (3, "exit code 3"),
        (-signal.SIGKILL, "killed by SIGKILL"),
        (-signal.SIGSEGV, "killed by SIGSEGV"),
        (-99, "killed by signal 99"),
    ],
)
def test_the_reason_names_the_signal_or_the_exit_code(code: int, said: str) -> None:
    assert reason(code) == said


@pytest.mark.parametrize(
    ("code", "after", "said"),
    [
        (
            -signal.SIGKILL,
            Kills(1, 1),
            "killed by SIGKILL, by the kernel because the memory limit was reached",
        ),
        (-signal.SIGKILL, Kills(0, 1), "killed by SIGKILL, probably by the kernel for want of memory"),
        (-signal.SIGSEGV, Kills(1, 1), "killed by SIGSEGV"),
    ],
)
def test_memory_is_named_as_the_cause_if_the_kernel_counted_a_kill(
    code: int, after: Kills, said: str
) -> None:
    assert reason(code, NONE, after) == said


@pytest.mark.parametrize(
    ("cgroup", "file"),
    [
        ("0::/system.slice/fixloop.service\n", "sys/fs/cgroup/system.slice/fixloop.service/memory.events"),
        ("0::/docker/abc\n", "sys/fs/cgroup/memory.events"),
        ("4:memory:/docker/abc\n0::/\n", "sys/fs/cgroup/memory/docker/abc/memory.oom_control"),
    ],
)
def test_the_kernels_count_is_found_in_both_kinds_of_control_groups(
    cgroup: str, file: str, tmp_path: Path
) -> None:
    for name, text in {
        "proc/self/cgroup": cgroup,
        "proc/vmstat": "nr_free_pages 9\noom_kill 7\n",
        file: "oom 5\noom_kill 4\noom_group_kill 0\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    assert kills(tmp_path) == Kills(ours=4, anybody=7)


def test_without_a_kernel_count_no_cause_is_named(tmp_path: Path) -> None:
    assert kills(tmp_path) == NONE


def test_each_death_in_a_row_is_followed_by_a_longer_pause_up_to_ten_seconds() -> None:
    pauses = [pause_after(deaths) for deaths in range(20)]

    assert pauses[: len(BACKOFF_SECONDS)] == list(BACKOFF_SECONDS)
    assert pauses == sorted(pauses)
    assert max(pauses) == 10.0
