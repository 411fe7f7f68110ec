"""The installed wheel does the whole work by itself, from anywhere, without the checkout.

The dependencies are those of the environment that runs the tests; fixloop is the wheel's alone.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.project import processes_of
from tests.fixtures.redis_server import RedisServer

ROOT = Path(__file__).resolve().parents[2]
NOWHERE = Path("/")
LIMIT_SECONDS = 300.0
ASK = """
import importlib.util, json, fixloop
names = ["workers", "workflows", "config"]
print(json.dumps([fixloop.__file__, [name for name in names if importlib.util.find_spec(name)]]))
"""

pytestmark = pytest.mark.slow


class Installation:
    """An environment with only the wheel, and a user without other settings."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder
        self.environment = folder / "venv"
        venv.create(self.environment, symlinks=True, with_pip=False)
        self.python = self.environment / "bin" / "python"
        (packages,) = self.environment.glob("lib/python*/site-packages")
        words = ["install", "--quiet", "--no-index", "--no-deps", "--no-warn-script-location", str(wheel)]
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(self.python)]
        subprocess.run([*pip, *words], env=self.variables(), check=True)
        # An entry of a .pth is no site directory: the editable install's own .pth in there does nothing.
        (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")

    def variables(self, **further: str) -> dict[str, str]:
        """The user's environment; checks find the tools in the one that runs the tests."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        return {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "VIRTUAL_ENV": sys.prefix,
            "HOME": str(home),
            "XDG_CACHE_HOME": str(home / "cache"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "LANG": "C.UTF-8",
            **further,
        }

    def call(self, *words: str, at: Path = NOWHERE, **further: str) -> "subprocess.CompletedProcess[str]":
        """`fixloop WORDS`, to its end."""
        return subprocess.run(
            [str(self.environment / "bin" / "fixloop"), *words],
            cwd=at,
            env=self.variables(**further),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
        )

    @contextmanager
    def worker(self, url: str) -> Iterator["subprocess.Popen[bytes]"]:
        """`fixloop worker` in an unrelated directory, killed at the end if it still runs."""
        process = subprocess.Popen(
            [str(self.environment / "bin" / "fixloop"), "worker", "-c", "1"],
            cwd=NOWHERE,
            env=self.variables(FIXLOOP_STATE_URL=url),
            stdin=subprocess.DEVNULL,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def installation(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return Installation(tmp_path_factory.mktemp("installation"), wheel)


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A copy of the small example as a git repository."""
    caches = shutil.ignore_patterns("__pycache__", ".*_cache", ".coverage", ".fixloop")
    copy = Path(shutil.copytree(ROOT / "examples" / "inventory", tmp_path / "inventory", ignore=caches))
    person = ["-c", "user.name=A Person", "-c", "user.email=person@example.org"]
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message=start"]):
        subprocess.run(["git", *person, *words], cwd=copy, check=True)
    return copy


@pytest.fixture
def state_url() -> Iterator[str]:
    """A Redis of this test's own."""
    server = RedisServer()
    try:
        yield server.start().url
    finally:
        server.end()


def comes_true(condition: Callable[[], bool]) -> bool:
    """Poll until it does, for as long as anything may take here."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def document(done: "subprocess.CompletedProcess[str]") -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_library_is_the_wheels_and_the_application_has_no_import_name(installation: Installation) -> None:
    done = subprocess.run(
        [installation.python, "-c", ASK],
        cwd=NOWHERE,
        env=installation.variables(),
        capture_output=True,
        text=True,
        check=True,
    )
    file, importable = json.loads(done.stdout)

    assert Path(file).is_relative_to(installation.environment)
    assert importable == []


def test_a_feature_goes_through_the_whole_loop_and_nothing_is_left_running(
    installation: Installation, example: Path
) -> None:
    done = installation.call("run", str(example), "--issue", "47")

    assert done.returncode == 0, done.stdout + done.stderr
    assert document(installation.call("status", "47", "--json", at=example))["outcome"] == "success"
    log = document(installation.call("log", "47", "--json", at=example))
    assert log["statistics"]["fix_completions"] == 3
    audit = installation.call("audit", "verify", at=example)
    assert audit.returncode == 0, audit.stdout
    # The embedded Redis ends with its last user, the guards with their commands.
    assert comes_true(lambda: not processes_of(example.parent) and not processes_of(installation.folder)), (
        processes_of(example.parent) + processes_of(installation.folder)
    )


def test_a_worker_starts_in_any_directory_is_healthy_and_stops_on_request(
    installation: Installation, state_url: str
) -> None:
    with installation.worker(state_url) as process:

        def is_well() -> bool:
            assert process.poll() is None
            return installation.call("worker", "--check", FIXLOOP_STATE_URL=state_url).returncode == 0

        assert comes_true(is_well)
        process.terminate()
        assert process.wait(LIMIT_SECONDS) == 0
    assert comes_true(lambda: not processes_of(installation.folder)), processes_of(installation.folder)
