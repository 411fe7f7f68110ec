"""A worker that is started before anybody knows what for, as `fixloop run` does: told, or ended."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from fixloop.machine.attached import launching
from tests.fixtures.processes import running
from tests.fixtures.project import RIGHT, Project, until

pytestmark = pytest.mark.slow

STARTS = (
    "from fixloop.machine import attached; attached.start_waiting(); print('started', flush=True); {then}"
)


@pytest.mark.parametrize("said", ["", '{"options": {"concur'])
def test_a_worker_that_nobody_tells_what_it_is_ends_as_one_that_is_not_wanted(said: str) -> None:
    done = subprocess.run(launching("supervise"), input=said, capture_output=True, text=True, timeout=400)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "then", ["", "import os; os._exit(0)", "raise SystemExit(2)", "import time; time.sleep(400)"]
)
def test_it_ends_with_whoever_started_it_however_that_happens(then: str, tmp_path: Path) -> None:
    mark = f"unused={tmp_path.name}"
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTS.format(then=then)],
        env={"PATH": "/usr/bin", "FIXLOOP_CACHE_DIR": mark},
        stdout=subprocess.PIPE,
    )
    assert starter.stdout is not None
    assert starter.stdout.readline() == b"started\n"
    if "sleep" in then:
        starter.kill()
    starter.communicate()

    until(lambda: not of(mark))


def of(mark: str) -> list[Path]:
    """The processes that have `mark` in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                found.append(entry)
        except OSError:
            continue
    return found


def test_a_run_has_one_worker_the_one_that_loaded_while_it_did(tmp_path: Path) -> None:
    slow = f"sh -c 'until test -e {tmp_path}/go; do sleep 0.05; done'"
    project = Project(tmp_path / "calc", toml=f'[specialist.test-runner]\ncommand = "{slow}"\n', calc=RIGHT)
    run = project.start("run")
    until(lambda: running(f"{tmp_path}/go"))

    # Of the supervisor its children are forks, with the same words.
    words = {(Path("/proc") / str(pid) / "cmdline").read_bytes() for pid in below(run.pid)}
    (tmp_path / "go").touch()
    run.communicate(timeout=400)

    assert run.returncode == 0
    assert [each for each in words if b"launch.py\0supervise" in each] == [
        "\0".join((*launching("supervise"), "")).encode()
    ]


def below(pid: int) -> list[int]:
    found = [
        int(each)
        for path in Path(f"/proc/{pid}/task").glob("*/children")
        for each in path.read_text().split()
    ]
    return found + [each for child in found for each in below(child)]


def test_a_worker_that_has_died_meanwhile_is_started_again(tmp_path: Path) -> None:
    project = Project(tmp_path / "calc", calc=RIGHT)
    run = project.start("run")
    deadline = time.monotonic() + 60
    while not (
        waiting := [
            pid for pid in below(run.pid) if b"supervise" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]
    ):
        assert time.monotonic() < deadline
    for pid in waiting:
        subprocess.run(["kill", "-9", str(pid)], check=True)

    out, err = run.communicate(timeout=400)

    assert run.returncode == 0, err
    assert "passed" in str(out)
