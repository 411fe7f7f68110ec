"""Workspaces: a checkout for each attempt, hashed by content, captured as one commit."""

import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from fixloop.errors import InfrastructureError, UsageError
from fixloop.repository import change
from fixloop.repository.mirror import Mirror
from fixloop.repository.snapshot import Snapshot, mirror_of, take_snapshot
from tests.fixtures.repositories import git, make_repository, write
from workers.workspaces.workspace import Workspace, open_workspace, sweep_workspaces

pytestmark = pytest.mark.slow

FILES = {"src/shop/__init__.py": "price = 1\n", "tests/test_shop.py": "", ".gitignore": "*.log\n"}


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    return take_snapshot(make_repository(tmp_path / "shop", FILES), issue=47, cache=tmp_path / "cache")


@pytest.fixture
def mirror(snapshot: Snapshot, tmp_path: Path) -> Mirror:
    return mirror_of(snapshot, tmp_path / "cache")


@pytest.fixture
def workspace(snapshot: Snapshot, mirror: Mirror, tmp_path: Path) -> Workspace:
    return open_workspace(tmp_path / "cache", mirror, snapshot.commit, name="t.1")


def test_a_workspace_is_a_detached_clone_outside_the_user_s_checkout(
    workspace: Workspace, snapshot: Snapshot, tmp_path: Path
) -> None:
    assert workspace.folder == tmp_path / "cache/work/t.1"
    assert workspace.path.name == "shop"
    assert (workspace.path / "src/shop/__init__.py").read_text() == "price = 1\n"
    assert git(workspace.path, "rev-parse", "HEAD") == snapshot.commit
    assert git(workspace.path, "status", "--porcelain") == ""
    assert workspace.tree_hash() == snapshot.tree
    assert workspace.path not in workspace.scratch.parents


def test_two_attempts_never_share_a_directory(snapshot: Snapshot, mirror: Mirror, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    (cache / "work/t.1").mkdir(parents=True)
    (cache / "work/t.1/half-made").touch()

    opened = [
        open_workspace(cache, mirror, snapshot.commit, name=name)
        for name in ("t.1", "t.1", "t.2", "u/../v.1")
    ]

    assert len({each.folder for each in opened}) == 4
    assert all(each.folder.parent == cache / "work" and each.tree_hash() == snapshot.tree for each in opened)
    assert (cache / "work/t.1/half-made").exists()


def test_commands_run_in_the_subdirectory(snapshot: Snapshot, mirror: Mirror, tmp_path: Path) -> None:
    with open_workspace(
        tmp_path / "cache", mirror, snapshot.commit, name="t.1", subdirectory="src"
    ) as opened:
        assert opened.directory == opened.path / "src"


def test_tools_read_the_address_of_origin_and_cannot_push_there(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})
    git(repository, "remote", "add", "origin", "https://me:secret@example.org/team/shop.git")
    snapshot = take_snapshot(repository, issue=47, cache=tmp_path / "cache")
    mirror = mirror_of(snapshot, tmp_path / "cache")

    with open_workspace(
        tmp_path / "cache", mirror, snapshot.commit, name="t.1", origin=snapshot.origin
    ) as opened:
        assert git(opened.path, "remote", "get-url", "origin") == "https://example.org/team/shop.git"
        assert git(opened.path, "remote", "get-url", "--push", "origin") == "/dev/null"


def test_tags_are_there_for_tools_that_derive_a_version(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})
    git(repository, "tag", "-a", "-m", "one", "v1.0")
    write(repository, {"a": "2"})
    snapshot = take_snapshot(repository, issue=1, cache=tmp_path / "cache")

    opened = open_workspace(
        tmp_path / "cache", mirror_of(snapshot, tmp_path / "cache"), snapshot.commit, name="t.1"
    )

    assert git(opened.path, "describe").startswith("v1.0-1-g")


def test_a_same_size_edit_in_the_same_second_is_seen(workspace: Workspace) -> None:
    before = workspace.tree_hash()
    file = workspace.path / "src/shop/__init__.py"
    status = file.stat()
    file.write_text("price = 2\n")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))

    assert workspace.tree_hash() != before
    assert workspace.tracked_changes(before) == ("src/shop/__init__.py",)
    assert workspace.capture(workspace.commit, "a fix").files == ("src/shop/__init__.py",)


def test_new_files_change_the_hash_and_are_no_tracked_changes(workspace: Workspace) -> None:
    before = workspace.tree_hash()
    write(workspace.path, {"report.xml": "1"})

    assert workspace.tree_hash() != before
    assert workspace.tracked_changes() == ()


def test_files_that_take_minutes_to_read_are_refused_before_they_are_read(workspace: Workspace) -> None:
    enlarge(workspace, "data.bin")

    assert workspace.tracked_changes() == ()
    with pytest.raises(
        UsageError, match=r"^3 GB of files are new or have grown, data\.bin above all, and at"
    ):
        workspace.capture(workspace.commit, "fixed\n")


def test_a_tracked_file_that_grew_too_much_is_refused_too(workspace: Workspace) -> None:
    enlarge(workspace, "tests/test_shop.py")

    with pytest.raises(UsageError, match=r"^3 GB of files are new or have grown, tests/test_shop\.py"):
        workspace.tracked_changes()


def enlarge(workspace: Workspace, name: str) -> None:
    """Make a file with a size of 3 GB that takes almost no disk space."""
    (workspace.path / name).touch()
    os.truncate(workspace.path / name, 3_000_000_000)


def test_deletions_and_modes_are_tracked_changes(workspace: Workspace) -> None:
    (workspace.path / "tests/test_shop.py").unlink()
    (workspace.path / ".gitignore").chmod(0o755)

    assert workspace.tracked_changes() == (".gitignore", "tests/test_shop.py")


def test_ignored_files_and_caches_do_not_count(workspace: Workspace) -> None:
    before = workspace.tree_hash()
    write(
        workspace.path,
        {
            "x.log": "1",
            ".venv/bin/x": "",
            "node_modules/x": "",
            "src/shop/__pycache__/x.pyc": "",
            ".coverage": "",
        },
    )

    assert workspace.tree_hash() == before
    assert workspace.capture(workspace.commit, "a fix").commit == workspace.commit


def test_pipes_sockets_and_devices_do_not_hang(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    before = workspace.tree_hash()
    os.mkfifo(workspace.path / "pipe")
    monkeypatch.chdir(workspace.path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")

        assert workspace.tree_hash() == before
        (workspace.path / "tests/test_shop.py").unlink()
        os.mkfifo(workspace.path / "tests/test_shop.py")
        assert workspace.tracked_changes() == ("tests/test_shop.py",)


@pytest.mark.parametrize(
    "name", [".gitignore", "new/.gitattributes", "new/.git/HEAD", "new/.git/commondir", "new/.git"]
)
def test_a_pipe_that_git_would_wait_for_is_one_sentence(workspace: Workspace, name: str) -> None:
    (workspace.path / name).parent.mkdir(parents=True, exist_ok=True)
    (workspace.path / name).unlink(missing_ok=True)
    os.mkfifo(workspace.path / name)

    with pytest.raises(UsageError, match=f"{name} is a pipe"):
        workspace.capture(workspace.commit, "a fix")


@pytest.mark.parametrize("name", ["HEAD", "commondir"])
def test_a_pipe_behind_a_file_called_git_is_one_sentence(workspace: Workspace, name: str) -> None:
    subprocess.run(["git", "init", "-q", workspace.path / "elsewhere"], check=True)
    (workspace.path / "elsewhere/.git").rename(workspace.path / "elsewhere/place")
    place = workspace.path / "elsewhere/place" / name
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    (workspace.path / "new").mkdir()
    (workspace.path / "new/.git").write_text("gitdir: ../elsewhere/place\n")

    with pytest.raises(UsageError, match=f"{name} is a pipe"):
        workspace.tree_hash()


def test_git_waits_little_for_a_file_that_the_agent_s_own_configuration_includes(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.workspaces.workspace.FOREIGN_SECONDS", 0.5)
    (workspace.path / "new").write_text("")
    git(workspace.path, "add", "new")
    os.mkfifo(workspace.path / "pipe")
    with (workspace.path / ".git/config").open("a") as config:
        config.write("[include]\n\tpath = ../pipe\n")

    assert workspace.capture(workspace.commit, "a fix").files == ("new",)


def test_a_fix_of_too_many_names_is_refused_in_one_sentence(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change, "NAMES_BYTES", 1000)
    write(workspace.path, {f"{'long' * 10}/{number}": "" for number in range(20)})
    assert len(workspace.capture(workspace.commit, "a fix").files) == 20

    write(workspace.path, {f"{'long' * 10}/{number}": "" for number in range(20, 40)})
    with pytest.raises(UsageError, match=r"^40 files were changed, whose names have "):
        workspace.capture(workspace.commit, "a fix")


def test_an_index_that_would_fill_memory_is_not_read(workspace: Workspace) -> None:
    before = workspace.tree_hash()
    os.truncate(workspace.path / ".git/index", 1 << 40)

    assert workspace.tree_hash() == before


@pytest.mark.parametrize("name", ["sharedindex", "config.worktree"])
def test_git_waits_for_no_pipe_that_the_agents_own_repository_names(workspace: Workspace, name: str) -> None:
    (workspace.path / "new").write_text("")
    for words in (
        ["add", "new"],
        ["config", "extensions.worktreeConfig", "true"],
        ["update-index", "--split-index"],
    ):
        git(workspace.path, *words)
    [shared] = (workspace.path / ".git").glob("sharedindex.*")
    place = shared if name == "sharedindex" else workspace.path / ".git" / name
    place.unlink(missing_ok=True)
    os.mkfifo(place)

    # Where git waits for it, this takes ten minutes.
    workspace.tree_hash()


def test_a_pipe_in_the_agent_s_own_repository_does_not_hang(workspace: Workspace) -> None:
    (workspace.path / ".git/index").unlink()
    os.mkfifo(workspace.path / ".git/index")

    assert workspace.tracked_changes() == ()


def test_an_agent_s_own_commits_are_squashed_into_one(workspace: Workspace, mirror: Mirror) -> None:
    parent = workspace.commit
    for number in range(3):
        write(workspace.path, {"src/shop/__init__.py": f"price = {number + 5}\n", f"new{number}": ""})
        git(workspace.path, "add", "-A")
        git(workspace.path, "commit", "-q", "-m", f"step {number}")
    write(workspace.path, {"kept.log": "ignored and committed", "tests/test_shop.py": "weaker"})
    git(workspace.path, "add", "-f", "kept.log")
    git(workspace.path, "commit", "-q", "-m", "last")

    change = workspace.capture(parent, "fix of iteration 1\n")

    assert git(mirror.path, "rev-list", "--count", f"{parent}..{change.commit}") == "1"
    assert git(mirror.path, "log", "-1", "--format=%s %an", change.commit) == "fix of iteration 1 fixloop"
    assert change.files == (
        "kept.log", "new0", "new1", "new2", "src/shop/__init__.py", "tests/test_shop.py",
    )  # fmt: skip
    assert change.marks == ("tests/test_shop.py",)
    assert mirror.has(change.commit)


@pytest.mark.proves("K35")
def test_nothing_changed_is_a_valid_capture(workspace: Workspace) -> None:
    change = workspace.capture(workspace.commit, "a fix")

    assert (change.commit, change.files, change.marks) == (workspace.commit, (), ())


@pytest.mark.parametrize("harm", ["rm -rf .git", "echo nonsense > .git/config", "echo nonsense > .git/index"])
def test_an_agent_s_changes_to_git_itself_have_no_effect(workspace: Workspace, harm: str) -> None:
    write(workspace.path, {"src/shop/__init__.py": "price = 2\n"})
    subprocess.run(["sh", "-c", harm], cwd=workspace.path, check=True)

    assert workspace.capture(workspace.commit, "a fix").files == ("src/shop/__init__.py",)


def test_an_agent_cannot_hide_changes_with_flags_or_filters(workspace: Workspace, tmp_path: Path) -> None:
    git(workspace.path, "update-index", "--assume-unchanged", "src/shop/__init__.py")
    git(workspace.path, "config", "core.fsmonitor", f"touch {tmp_path}/ran")
    (workspace.path / ".git/info/exclude").write_text("*\n")
    write(workspace.path, {"src/shop/__init__.py": "price = 2\n", "new": ""})

    assert workspace.capture(workspace.commit, "a fix").files == ("new", "src/shop/__init__.py")
    assert not (tmp_path / "ran").exists()


def test_the_user_s_repository_may_be_pruned_meanwhile(
    workspace: Workspace, snapshot: Snapshot, mirror: Mirror
) -> None:
    write(workspace.path, {"a": "2"})
    change = workspace.capture(workspace.commit, "a fix")
    git(Path(snapshot.source), "update-ref", "-d", "refs/fixloop/47/base")
    git(Path(snapshot.source), "gc", "-q", "--prune=now")

    assert git(workspace.path, "fsck", "--connectivity-only", "--no-dangling") == ""
    assert git(mirror.path, "show", f"{change.commit}:a") == "2"


def test_closing_removes_everything_including_read_only_files(workspace: Workspace) -> None:
    write(workspace.path, {"locked/file": ""})
    (workspace.path / "locked").chmod(0o500)

    workspace.close()
    workspace.close()

    assert not workspace.folder.exists()


def nest(folder: Path, depth: int) -> None:
    """Make more folders below each other than a path can name."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("a", dir_fd=here)
        inner = os.open("a", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)


@pytest.mark.proves("K40")
def test_closing_removes_folders_nested_more_deeply_than_a_path_can_name(workspace: Workspace) -> None:
    nest(workspace.path, 3000)
    (workspace.path / "a/a").chmod(0o500)

    workspace.close()

    assert not workspace.folder.exists()


def test_folders_nested_too_deeply_for_git_are_one_sentence(workspace: Workspace) -> None:
    nest(workspace.path, 3000)

    with pytest.raises(UsageError, match="nested more than 500 deep"):
        workspace.capture(workspace.commit, "a fix")
    # pytest cannot remove them either.
    workspace.close()


def test_a_commit_that_is_not_in_the_mirror_gives_one_sentence(mirror: Mirror, tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="git read-tree failed"):
        open_workspace(tmp_path / "cache", mirror, "0" * 39 + "1", name="t.9")
    assert not (tmp_path / "cache/work/t.9").exists()


@pytest.mark.proves("K40")
def test_directories_of_killed_owners_are_swept_and_living_ones_stay(
    workspace: Workspace, snapshot: Snapshot, mirror: Mirror, tmp_path: Path
) -> None:
    program = (
        "import sys; from pathlib import Path; from fixloop.repository.mirror import Mirror\n"
        "from workers.workspaces.workspace import open_workspace\n"
        f"made = open_workspace(Path(sys.argv[1]), Mirror(Path(sys.argv[1]), {mirror.source!r}), "
        f"{snapshot.commit!r}, name='dead.1')\n"
        "print('on', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "cache")],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        assert sweep_workspaces(tmp_path / "cache") == []
        owner.kill()

    unowned = tmp_path / "cache/work/x.1"
    unowned.mkdir()
    assert sweep_workspaces(tmp_path / "cache") == ["dead.1"]
    os.utime(unowned, (time.time() - 600, time.time() - 600))
    assert sweep_workspaces(tmp_path / "cache") == ["x.1"]
    assert sorted(path.name for path in (tmp_path / "cache/work").iterdir()) == ["t.1"]
    assert workspace.tree_hash() == snapshot.tree


@pytest.mark.proves("K40")
def test_a_sweep_leaves_an_attempt_alone_that_took_the_name_of_a_dead_one_meanwhile(
    snapshot: Snapshot, mirror: Mirror, tmp_path: Path
) -> None:
    cache, stopped = tmp_path / "cache", Event()
    dead = cache / "work/t.1"

    def sweep() -> None:
        while not stopped.is_set():
            sweep_workspaces(cache)

    with ThreadPoolExecutor() as pool:
        sweepers = [pool.submit(sweep) for _ in range(3)]
        try:
            for _ in range(10):
                dead.mkdir(parents=True)
                (dead / ".owner").touch()
                while dead.exists():
                    time.sleep(0)
                with open_workspace(cache, mirror, snapshot.commit, name="t.1") as made:
                    assert made.tree_hash() == snapshot.tree
        finally:
            stopped.set()
    assert [sweeper.result() for sweeper in sweepers] == [None] * 3
