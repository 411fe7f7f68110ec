"""Processes started before they are needed: a worker by `fixloop run`, a check's process, an embedded server."""

import socket
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE

import pytest

from fixloop.machine.attached import launching
from fixloop.servers.embedded import embedded_redis
from fixloop.servers.keeper import password_in, ping
from fixloop.servers.redis_place import Place
from tests.fixtures.processes import running
from tests.fixtures.project import RIGHT, Project, until

pytestmark = pytest.mark.slow

STARTS = (
    "from fixloop.machine.attached import *; start_waiting('{role}'); print('started', flush=True); {then}"
)


@pytest.mark.parametrize("said", [b"", b'{"options": {"concur'])
def test_a_waiting_worker_that_gets_no_role_ends(said: bytes) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(launching("supervise"), stdin=theirs.fileno(), stdout=PIPE, stderr=PIPE)
    with ours:
        ours.sendall(said)

    assert process.communicate(timeout=400) == (b"", b"")
    assert process.returncode == 0


@pytest.mark.parametrize(
    "then", ["", "import os; os._exit(0)", "raise SystemExit(2)", "import time; time.sleep(400)"]
)
@pytest.mark.parametrize("role", ["supervise", "try"])
def test_a_waiting_worker_ends_with_its_starter(role: str, then: str, tmp_path: Path) -> None:
    mark = f"unused={tmp_path.name}"
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTS.format(role=role, then=then)],
        env={"PATH": "/usr/bin", "FIXLOOP_CACHE_DIR": mark},
        stdout=PIPE,
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


def test_a_run_uses_only_the_worker_that_loaded_alongside_it(tmp_path: Path) -> None:
    slow = f"sh -c 'until test -e {tmp_path}/go; do sleep 0.05; done'"
    project = Project(tmp_path / "calc", toml=f'[specialist.test-runner]\ncommand = "{slow}"\n', calc=RIGHT)
    run = project.start("run")
    until(lambda: running(f"{tmp_path}/go"))

    # The supervisor's children are forks with the same command line.
    words = {said_by(pid) for pid in below(run.pid)}
    (tmp_path / "go").touch()
    run.communicate(timeout=400)

    assert run.returncode == 0
    assert [each for each in words if b"launch.py\0supervise" in each] == [
        "\0".join((*launching("supervise"), "")).encode()
    ]


def below(pid: int) -> list[int]:
    found = [
        int(each) for path in Path(f"/proc/{pid}/task").glob("*/children") for each in read(path).split()
    ]
    return found + [each for child in found for each in below(child)]


def said_by(pid: int) -> bytes:
    return read(Path(f"/proc/{pid}/cmdline"))


def read(path: Path) -> bytes:
    """Empty if the process has ended meanwhile."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_waiting_worker_that_died_is_started_again(tmp_path: Path) -> None:
    project = Project(tmp_path / "calc", calc=RIGHT)
    run = project.start("run")
    deadline = time.monotonic() + 60
    while not (waiting := [pid for pid in below(run.pid) if b"supervise" in said_by(pid)]):
        assert time.monotonic() < deadline
    for pid in waiting:
        subprocess.run(["kill", "-9", str(pid)], check=True)

    out, err = run.communicate(timeout=400)

    assert run.returncode == 0, err
    assert "passed" in str(out)


TELLS = """
import pathlib, time
from fixloop.machine.attached import start_waiting, told
start_waiting("supervise")
log = pathlib.Path("before.log")
url = "redis://127.0.0.1:1/0"
variables = {"FIXLOOP_STATE_URL": url, "FIXLOOP_BROKER_URL": url}
child = told({"options": {"queue": "run-0123456789ab", "concurrency": 1}, "variables": variables}, log)
log.rename("after.log")
with child.ending():
    deadline = time.monotonic() + 300
    while not pathlib.Path("after.log").stat().st_size:
        assert time.monotonic() < deadline
        time.sleep(0.05)
"""


def test_a_waiting_worker_s_log_may_be_renamed_before_it_has_loaded(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", TELLS], cwd=tmp_path, timeout=400, check=True)

    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".log"] == ["after.log"]
    assert "127.0.0.1:1" in (tmp_path / "after.log").read_text()


def test_a_check_uses_only_the_process_that_loaded_alongside_it(tmp_path: Path) -> None:
    slow = f"sh -c 'until test -e {tmp_path}/go; do sleep 0.05; done'"
    project = Project(tmp_path / "calc", toml=f'[specialist.test-runner]\ncommand = "{slow}"\n', calc=RIGHT)
    check = project.start("check")
    until(lambda: running(f"{tmp_path}/go"))

    processes = [pid for pid in below(check.pid) if b"launch.py\0try" in said_by(pid)]
    (tmp_path / "go").touch()
    _, err = check.communicate(timeout=400)

    assert check.returncode == 0, err
    assert len(processes) == 1
    assert project.fixloop("check").out.startswith("passed (1 check); nothing has changed")


@pytest.mark.parametrize("place", [".", "below/that"])
def test_the_server_of_a_project_that_had_one_is_started(place: str, tmp_path: Path) -> None:
    with embedded_redis(tmp_path):
        pass
    (tmp_path / place).mkdir(parents=True, exist_ok=True)
    told = "import time; from fixloop.servers.embedded import *; start_ahead(); time.sleep(400)"
    with subprocess.Popen([sys.executable, "-c", told], cwd=tmp_path / place) as starter:
        socket_of = Place(tmp_path).recorded_socket
        until(
            lambda: (
                (at := socket_of()) is not None
                and ping(at, password_in(tmp_path / ".fixloop" / "redis")).ready
            )
        )
        starter.kill()


def test_no_server_is_started_if_a_variable_names_another(tmp_path: Path) -> None:
    with embedded_redis(tmp_path):
        pass
    told = "from fixloop.servers.embedded import *; start_ahead(); print(threading.active_count())"
    variables = {"PATH": "/usr/bin", "fixloop_state_url": "redis://127.0.0.1:1/0"}
    done = subprocess.run([sys.executable, "-c", told], cwd=tmp_path, env=variables, stdout=PIPE, check=True)

    assert done.stdout == b"1\n"


def test_no_server_is_started_for_a_project_without_one(tmp_path: Path) -> None:
    told = (
        "from fixloop.servers.embedded import *; start_ahead(); [t.join() for t in threading.enumerate()[1:]]"
    )
    subprocess.run([sys.executable, "-c", told], cwd=tmp_path, timeout=400, check=True)

    assert list(tmp_path.iterdir()) == []
