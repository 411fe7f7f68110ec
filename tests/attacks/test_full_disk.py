"""A full disk, and what an agent does to its workspace: each ends with a sentence, in a bounded time."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.patience import slack
from tests.fixtures.project import LIMIT_SECONDS, TOML, Project, environment, started, until

pytestmark = pytest.mark.slow

ONCE = "[limits]\nfix_attempts = 1\nspecialist_attempts = 1\n"
SPARSE = "sed -i s/-/+/ calc.py; truncate -s 20G data.bin"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with 24 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.getuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", folder]).returncode:
        pytest.skip("only root can mount a disk")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder: Path) -> Path:
    """Fill the disk of a folder."""
    file = folder / "filling"
    done = subprocess.run(["dd", "if=/dev/zero", f"of={file}", "bs=4k"], capture_output=True, text=True)
    assert "No space left on device" in done.stderr
    return file


def fixed_by(command: str) -> str:
    return f'[fixer]\ncommand = ["sh", "-c", "{command}"]\n' + ONCE


@pytest.mark.parametrize(
    ("toml", "title"),
    [
        (fixed_by("rm -rf $PWD") + TOML, "the fixer deleted its workspace"),
        (fixed_by(SPARSE) + TOML, "21.5 GB of files are new or have grown, data.bin above all"),
        (
            ONCE + '[specialist.test-runner]\ncommand = ["sh", "-c", "rm -rf $PWD"]\n',
            "check sh deleted its workspace",
        ),
    ],
    ids=["the fixer deletes", "a sparse file", "a check deletes"],
)
def test_the_title_says_that_the_fix_damaged_its_workspace(toml: str, title: str, tmp_path: Path) -> None:
    # In a sandbox the folder itself cannot be removed.
    project = Project(tmp_path / "shop", toml=toml, variables={"FIXLOOP_SANDBOX": "off"})

    ended = project.run()

    assert ended.code == 3, ended.err
    (waits,) = [line for line in ended.out.splitlines() if "waits for a decision" in line]
    assert title in waits


def test_run_reports_a_full_disk_within_five_seconds_and_continues_later(disk: Path) -> None:
    go, log = disk.parent / "go", disk.parent / "log"
    waits = f"while ! test -e {go}; do sleep 0.1; done; sed -i s/-/+/ calc.py"
    project = Project(disk / "shop", toml=fixed_by(waits) + TOML)
    variables = environment(project.home, {"FIXLOOP_CACHE_DIR": str(disk.parent / "cache")})

    with started("run", ".", "--issue", "1", at=project.folder, variables=variables, log=log) as running:
        until(lambda: "FIXING" in log.read_text(), what="the fix")
        filling, since = fill(disk), time.monotonic()
        until(lambda: "cannot write to" in log.read_text(), what="a word")
        took = time.monotonic() - since
        filling.unlink()
        go.touch()
        code = running.wait(LIMIT_SECONDS)

    assert code == 0, log.read_text()
    assert took < slack(5)
    assert "No space left on device; free some space: the workflow waits" in log.read_text()


def test_each_command_says_that_the_disk_is_full(disk: Path) -> None:
    project = Project(disk / "shop", variables={"FIXLOOP_CACHE_DIR": str(disk.parent / "cache")})
    assert project.run().code == 3
    keeper = project.folder / ".fixloop" / "redis" / "keeper.pid"
    # A server that still runs would answer.
    until(lambda: not Path(f"/proc/{keeper.read_text().strip()}").exists(), what="the end of the server")
    fill(disk)

    for words in (("status", "1"), ("decide", "1", "abort"), ("resume", "1"), ("run", ".", "--issue", "2")):
        told = project.fixloop(*words)
        assert (told.code, "No space left on device; free some space, then try again" in told.refusal) == (
            4,
            True,
        )
    doctor = project.fixloop("doctor")
    assert (doctor.code, doctor.err) == (1, "")
    assert "No space left on device" in doctor.out


def test_a_fixer_that_fills_the_disk_is_named_as_the_cause(disk: Path) -> None:
    toml = fixed_by("dd if=/dev/zero of=data.bin bs=64k; true") + TOML
    project = Project(disk / "shop", toml=toml)

    ended = project.run(FIXLOOP_CACHE_DIR=str(disk / "cache"))

    assert ended.code == 3, ended.err
    assert "the fixer left no room on the disk of its workspace (No space left on device)" in ended.out
    assert not list((disk / "cache" / "work").iterdir())
