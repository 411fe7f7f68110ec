"""Lending node_modules: unconfigured, without a change to the checkout, and the project's own packages are its own."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from fixloop.repository.snapshot import mirror_of, take_snapshot
from tests.unit.repositories import make_repository, write
from workers.workspaces.node_modules import lend_generated, lend_node_modules
from workers.workspaces.workspace import Workspace, open_workspace

pytestmark = pytest.mark.slow

TRACKED = {
    ".gitignore": "node_modules/\n",
    "package.json": '{"workspaces": ["packages/*"]}',
    "packages/a/package.json": "{}",
    "packages/a/index.js": "module.exports = 1;\n",
    "test.js": "console.log(require('@me/a') + require('dep'));\n",
}
MODULES = {
    "dep/index.js": "module.exports = require('peer');\n",
    "peer/index.js": "module.exports = 10;\n",
    "@scope/tool/run.js": "",
    ".package-lock.json": "{}",
    ".vite/results.json": "{}",
}


def checkout(folder: Path) -> Path:
    """A JavaScript project as its package manager leaves it: packages, a link to one of its own, a program."""
    repository = make_repository(folder, TRACKED)
    write(repository / "node_modules", MODULES)
    write(repository / "node_modules/.cache", {f"{number}": "" for number in range(501)})
    write(repository / "packages/a/node_modules", {"inner/index.js": ""})
    (repository / "node_modules/@me").mkdir()
    (repository / "node_modules/@me/a").symlink_to("../../packages/a")
    (repository / "node_modules/.bin").mkdir()
    (repository / "node_modules/.bin/dep").symlink_to("../dep/index.js")
    return repository


def opened(repository: Path) -> Workspace:
    cache = repository.parent / "cache"
    snapshot = take_snapshot(repository, issue=1, cache=cache)
    return open_workspace(cache, mirror_of(snapshot, cache), snapshot.commit, ticket="t", fence=1)


def files_of(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_packages_are_linked_and_what_a_tool_adds_is_the_workspaces(tmp_path: Path) -> None:
    repository = checkout(tmp_path / "r")
    workspace = opened(repository)
    before, tree = files_of(repository / "node_modules"), workspace.tree_hash()

    lent = lend_node_modules(workspace.path, workspace.directory, [repository])
    began = time.time()
    write(workspace.path / "node_modules", {".vite/results.json": "[1]", ".vitest/x": "", "new/y": ""})

    assert (workspace.path / "node_modules/@scope/tool/run.js").exists()
    assert (workspace.path / "packages/a/node_modules/inner/index.js").exists()
    assert not (workspace.path / "node_modules/.cache").exists()
    assert files_of(repository / "node_modules") == before
    assert (repository / "node_modules/.vite/results.json").read_text() == "{}"
    assert (workspace.tree_hash(), workspace.tracked_changes(tree)) == (tree, ())
    assert lent.written_into(began) == ()
    workspace.close()
    assert files_of(repository / "node_modules") == before


def test_links_to_the_projects_own_packages_lead_to_the_workspaces(tmp_path: Path) -> None:
    repository = checkout(tmp_path / "r")
    workspace = opened(repository)
    absolute = repository / "node_modules/absolute"
    absolute.symlink_to(repository / "packages/a")
    write(workspace.path, {"packages/a/index.js": "module.exports = 2;\n"})

    lend_node_modules(workspace.path, workspace.directory, [repository])

    for name in ("@me/a", "absolute"):
        linked = workspace.path / "node_modules" / name / "index.js"
        assert linked.resolve() == workspace.path.resolve() / "packages/a/index.js"
    program = workspace.path / "node_modules/.bin/dep"
    assert os.readlink(program) == "../dep/index.js"
    assert program.exists()


@pytest.mark.skipif(shutil.which("node") is None, reason="no node")
def test_node_finds_packages_their_peers_and_the_projects_own(tmp_path: Path) -> None:
    repository = checkout(tmp_path / "r")
    workspace = opened(repository)
    write(workspace.path, {"packages/a/index.js": "module.exports = 2;\n"})

    lend_node_modules(workspace.path, workspace.directory, [repository])
    said = subprocess.run(["node", "test.js"], cwd=workspace.path, capture_output=True, text=True, check=True)

    assert said.stdout == "12\n"


def test_what_pnpm_links_through_its_store_is_found(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", TRACKED)
    store = "node_modules/.pnpm/dep@1/node_modules/dep"
    write(repository, {f"{store}/index.js": ""})
    (repository / "node_modules/dep").symlink_to(".pnpm/dep@1/node_modules/dep")
    (repository / "packages/a/node_modules").mkdir()
    (repository / "packages/a/node_modules/dep").symlink_to(f"../../../{store}")
    workspace = opened(repository)

    lend_node_modules(workspace.path, workspace.directory, [repository])

    for folder in ("node_modules", "packages/a/node_modules"):
        assert (workspace.path / folder / "dep/index.js").resolve() == repository / store / "index.js"


@pytest.mark.parametrize(
    "act", ["echo 1 > dep/index.js", "touch dep/new", "rm peer/index.js", "mv peer/index.js peer/other.js"]
)
def test_whatever_is_written_into_a_lent_package_is_noticed(tmp_path: Path, act: str) -> None:
    repository = checkout(tmp_path / "r")
    for path in repository.rglob("*"):
        os.utime(path, (1, 1), follow_symlinks=False)
    workspace = opened(repository)
    lent = lend_node_modules(workspace.path, workspace.directory, [repository])
    began = time.time() - 1
    assert lent.written_into(began) == ()

    subprocess.run(["sh", "-c", act], cwd=workspace.path / "node_modules", check=True)

    assert lent.written_into(began)


def test_what_setup_installed_comes_before_the_checkouts(tmp_path: Path) -> None:
    repository, made = checkout(tmp_path / "r"), make_repository(tmp_path / "made", TRACKED)
    write(made, {"node_modules/dep/index.js": ""})
    workspace = opened(repository)

    lend_node_modules(workspace.path, workspace.directory, [made, repository])

    assert (workspace.path / "node_modules/dep").resolve() == made / "node_modules/dep"
    assert not (workspace.path / "node_modules/peer").exists()
    assert (workspace.path / "packages/a/node_modules/inner").exists()


def test_a_folder_that_git_tracks_is_left_as_it_is(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"package.json": "{}", "node_modules/kept/index.js": "1"})
    workspace = opened(repository)

    assert lend_node_modules(workspace.path, workspace.directory, [repository]).donors == ()
    assert files_of(workspace.path / "node_modules") == ["kept", "kept/index.js"]


def test_modules_that_setup_generates_reach_the_workspace(tmp_path: Path) -> None:
    files = {".gitignore": "_version.py\n", "pkg/__init__.py": "from ._version import v\n"}
    repository, made = make_repository(tmp_path / "r", files), make_repository(tmp_path / "made", files)
    write(made, {"pkg/_version.py": "v = 1\n"})
    workspace = opened(repository)
    tree = workspace.tree_hash()

    lend_generated(workspace.path, workspace.directory, made)

    assert (workspace.path / "pkg/_version.py").read_text() == "v = 1\n"
    assert workspace.tree_hash() == tree


def test_ten_thousand_files_are_lent_and_looked_through_in_a_moment(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", TRACKED)
    write(repository / "node_modules", {f"p{n % 250}/f{n}.js": "" for n in range(10_000)})
    workspace = opened(repository)
    began = time.process_time()

    lent = lend_node_modules(workspace.path, workspace.directory, [repository])

    assert lent.written_into(time.time()) == ()
    assert time.process_time() - began < 1.5
