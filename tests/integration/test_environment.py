"""The environment of a command is an allow-list with fresh caches and the workspace's imports first."""

import subprocess
from pathlib import Path

import pytest

from fixloop.machine.interpreters import Interpreter
from fixloop.machine.variables import allowed_variables
from fixloop.repository.snapshot import mirror_of, take_snapshot
from tests.fixtures.repositories import make_repository, write
from workers.workspaces.environment import allowed_names, environment_for, with_named
from workers.workspaces.workspace import Workspace, open_workspace

pytestmark = pytest.mark.slow

GIVEN = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/home/u",
    "LC_TIME": "C",
    "XDG_CACHE_HOME": "/home/u/.cache",
    "https_proxy": "http://localhost:1",
    "SSL_CERT_FILE": "/etc/cert",
    "PYTHONPATH": "/elsewhere",
    "PYTEST_ADDOPTS": "-k nothing",
    "PIP_INDEX_URL": "http://localhost",
    "VIRTUAL_ENV": "/fixloop's own",
    "API_KEY": "secret",
    "FIXLOOP_STATE_URL": "redis://localhost",
    "CI": "",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    repository = make_repository(tmp_path / "r", {"src/shop/__init__.py": "", "top.py": ""})
    snapshot = take_snapshot(repository, issue=1, cache=tmp_path / "cache")
    mirror = mirror_of(snapshot, tmp_path / "cache")
    return open_workspace(tmp_path / "cache", mirror, snapshot.commit, name="t.1")


def test_a_check_sees_only_allowed_or_named_variables() -> None:
    assert set(allowed_variables(GIVEN)) == {
        "PATH", "HOME", "LC_TIME", "XDG_CACHE_HOME", "https_proxy", "SSL_CERT_FILE", "CI",
    }  # fmt: skip
    assert allowed_variables(GIVEN)["CI"] == "1"
    assert allowed_variables(GIVEN, ["API_KEY", "ABSENT"])["API_KEY"] == "secret"


def test_a_shared_worker_gives_only_what_its_operator_allows() -> None:
    operators = ("API_KEY", "OTHER")

    assert allowed_names(["API_KEY", "AWS_SECRET"], shared=True, operators=operators) == ("API_KEY",)
    assert allowed_names(["API_KEY"], shared=True, operators=()) == ()
    assert allowed_names(["AWS_SECRET"], shared=False, operators=operators) == ("AWS_SECRET",)


def test_each_run_has_new_caches_outside_the_tree(workspace: Workspace) -> None:
    one, two = (environment_for(workspace, Interpreter("", "", "none"), variables=GIVEN) for _ in range(2))

    names = (
        "PYTHONPYCACHEPREFIX",
        "MYPY_CACHE_DIR",
        "RUFF_CACHE_DIR",
        "COVERAGE_FILE",
        "HYPOTHESIS_STORAGE_DIRECTORY",
    )
    for name in names:
        assert one[name] != two[name]
        assert one[name].startswith(str(workspace.scratch))
    assert one["XDG_CACHE_HOME"] == "/home/u/.cache"


def test_pytest_gets_only_the_option_for_the_output_of_failing_tests(workspace: Workspace) -> None:
    nobody = Interpreter("", "", "none")

    own = environment_for(workspace, nobody, variables=GIVEN)
    named = with_named(own, ["PYTEST_ADDOPTS"], GIVEN)

    assert own["PYTEST_ADDOPTS"] == "-o junit_logging=all -o junit_log_passing_tests=false"
    assert named["PYTEST_ADDOPTS"] == f"-k nothing {own['PYTEST_ADDOPTS']}"


def test_cargo_builds_outside_the_checkout_and_apart_from_other_workspaces(workspace: Workspace) -> None:
    before = environment_for(workspace, Interpreter("", "", "none"), variables=GIVEN)
    (workspace.directory / "Cargo.toml").write_text("[package]\n", encoding="utf-8")

    found = environment_for(workspace, Interpreter("", "", "none"), variables=GIVEN)

    assert "CARGO_TARGET_DIR" not in before
    assert Path(found["CARGO_TARGET_DIR"]).parent == workspace.scratch


def test_go_and_cargo_find_their_downloads() -> None:
    given = {
        "GOMODCACHE": "/m",
        "GOPATH": "/g",
        "GOCACHE": "/c",
        "CARGO_HOME": "/r",
        "GOPROXY": "https://u:p@h",
    }

    assert set(allowed_variables(given)) == {*given, "CI"} - {"GOPROXY"}


def test_imports_come_from_the_workspace_first(workspace: Workspace) -> None:
    made = environment_for(workspace, Interpreter("", "", "none"), variables=GIVEN)

    found = with_named(made, ["PYTHONPATH"], GIVEN)

    assert found["PYTHONPATH"].split(":") == [str(workspace.path / "src"), str(workspace.path), "/elsewhere"]


def test_a_src_folder_that_is_a_package_is_imported_from_the_top(workspace: Workspace) -> None:
    write(workspace.path, {"src/__init__.py": ""})

    found = environment_for(workspace, Interpreter("", "", "none"), variables=GIVEN)

    assert found["PYTHONPATH"] == str(workspace.path)


def test_the_chosen_interpreter_comes_first_on_the_path(workspace: Workspace) -> None:
    interpreter = Interpreter("/v/bin/python", "/v", "checkout")

    found = environment_for(workspace, interpreter, variables=GIVEN)

    assert found["PATH"] == "/v/bin:/usr/bin:/bin"
    assert found["VIRTUAL_ENV"] == "/v"


def test_python_is_on_the_path_even_if_the_machine_names_it_differently(
    workspace: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3").symlink_to("/bin/echo")

    found = environment_for(
        workspace, Interpreter(str(tmp_path / "bin/python3"), "", "PATH"), variables=GIVEN
    )

    program = Path(found["PATH"].partition(":")[0]) / "python"
    assert subprocess.run([program, "hello"], capture_output=True, check=True).stdout == b"hello\n"


def test_a_same_size_edit_in_the_same_second_runs_the_new_code(workspace: Workspace) -> None:
    """Old bytecode is valid for Python as long as size and second agree: only a fresh cache is safe."""
    file = workspace.path / "src/shop/__init__.py"
    said = []
    for text in ("print(1)\n", "print(2)\n"):
        file.write_text(text)
        import_it = ["python3", "-c", "import shop"]
        env = environment_for(workspace, Interpreter("", "", "none"))
        said.append(subprocess.run(import_it, env=env, capture_output=True, check=True).stdout)

    assert said == [b"1\n", b"2\n"]
