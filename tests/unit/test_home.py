"""A check has a separate home folder, and settings above a workspace are detected."""

from pathlib import Path

import pytest

from fixloop.repository.mirror import Mirror
from tests.fixtures.repositories import write
from workers.workspaces.environment import in_own_home
from workers.workspaces.frozen_environment import planted, settings_above
from workers.workspaces.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    cache = tmp_path / "cache"
    folder = cache / "work/t.1"
    path, scratch = folder / "tree/shop", folder / "scratch"
    for each in (path, scratch):
        each.mkdir(parents=True)
    return Workspace(folder, path, path, scratch, "0" * 40, Mirror(cache, "shop"), lock=-1)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def seen(workspace: Workspace, home: Path, **variables: str) -> tuple[Path, dict[str, str]]:
    """The home folder of a check, and its environment."""
    given = {"HOME": str(home), **variables}
    found = in_own_home({"PATH": "/bin", **given}, workspace, given)
    return Path(found["HOME"]), found


def test_a_check_finds_no_settings_of_the_user(workspace: Workspace, home: Path) -> None:
    write(home, dict.fromkeys((".config/ruff/ruff.toml", ".mypy.ini", ".npmrc", ".gitconfig"), "evil = 1\n"))
    write(home, {".local/lib/python3.11/site-packages/sitecustomize.py": "evil = 1\n"})

    own, found = seen(workspace, home, XDG_CONFIG_HOME=str(home / ".config"))

    assert own.is_relative_to(workspace.scratch)
    assert [path.name for path in own.iterdir()] == [".gitconfig"]
    assert "evil" not in (own / ".gitconfig").read_text()
    assert "XDG_CONFIG_HOME" not in found
    assert found["PYTHONNOUSERSITE"] == "1"
    assert found["PATH"] == "/bin"


def test_no_two_checks_have_the_same_home(workspace: Workspace, home: Path) -> None:
    assert seen(workspace, home)[0] != seen(workspace, home)[0]


def test_download_caches_are_shared_and_result_caches_are_not(workspace: Workspace, home: Path) -> None:
    write(home, {".cache/pre-commit/db.db": "1", ".pyenv/version": "3", ".config/x": "1"})
    write(home, {".cache/black/x": "1", ".cache/standard/v17/x": "1"})

    own, _ = seen(workspace, home)

    assert (own / ".cache/pre-commit/db.db").read_text() == "1"
    assert (own / ".pyenv/version").read_text() == "3"
    assert [path.name for path in (own / ".cache").iterdir()] == ["pre-commit"]
    assert not (own / ".config").exists()


def test_a_cache_is_found_where_the_user_keeps_it(workspace: Workspace, home: Path, tmp_path: Path) -> None:
    write(tmp_path, {"caches/uv/x": "1"})

    own, found = seen(workspace, home, XDG_CACHE_HOME=str(tmp_path / "caches"))

    assert (own / ".cache/uv/x").exists()
    assert found["GOCACHE"] == str(tmp_path / "caches/go-build")


def test_compilers_get_the_real_paths_unless_the_user_set_others(workspace: Workspace, home: Path) -> None:
    _, found = seen(workspace, home, CARGO_HOME="/elsewhere")

    assert (found["GOPATH"], found["CARGO_HOME"]) == (f"{home}/go", "/elsewhere")


def test_settings_in_fixloop_s_own_folders_are_reported(workspace: Workspace) -> None:
    assert planted(workspace) == ""
    for name in ("work/ruff.toml", "work/t.1/conftest.py", "work/t.1/tree/.eslintrc.json", "package.json"):
        (workspace.mirror.cache / name).touch()

    told = planted(workspace)

    assert told.startswith(
        f"found settings that are not the project's ({workspace.folder}/tree/.eslintrc.json, "
    )
    for name in ("work/ruff.toml", "work/t.1/conftest.py", "package.json"):
        assert str(workspace.mirror.cache / name) in told


def test_a_user_s_settings_above_the_cache_are_only_listed(workspace: Workspace, tmp_path: Path) -> None:
    write(tmp_path, {"pyproject.toml": "", "notes.txt": ""})
    write(workspace.path, {"ruff.toml": ""})

    assert planted(workspace) == ""
    assert tmp_path / "pyproject.toml" in settings_above(workspace)
    assert not {tmp_path / "notes.txt", workspace.path / "ruff.toml"} & {*settings_above(workspace)}
