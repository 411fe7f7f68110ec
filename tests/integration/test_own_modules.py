"""Bytecode of a project's own modules, with a real interpreter and pytest."""

import hashlib
import marshal
import math
import os
import subprocess
import sys
import time
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path

import pytest

from fixloop.configuration.model import Configuration
from fixloop.configuration.settings import SandboxSettings
from fixloop.machine.guard import run_guarded
from fixloop.machine.interpreters import Interpreter
from fixloop.machine.sandbox import means_in_use
from fixloop.repository.snapshot import take_snapshot
from tests.fixtures.repositories import make_repository
from workers.workspaces.compile_modules import HASHED
from workers.workspaces.ground import Site
from workers.workspaces.own_modules import LEAST_BYTES, OwnModules

pytestmark = pytest.mark.slow

PADDING = "#" * LEAST_BYTES + "\n"
OWN = Interpreter(sys.executable, "", "PATH")


class Runs:
    """Runs of pytest in fresh workspaces of one project, as commands of checks do."""

    def __init__(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path
        self.modules = OwnModules(tmp_path / "cache", OWN, "calc")
        self.files = {
            "calc.py": f"def add(a, b):\n    return a + b\n{PADDING}",
            "test_calc.py": f"import calc\ndef test_add():\n    assert calc.add(1, 2) == 3\n{PADDING}",
        }
        self.count = 0
        self.lent = set[str]()
        self.pycache = self.top = tmp_path

    def play(self, *options: str, before: float = math.inf, rest: bool = True) -> str:
        """The output of pytest in the next workspace; the modules it did not compile are recorded."""
        self.count += 1
        self.top, self.pycache = self.tmp_path / f"{self.count}/calc", self.tmp_path / f"{self.count}/pycache"
        self.top.mkdir(parents=True)
        self.pycache.mkdir()
        for name, text in self.files.items():
            (self.top / name).write_text(text)
        self.modules.lend(self.pycache, self.top, before)
        given = {path: path.lstat().st_ino for path in self.pycache.rglob("*.pyc")}
        printed = self.run(*options)
        self.lent = {
            path.name.partition(".")[0] for path, inode in given.items() if path.lstat().st_ino == inode
        }
        if rest:
            self.modules.note(self.pycache, self.top)
        return printed

    def run(self, *options: str) -> str:
        own = {"PYTHONPYCACHEPREFIX": str(self.pycache), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        environment = os.environ | own
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:randomly",
            *options,
        ]
        return subprocess.run(command, cwd=self.top, env=environment, capture_output=True, text=True).stdout


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


def test_modules_that_were_imported_are_compiled_once(runs: Runs) -> None:
    first = runs.play()
    assert "1 passed" in first
    assert runs.lent == set()

    assert "1 passed" in runs.play()
    kept = {path: path.stat().st_mtime_ns for path in (runs.tmp_path / "cache").rglob("*311*")}
    assert "1 passed" in runs.play()

    assert runs.lent == {"calc", "test_calc"}
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def test_a_changed_module_of_the_same_size_and_date_runs_changed(runs: Runs) -> None:
    for _ in range(3):
        runs.play()

    runs.files["calc.py"] = runs.files["calc.py"].replace("a + b", "a - b")
    assert "1 failed" in runs.play()

    runs.files["calc.py"] = runs.files["calc.py"].replace("a - b", "a + b")
    runs.files["test_calc.py"] = runs.files["test_calc.py"].replace("== 3", "== 4")
    assert "1 failed" in runs.play()


def test_a_test_changed_in_its_workspace_runs_changed(runs: Runs) -> None:
    for _ in range(3):
        runs.play(rest=False) if runs.count == 2 else runs.play()
    assert runs.lent == {"calc", "test_calc"}

    test = runs.top / "test_calc.py"
    test.write_text(test.read_text().replace("== 3", "== 4"))

    assert "1 failed" in runs.run()


def test_bytecode_that_a_command_wrote_is_never_kept(runs: Runs) -> None:
    runs.play()
    # A test that plants a forged module.
    forged = "import sys, importlib.util as u, marshal\n" + (
        "c = compile('def add(a, b): return 3', 'calc.py', 'exec')\n"
        "h = u.MAGIC_NUMBER + (1).to_bytes(4, 'little') + bytes(8)\n"
        "open(u.cache_from_source(__file__.replace('conftest', 'calc')), 'wb').write(h + marshal.dumps(c))\n"
    )
    runs.files["calc.py"] = runs.files["calc.py"].replace("a + b", "a - b")
    runs.files["conftest.py"] = forged
    runs.play(rest=False)
    assert any(path.name.startswith("calc") for path in runs.pycache.rglob("*.pyc"))
    runs.modules.note(runs.pycache, runs.top)

    del runs.files["conftest.py"]
    for _ in range(3):
        assert "1 failed" in runs.play()


def test_bytecode_newer_than_a_workflow_is_compiled_again_for_it(runs: Runs) -> None:
    runs.play()
    runs.play()
    source = runs.files["calc.py"].encode()
    [kept] = (runs.tmp_path / "cache").rglob(f"{hashlib.sha256(source).hexdigest()}.*")
    code = marshal.dumps(compile("def add(a, b): return 4", "calc.py", "exec"))
    kept.write_bytes(MAGIC_NUMBER + HASHED + source_hash(source) + code)
    os.utime(kept, (0, 0))

    assert "1 failed" in runs.play()
    assert "1 passed" in runs.play(before=time.time() - 60)


def test_bytecode_that_a_process_compiled_is_lent_to_the_workflow_s_commands(runs: Runs) -> None:
    began = time.time() - 60
    runs.play(before=began)
    runs.play(before=began)

    assert "1 passed" in runs.play(before=began, rest=False)

    links = {path.name.partition(".")[0] for path in runs.pycache.rglob("*.pyc") if path.is_symlink()}
    assert links == {"calc", "test_calc"}


def test_planted_bytecode_is_not_lent(runs: Runs) -> None:
    began = time.time() - 60
    runs.play(before=began)
    runs.play(before=began)
    source = runs.files["calc.py"].encode()
    [kept] = (runs.tmp_path / "cache").rglob(f"{hashlib.sha256(source).hexdigest()}.*")
    code = marshal.dumps(compile("def add(a, b): return 4", "calc.py", "exec"))
    kept.write_bytes(MAGIC_NUMBER + HASHED + source_hash(source) + code)

    assert "1 passed" in runs.play(before=began)


def test_a_failure_is_shown_at_its_place(runs: Runs) -> None:
    runs.files["calc.py"] = runs.files["calc.py"].replace("a + b", "a - b")
    for _ in range(3):
        printed = runs.play("--tb=native")

    assert f'File "{runs.top}/test_calc.py", line 3' in printed
    assert "assert -1 == 3" in printed


def test_a_module_s_warning_is_given_each_time(runs: Runs) -> None:
    runs.files["calc.py"] = "assert (1, 'always true')\n" + runs.files["calc.py"]
    for _ in range(3):
        assert "SyntaxWarning" in runs.play()

    assert runs.lent == {"test_calc"}


def test_modules_that_pytest_compiles_for_a_hook_are_not_lent(runs: Runs) -> None:
    runs.files["pytest.ini"] = "[pytest]\nenable_assertion_pass_hook = true\n"
    runs.files["conftest.py"] = (
        "def pytest_assertion_pass(item, lineno, orig, expl):\n    print('seen', orig)\n"
    )
    for _ in range(3):
        assert "seen calc.add(1, 2) == 3" in runs.play("-s")

    assert "test_calc" not in runs.lent


def test_odd_files_among_bytecode_and_modules_do_no_harm(runs: Runs) -> None:
    for _ in range(3):
        runs.play(rest=runs.count < 2)
    os.mkfifo(Path(f"{runs.pycache}{runs.top}") / "fifo.cpython-311.pyc")
    runs.modules.note(runs.pycache, runs.top)
    (runs.top / "calc.py").unlink()
    (runs.top / "calc.py").symlink_to("/dev/zero")

    runs.modules.lend(runs.tmp_path, runs.top, math.inf)

    assert [path.name.partition(".")[0] for path in Path(f"{runs.tmp_path}{runs.top}").iterdir()] == [
        "test_calc"
    ]


def test_an_interpreter_s_startup_code_is_confined_while_modules_are_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FIXLOOP_SANDBOX_WRITABLE")
    if (found := means_in_use()).name == "none":
        pytest.skip(f"no sandbox here: {found.reason}")
    outside = tmp_path / "outside"
    text = f"def add(a, b):\n    return a + b\n{PADDING}"
    repository = make_repository(tmp_path / "calc", {"calc.py": text, ".gitignore": ".venv\n"})
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", repository / ".venv"], check=True)
    [packages] = repository.glob(".venv/lib/python3*/site-packages")
    (packages / "own.pth").write_text(f"import os; os.mkdir({str(outside)!r})\n")
    snapshot = take_snapshot(repository, issue=1, cache=tmp_path / "cache")
    configuration = Configuration(sandbox=SandboxSettings(mode="require"))
    site = Site(snapshot, configuration, tmp_path / "cache", "mine", probes=False)

    for _ in range(2):
        with site.ground(snapshot.commit) as ground:
            env = ground.check_environment(())
            lent = [
                path.name
                for path in Path(f"{env['PYTHONPYCACHEPREFIX']}{ground.workspace.path}").glob("*.pyc")
            ]
            how = site.confined(ground.workspace.path, env)
            command = [ground.interpreter.path, "-c", "import calc"]
            run_guarded(command, cwd=ground.workspace.path, env=env, timeout_seconds=60, confined=how)

    assert [name.partition(".")[0] for name in lent] == ["calc"]
    assert not outside.exists()
