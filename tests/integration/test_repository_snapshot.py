"""The snapshot matches what the user sees, and taking it leaves only its own ref."""

import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fixloop.errors import InfrastructureError, UsageError
from fixloop.repository.git import Git
from fixloop.repository.mirror import Mirror
from fixloop.repository.snapshot import (
    Snapshot,
    _described,
    bring,
    mirror_of,
    take_snapshot,
    take_snapshot_of_url,
)
from tests.fixtures.repositories import fingerprint, git, make_repository, write

pytestmark = pytest.mark.slow


def names(mirror: Mirror, commit: str) -> list[str]:
    return sorted(git(mirror.path, "ls-tree", "-r", "--name-only", commit).splitlines())


def snapshot_of(path: Path, cache: Path) -> tuple[Snapshot, list[str]]:
    snapshot = take_snapshot(path, issue=47, cache=cache)
    return snapshot, names(mirror_of(snapshot, cache), snapshot.commit)


def test_uncommitted_untracked_and_deleted_files_are_seen(tmp_path: Path) -> None:
    repository = make_repository(
        tmp_path / "r", {"kept": "1", "gone": "1", "edited": "1", ".gitignore": "*.log\n"}
    )
    write(repository, {"edited": "2", "new/file": "n", "x.log": "ignored"})
    (repository / "gone").unlink()

    snapshot, found = snapshot_of(repository, tmp_path / "cache")

    assert found == [".gitignore", "edited", "kept", "new/file"]
    assert snapshot.changed
    assert git(repository, "show", f"{snapshot.commit}:edited") == "2"
    assert git(repository, "rev-parse", "refs/fixloop/47/base") == snapshot.commit
    assert git(repository, "rev-parse", f"{snapshot.commit}^") == git(repository, "rev-parse", "HEAD")


def test_index_head_and_files_are_byte_identical_afterwards(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1", "b": "1"})
    write(repository, {"a": "2", "staged": "s"})
    git(repository, "add", "staged")
    # Same content, other date: a command that refreshes the index would now write it.
    os.utime(repository / "b", (1, 1))
    before = fingerprint(repository)

    take_snapshot(repository, issue=47, cache=tmp_path / "cache")

    assert fingerprint(repository) == before


def test_a_clean_checkout_is_its_head(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})

    snapshot = take_snapshot(repository, issue=1, cache=tmp_path / "cache")

    assert snapshot.commit == git(repository, "rev-parse", "HEAD")
    assert not snapshot.changed


def test_the_same_content_is_the_same_commit(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})
    write(repository, {"a": "2"})

    first = take_snapshot(repository, issue=1, cache=tmp_path / "cache")

    assert take_snapshot(repository, issue=1, cache=tmp_path / "cache") == first


def test_a_same_size_edit_under_an_old_date_is_seen(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "one"})
    status = (repository / "a").stat()
    with (repository / "a").open("r+") as file:
        file.write("two")
    os.utime(repository / "a", ns=(status.st_atime_ns, status.st_mtime_ns))

    snapshot = take_snapshot(repository, issue=1, cache=tmp_path / "cache")

    assert git(repository, "show", f"{snapshot.commit}:a") == "two"


def test_a_file_hidden_from_git_by_a_flag_is_seen(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "one"})
    git(repository, "update-index", "--assume-unchanged", "a")
    write(repository, {"a": "two"})

    snapshot = take_snapshot(repository, issue=1, cache=tmp_path / "cache")

    assert git(repository, "show", f"{snapshot.commit}:a") == "two"


def test_tracked_files_count_although_they_are_ignored(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})
    write(repository, {".gitignore": "*.log\n", "x.log": "1"})
    git(repository, "add", "-f", "x.log")

    _, found = snapshot_of(repository, tmp_path / "cache")

    assert "x.log" in found


def test_files_left_out_by_a_sparse_checkout_are_no_deletions(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"in/a": "1", "out/b": "1"})
    git(repository, "sparse-checkout", "set", "in")
    assert not (repository / "out").exists()

    snapshot, found = snapshot_of(repository, tmp_path / "cache")

    assert found == ["in/a", "out/b"]
    assert not snapshot.changed


def test_copy_adds_ignored_files(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"p/src/a": "1", ".gitignore": "_version.py\n*.log\n"})
    write(repository, {"p/src/deep/_version.py": "1", "p/x.log": "", "_version.py": "outside the path"})

    snapshot = take_snapshot(
        repository / "p", issue=1, cache=tmp_path / "cache", copy_globs=("src/**/_version.py",)
    )

    mirror = mirror_of(snapshot, tmp_path / "cache")
    assert names(mirror, snapshot.commit) == [".gitignore", "p/src/a"]
    assert names(mirror, snapshot.copied) == ["p/src/deep/_version.py"]


def test_caches_and_fixloop_s_own_folder_are_never_included(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})
    write(repository, {".fixloop/x": "", ".venv/x": "", "n/node_modules/x": "", "b.pyc": "", ".coverage": ""})

    snapshot = take_snapshot(
        repository, issue=1, cache=tmp_path / "cache", copy_globs=(".fixloop/**", "**/*.pyc")
    )

    mirror = mirror_of(snapshot, tmp_path / "cache")
    assert (names(mirror, snapshot.commit), names(mirror, snapshot.copied)) == (["a"], ["b.pyc"])


def test_symlinks_executable_bits_and_odd_names_survive(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1", "dir/x": "1"})
    (repository / "run").write_text("#!/bin/sh\n")
    (repository / "run").chmod(0o755)
    (repository / "link").symlink_to("/nowhere")
    odd = os.fsencode(repository) + b"/new\nline \xff\xfe"
    Path(os.fsdecode(odd)).write_text("odd")
    # A folder that became a link: tracked files below it must not be read through the link.
    (repository / "dir/x").unlink()
    (repository / "dir").rmdir()
    (repository / "dir").symlink_to(tmp_path)
    (tmp_path / "x").write_text("outside")

    snapshot = take_snapshot(repository, issue=1, cache=tmp_path / "cache")

    listed = Git(repository).output("ls-tree", "-r", "-z", snapshot.commit)
    modes = {line.partition(b"\t")[2]: line[:6] for line in listed.split(b"\0") if line}
    assert modes == {
        b"a": b"100644",
        b"dir": b"120000",
        b"link": b"120000",
        b"new\nline \xff\xfe": b"100644",
        b"run": b"100755",
    }


def test_pipes_sockets_and_devices_in_the_tree_do_not_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1", "was_a_file": "1"})
    os.mkfifo(repository / "pipe")
    (repository / "was_a_file").unlink()
    os.mkfifo(repository / "was_a_file")
    (repository / "device").symlink_to("/dev/zero")
    monkeypatch.chdir(repository)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")

        _, found = snapshot_of(repository, tmp_path / "cache")

    assert found == ["a", "device"]


def test_submodules_and_nested_repositories_do_not_break_it(tmp_path: Path) -> None:
    inner = make_repository(tmp_path / "inner", {"i": "1"})
    repository = make_repository(tmp_path / "r", {"a": "1"})
    git(repository, "submodule", "add", "-q", str(inner), "sub")
    git(repository, "commit", "-q", "-m", "with a submodule")
    make_repository(repository / "nested", {"n": "1"})
    (repository / "empty").mkdir()
    git(repository / "empty", "init", "-q")

    snapshot, found = snapshot_of(repository, tmp_path / "cache")

    assert found == [".gitmodules", "a", "sub"]
    assert not snapshot.changed


def test_a_path_below_the_top_snapshots_the_whole_and_names_the_folder(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1", "sub/b": "1"})

    snapshot = take_snapshot(repository / "sub", issue=1, cache=tmp_path / "cache")

    assert (snapshot.source, snapshot.subdirectory) == (str(repository), "sub")


def test_an_empty_path_below_the_top_is_refused(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})
    (repository / "empty").mkdir()

    with pytest.raises(UsageError, match="not part of the snapshot"):
        take_snapshot(repository / "empty", issue=1, cache=tmp_path / "cache")


def test_a_ref_is_taken_as_it_was_committed(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})
    git(repository, "branch", "old")
    write(repository, {"a": "2"})
    git(repository, "commit", "-q", "-a", "-m", "second")

    snapshot = take_snapshot(repository, issue=1, cache=tmp_path / "cache", ref="old")

    assert snapshot.commit == git(repository, "rev-parse", "old")
    with pytest.raises(UsageError, match="no branch, tag or commit 'absent'"):
        take_snapshot(repository, issue=1, cache=tmp_path / "cache", ref="absent")


def test_a_repository_without_commits_is_taken_unchanged(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "first", "r")
    write(tmp_path / "r", {"a": "1", "b": "1", ".gitignore": "*.log\n", "x.log": ""})
    git(tmp_path / "r", "add", "a")

    snapshot, found = snapshot_of(tmp_path / "r", tmp_path / "cache")

    assert found == [".gitignore", "a", "b"]
    assert (snapshot.is_git, snapshot.changed, snapshot.branch, snapshot.subject) == (True, True, "first", "")
    assert snapshot_of(tmp_path / "r", tmp_path / "cache")[0] == snapshot
    git(tmp_path / "r", "commit", "-q", "-m", "now")


def test_the_snapshot_says_on_which_branch_and_commit_the_work_is(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})
    git(
        repository,
        "commit",
        "-q",
        "--allow-empty",
        "--author=Ann <a@b>",
        "-m",
        "Count " + "very " * 30 + "far",
    )
    write(repository, {"a": "2"})

    snapshot = take_snapshot(repository, issue=1, cache=tmp_path / "cache")

    assert snapshot.branch == "main"
    assert snapshot.author == "Ann"
    assert snapshot.subject.startswith("Count very very")
    assert len(snapshot.subject) <= 100
    git(repository, "checkout", "-q", "--detach")
    assert take_snapshot(repository, issue=1, cache=tmp_path / "cache").branch == ""
    of_url = take_snapshot_of_url(f"file://{repository}", "main", issue=2, cache=tmp_path / "cache")
    assert (of_url.branch, of_url.subject, of_url.author) == ("main", snapshot.subject, "Ann")


def test_a_plain_folder_works_and_nothing_is_written_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    write(
        folder,
        {"a": "1", "sub/b": "1", ".gitignore": "*.log\n", "x.log": "", "venv/x": "", "__pycache__/x": ""},
    )
    before = sorted(folder.rglob("*"))

    snapshot, found = snapshot_of(folder, tmp_path / "cache")

    assert found == [".gitignore", "a", "sub/b"]
    assert not snapshot.is_git
    assert sorted(folder.rglob("*")) == before
    assert take_snapshot(folder, issue=47, cache=tmp_path / "cache") == snapshot


def test_a_shallow_clone_works(tmp_path: Path) -> None:
    original = make_repository(tmp_path / "original", {"a": "1"})
    write(original, {"a": "2"})
    git(original, "commit", "-q", "-a", "-m", "second")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{original}", "shallow")

    _, found = snapshot_of(tmp_path / "shallow", tmp_path / "cache")

    assert found == ["a"]


def test_a_shallow_clone_whose_oldest_commit_has_a_tag_works(tmp_path: Path) -> None:
    original = make_repository(tmp_path / "original", {"a": "1"})
    git(original, "tag", "v1")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{original}", "shallow")
    write(tmp_path / "shallow", {"b": "1"})
    git(tmp_path / "shallow", "add", "b")
    git(tmp_path / "shallow", "commit", "-q", "-m", "second")

    _, found = snapshot_of(tmp_path / "shallow", tmp_path / "cache")

    assert found == ["a", "b"]


def test_a_linked_worktree_works(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})
    git(repository, "worktree", "add", "-q", str(tmp_path / "linked"))
    write(tmp_path / "linked", {"b": "1"})

    _, found = snapshot_of(tmp_path / "linked", tmp_path / "cache")

    assert found == ["a", "b"]


def test_a_sha256_repository_works(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--object-format=sha256", "r")
    write(tmp_path / "r", {"a": "1"})
    git(tmp_path / "r", "add", "a")
    git(tmp_path / "r", "commit", "-q", "-m", "first")

    snapshot, found = snapshot_of(tmp_path / "r", tmp_path / "cache")

    assert (len(snapshot.commit), found) == (64, ["a"])


def test_a_stale_index_lock_does_not_matter(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})
    (repository / ".git/index.lock").touch()

    assert take_snapshot(repository, issue=1, cache=tmp_path / "cache").commit
    assert (repository / ".git/index.lock").exists()


def test_a_stale_lock_on_our_ref_is_removed(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})
    lock = repository / ".git/refs/fixloop/1/base.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    os.utime(lock, (time.time() - 60, time.time() - 60))

    assert take_snapshot(repository, issue=1, cache=tmp_path / "cache").commit
    assert not lock.exists()


def test_a_branch_in_the_way_of_our_refs_gives_one_sentence(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})
    git(repository, "update-ref", "refs/fixloop", "HEAD")

    with pytest.raises(UsageError, match="cannot write refs/fixloop/1/base in"):
        take_snapshot(repository, issue=1, cache=tmp_path / "cache")


def test_stale_locks_in_the_mirror_are_removed(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})
    snapshot = take_snapshot(repository, issue=1, cache=tmp_path / "cache")
    mirror = mirror_of(snapshot, tmp_path / "cache")
    write(repository, {"a": "2"})
    for name in ("refs/heads/received.lock", "refs/fixloop/1/base.lock"):
        (mirror.path / name).touch()
        os.utime(mirror.path / name, (1, 1))

    assert mirror.has(take_snapshot(repository, issue=1, cache=tmp_path / "cache").commit)
    assert not list(mirror.path.rglob("*.lock"))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a repository to another user")
def test_a_repository_of_another_user_is_healed(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})
    for path in (repository, *repository.rglob("*")):
        os.chown(path, 12345, 12345)

    assert take_snapshot(repository, issue=1, cache=tmp_path / "cache").commit


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_repository_that_cannot_be_written_gives_one_sentence(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})
    closed = [repository / ".git" / name for name in ("objects", "refs", "")]
    for folder in closed:
        folder.chmod(0o555)
    try:
        with pytest.raises(UsageError, match="may not write to the repository"):
            take_snapshot(repository, issue=1, cache=tmp_path / "cache")
    finally:
        for folder in reversed(closed):
            folder.chmod(0o755)


def test_hooks_and_signing_of_the_user_never_run(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})
    for hook in ("pre-push", "reference-transaction", "post-index-change"):
        (repository / ".git/hooks" / hook).parent.mkdir(exist_ok=True)
        (repository / ".git/hooks" / hook).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 1\n")
        (repository / ".git/hooks" / hook).chmod(0o755)
    git(repository, "config", "commit.gpgSign", "true")
    write(repository, {"a": "2"})

    take_snapshot(repository, issue=1, cache=tmp_path / "cache")

    assert not (tmp_path / "ran").exists()


def test_snapshots_taken_while_the_user_works_lose_nothing(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})

    def work() -> None:
        for number in range(20):
            write(repository, {f"f{number}": str(number)})
            git(repository, "add", "-A")
            git(repository, "commit", "-q", "-m", f"commit {number}")

    with ThreadPoolExecutor() as pool:
        working = pool.submit(work)
        taken = [pool.submit(take_snapshot, repository, issue=n, cache=tmp_path / "cache") for n in range(12)]
        mirror = mirror_of(taken[0].result(), tmp_path / "cache")
        assert all(mirror.has(future.result().commit) for future in taken)
        working.result()

    assert git(repository, "status", "--porcelain") == ""
    assert git(repository, "rev-list", "--count", "HEAD") == "21"


def test_a_url_is_cloned_into_the_mirror(tmp_path: Path) -> None:
    original = make_repository(tmp_path / "original", {"a": "1"})
    git(original, "tag", "v1")
    write(original, {"a": "2"})
    git(original, "commit", "-q", "-a", "-m", "second")
    url = f"file://{original}"

    head = take_snapshot_of_url(url, issue=1, cache=tmp_path / "cache")
    tag = take_snapshot_of_url(url, "v1", issue=2, cache=tmp_path / "cache")

    assert head.commit == git(original, "rev-parse", "HEAD")
    assert tag.commit == git(original, "rev-parse", "v1")
    assert take_snapshot_of_url(url, "main", issue=3, cache=tmp_path / "cache").commit == head.commit
    with pytest.raises(UsageError, match="no branch, tag or commit 'absent'"):
        take_snapshot_of_url(url, "absent", issue=4, cache=tmp_path / "cache")


@pytest.mark.parametrize(
    "url", ["https://user:secret@localhost/a", "https://secret@localhost/a", "ssh://u:secret@h/a"]
)
def test_a_url_with_credentials_is_refused_without_repeating_them(tmp_path: Path, url: str) -> None:
    with pytest.raises(UsageError, match="carries credentials") as refused:
        take_snapshot_of_url(url, issue=1, cache=tmp_path)

    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("url", ["--upload-pack=touch x", "ext::sh -c touch% x", "/local/path"])
def test_an_invalid_url_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(UsageError, match="is not a git URL"):
        take_snapshot_of_url(url, issue=1, cache=tmp_path)


def test_a_url_that_leads_nowhere_gives_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="cannot fetch file:///nowhere/at/all from "):
        take_snapshot_of_url("file:///nowhere/at/all", issue=1, cache=tmp_path / "cache")


def test_another_machine_fetches_the_snapshot_into_its_own_mirror(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})
    write(repository, {"a": "2"})
    snapshot = take_snapshot(repository, issue=1, cache=tmp_path / "one")

    mirror = bring(Snapshot.model_validate_json(snapshot.model_dump_json()), issue=1, cache=tmp_path / "two")

    assert names(mirror, snapshot.commit) == ["a"]


def test_a_machine_that_cannot_see_the_source_says_so(tmp_path: Path) -> None:
    snapshot = Snapshot(source=str(tmp_path / "absent"), commit="0" * 40, tree="0" * 40)

    with pytest.raises(
        InfrastructureError, match="does not hold commit 000000000000; a path has to be"
    ) as told:
        bring(snapshot, issue=1, cache=tmp_path / "cache")

    assert str(tmp_path / "absent") in str(told.value)
    assert socket.gethostname() in str(told.value)


def test_a_commit_that_no_branch_has_any_more_is_fetched_by_its_id(tmp_path: Path) -> None:
    original = make_repository(tmp_path / "original", {"a": "1"})
    write(original, {"a": "2"})
    git(original, "commit", "-q", "-a", "-m", "second")
    lost = git(original, "rev-parse", "HEAD")
    git(original, "reset", "-q", "--hard", "HEAD^")
    git(original, "config", "uploadpack.allowAnySHA1InWant", "true")

    taken = take_snapshot_of_url(f"file://{original}", lost, issue=1, cache=tmp_path / "cache")

    assert taken.commit == lost
    with pytest.raises(UsageError, match="no branch, tag or commit"):
        take_snapshot_of_url(f"file://{original}", "0" * 40, issue=1, cache=tmp_path / "cache")


def test_work_travels_between_mirrors_as_a_thin_bundle(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})
    base = take_snapshot(repository, issue=1, cache=tmp_path / "one")
    other = bring(base, issue=1, cache=tmp_path / "two")
    write(repository, {"a": "2"})
    tip = take_snapshot(repository, issue=1, cache=tmp_path / "one")

    with mirror_of(base, tmp_path / "one").bundled(tip.commit, since=base.commit) as file:
        bundle = file.read_bytes()
    other.unbundle(bundle)

    assert other.has(tip.commit)
    assert bundle.startswith(b"# v2 git bundle\n-" + base.commit.encode())


def test_a_damaged_bundle_leaves_the_mirror_as_it_was(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})
    base = take_snapshot(repository, issue=1, cache=tmp_path / "one")
    other = bring(base, issue=1, cache=tmp_path / "two")
    write(repository, {"a": "2"})
    tip = take_snapshot(repository, issue=1, cache=tmp_path / "one")
    with mirror_of(base, tmp_path / "one").bundled(tip.commit, since=base.commit) as file:
        bundle = file.read_bytes()

    for damaged in (
        bundle[:-30],
        b"",
        b"no bundle at all",
        bundle.replace(b"-" + base.commit[:9].encode(), b"-000000000"),
    ):
        with pytest.raises(InfrastructureError):
            other.unbundle(damaged)

    assert not other.has(tip.commit)
    other.unbundle(bundle)
    assert other.has(tip.commit)


def test_keeping_a_commit_that_is_not_there_is_refused(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "cache", "x")
    mirror.ensure()

    with pytest.raises(InfrastructureError):
        mirror.keep("0" * 39 + "1")
    assert not mirror.has("0" * 39 + "1")


@pytest.mark.proves("K40")
def test_a_worker_killed_while_it_takes_snapshots_leaves_a_mirror_that_works(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {f"f{number}": str(number) for number in range(50)})
    program = (
        "import sys; from pathlib import Path; from fixloop.repository.snapshot import take_snapshot\n"
        "print('on', flush=True)\n"
        f"for n in range(99): Path({str(repository / 'f0')!r}).write_text(f'{{sys.argv[1]}} {{n}}'); "
        f"take_snapshot(Path({str(repository)!r}), issue=1, cache=Path({str(tmp_path / 'cache')!r}))\n"
    )
    for turn in range(5):
        with subprocess.Popen([sys.executable, "-c", program, str(turn)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            # A different moment of the same work each time.
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=0.02 + 0.037 * turn)
            process.kill()

    snapshot = take_snapshot(repository, issue=1, cache=tmp_path / "cache")

    mirror = mirror_of(snapshot, tmp_path / "cache")
    assert mirror.has(snapshot.commit)
    assert git(mirror.path, "fsck", "--connectivity-only", "--no-dangling") == ""


def test_a_commit_that_git_does_not_show_has_neither_subject_nor_author(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)

    assert {*_described(Git(tmp_path), "0" * 40), *_described(Git(tmp_path), "")} == {""}
