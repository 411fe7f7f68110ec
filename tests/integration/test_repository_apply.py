"""The way back: as uncommitted changes, as refs, and from a checkout."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fixloop.errors import InfrastructureError, UsageError
from fixloop.repository.apply import apply_changes
from fixloop.repository.merge import (
    commit_of_directory,
    import_folder,
    merge_checkout,
    resolve_descendant,
    take_checkout,
)
from fixloop.repository.mirror import Mirror
from fixloop.repository.publication import publish
from fixloop.repository.snapshot import Snapshot, mirror_of, take_snapshot
from tests.fixtures.repositories import fingerprint, git, make_repository, write

pytestmark = pytest.mark.slow

LINES = "".join(f"line {number}\n" for number in range(20))


class Work:
    """A repository (or plain folder), its snapshot, and a fix made elsewhere."""

    def __init__(self, tmp_path: Path, files: dict[str, str], *, plain: bool = False) -> None:
        self.repository = tmp_path / "r"
        if plain:
            write(self.repository, files)
        else:
            make_repository(self.repository, files)
        self.cache = tmp_path / "cache"
        self.agent = tmp_path / "agent"
        self.snap()

    def snap(self) -> None:
        self.snapshot: Snapshot = take_snapshot(self.repository, issue=47, cache=self.cache)
        self.mirror: Mirror = mirror_of(self.snapshot, self.cache)

    def check_out(self) -> Path:
        """An agent's input: the snapshot in its own directory."""
        self.agent.mkdir()
        git(
            self.mirror.path,
            f"--work-tree={self.agent}",
            "checkout",
            "-q",
            "-f",
            self.snapshot.commit,
            "--",
            ".",
        )
        return self.agent

    def fix(self) -> str:
        """The commit of what the agent's directory holds now."""
        return commit_of_directory(self.agent, self.snapshot.commit, self.mirror, "a fix").commit

    def apply(self, tip: str) -> list[str]:
        return apply_changes(self.repository, base=self.snapshot.commit, tip=tip, mirror=self.mirror)


@pytest.mark.parametrize("plain", [False, True])
def test_all_kinds_of_changes_reach_the_checkout(tmp_path: Path, plain: bool) -> None:
    files = {
        "edited": LINES,
        "deleted/deep": "x",
        "renamed": "same",
        "mode": "#!/bin/sh\n",
        "file": "f",
        "d/e": "e",
    }
    work = Work(tmp_path, files, plain=plain)
    agent = work.check_out()
    write(agent, {"edited": LINES + "more\n", "new/deep/file": "n"})
    (agent / "deleted/deep").unlink()
    (agent / "deleted").rmdir()
    (agent / "renamed").rename(agent / "other name\n")
    (agent / "mode").chmod(0o755)
    (agent / "binary").write_bytes(bytes(range(256)))
    (agent / "link").symlink_to("edited")
    (agent / "file").unlink()
    write(agent, {"file/now/a/folder": "1"})
    (agent / "d/e").unlink()
    (agent / "d").rmdir()
    write(agent, {"d": "now a file"})

    changed = work.apply(work.fix())

    assert "other name\\n" in changed
    assert (
        subprocess.run(
            ["diff", "-r", "--no-dereference", "-x", ".git", str(agent), str(work.repository)], check=False
        ).returncode
        == 0
    )
    assert os.access(work.repository / "mode", os.X_OK)
    assert not (work.repository / "deleted").exists()
    assert not (work.repository / ".fixloop").exists()


def test_index_and_head_are_byte_identical_after_apply(tmp_path: Path) -> None:
    work = Work(tmp_path, {"a": "1", "b": "1"})
    write(work.check_out(), {"a": "2"})
    tip = work.fix()
    kept = [(work.repository / ".git" / name).read_bytes() for name in ("HEAD", "index", "config")]

    assert work.apply(tip) == ["a"]

    assert [(work.repository / ".git" / name).read_bytes() for name in ("HEAD", "index", "config")] == kept
    assert git(work.repository, "status", "--porcelain") == "M a"


def test_the_same_call_twice_changes_nothing_more(tmp_path: Path) -> None:
    work = Work(tmp_path, {"a": LINES})
    write(work.check_out(), {"a": LINES + "more\n", "new": "n"})
    tip = work.fix()
    work.apply(tip)
    before = fingerprint(work.repository)

    assert work.apply(tip) == []
    assert fingerprint(work.repository) == before


def test_a_checkout_that_changed_meanwhile_is_merged(tmp_path: Path) -> None:
    work = Work(tmp_path, {"a": LINES, "b": "1"})
    write(work.check_out(), {"a": LINES + "fixed\n"})
    tip = work.fix()
    write(work.repository, {"a": "mine\n" + LINES, "b": "2"})
    git(work.repository, "commit", "-q", "-a", "-m", "moved on")

    assert work.apply(tip) == ["a"]

    assert (work.repository / "a").read_text() == "mine\n" + LINES + "fixed\n"
    assert (work.repository / "b").read_text() == "2"


def test_a_conflict_names_the_files_and_changes_nothing(tmp_path: Path) -> None:
    work = Work(tmp_path, {"a": "1\n", "b": "1\n", "gone": "1\n", "bin": "\0one"})
    write(
        work.check_out(),
        {"a": "fixed\n", "b": "fixed\n", "gone": "fixed\n", "bin": "\0fixed", "new": "fixed\n"},
    )
    tip = work.fix()
    write(work.repository, {"a": "mine\n", "bin": "\0mine", "new": "mine\n"})
    (work.repository / "gone").unlink()
    before = fingerprint(work.repository)

    with pytest.raises(UsageError, match="other changes in a, bin, gone, new; nothing was applied"):
        work.apply(tip)
    assert fingerprint(work.repository) == before


def test_ignored_files_and_links_in_the_way_are_never_overwritten(tmp_path: Path) -> None:
    work = Work(tmp_path, {"a": "1", ".gitignore": "*.log\nout\n"})
    agent = work.check_out()
    write(agent, {".gitignore": "", "x.log": "agent's", "out/file": "agent's", "a": "2"})
    tip = work.fix()
    (work.repository / "x.log").write_text("mine")
    (work.repository / "out").symlink_to(tmp_path)
    before = fingerprint(work.repository)

    with pytest.raises(UsageError, match=r"other changes in out/file, x\.log; nothing"):
        work.apply(tip)
    assert fingerprint(work.repository) == before
    assert not (tmp_path / "file").exists()


def test_nothing_is_prepared_where_a_link_in_the_checkout_s_own_folder_leads(tmp_path: Path) -> None:
    work = Work(tmp_path, {"a": "1"})
    write(work.check_out(), {"a": "2"})
    tip = work.fix()
    (work.repository / ".fixloop").mkdir()
    (work.repository / ".fixloop/.gitignore").symlink_to(tmp_path / "planted")

    with pytest.raises(UsageError, match="is a link to"):
        work.apply(tip)
    assert not (tmp_path / "planted").exists()


def test_a_failed_apply_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(tmp_path, {"a": "1", "b": "1", "c": "1"})
    agent = work.check_out()
    write(agent, {"a": "2", "new/x": "2", "z": "2"})
    (agent / "b").unlink()
    tip = work.fix()
    before = fingerprint(work.repository)
    replace = os.replace

    def full_disk(old: bytes, new: bytes, **folder: int) -> None:
        if new == b"z":
            raise OSError(28, "No space left on device", new)
        replace(old, new, **folder)

    monkeypatch.setattr(os, "replace", full_disk)

    with pytest.raises(InfrastructureError, match="z: No space left on device; the checkout is as it was"):
        work.apply(tip)
    assert fingerprint(work.repository) == before
    assert not (work.repository / "new").exists()


def test_a_call_killed_at_any_rename_is_completed_by_the_next_one(tmp_path: Path) -> None:
    work = Work(tmp_path, {"a": LINES, "b": "1", "old name": LINES, "d": "1"})
    agent = work.check_out()
    write(agent, {"a": LINES + "more\n", "new/x": "2", "d": "2"})
    (agent / "b").unlink()
    (agent / "old name").rename(agent / "new name")
    tip = work.fix()
    write(work.repository, {"a": "mine\n" + LINES})
    program = (
        "import os, sys, signal; from pathlib import Path\n"
        "from fixloop.repository import apply; from fixloop.repository.mirror import Mirror\n"
        "left = int(sys.argv[1])\n"
        "def dying(real):\n"
        "    def call(*args, **named):\n"
        "        global left\n"
        # Calls that remove staged files do not count.
        "        left -= not str(args[0]).startswith(('new-', 'old-'))\n"
        "        if left < 0: os.kill(os.getpid(), signal.SIGKILL)\n"
        "        real(*args, **named)\n"
        "    return call\n"
        "os.replace, os.unlink = dying(os.replace), dying(os.unlink)\n"
        f"apply.apply_changes(Path({str(work.repository)!r}), base={work.snapshot.commit!r}, tip={tip!r}, "
        f"mirror=Mirror(Path({str(work.cache)!r}), {work.mirror.source!r}))\n"
    )
    for kill_at in range(6):
        git(work.repository, "checkout", "-q", ".")
        git(work.repository, "clean", "-q", "-fdx")
        write(work.repository, {"a": "mine\n" + LINES})
        died = subprocess.run([sys.executable, "-c", program, str(kill_at)], capture_output=True, check=False)
        assert died.returncode == -9, died.stderr

        work.apply(tip)

        assert (work.repository / "a").read_text() == "mine\n" + LINES + "more\n"
        assert git(work.repository, "status", "--porcelain").split("\n") == [
            "M a", " D b", " M d", ' D "old name"', '?? "new name"', "?? new/"
        ]  # fmt: skip
        assert not list((work.repository / ".fixloop").glob("applying-*"))


def test_the_user_s_line_endings_are_kept(tmp_path: Path) -> None:
    work = Work(tmp_path, {".gitattributes": "*.txt text eol=crlf\n", "a.txt": "one\r\n"})
    agent = work.check_out()
    (agent / "a.txt").write_bytes(b"one\r\ntwo\r\n")

    work.apply(work.fix())

    assert (work.repository / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
    assert git(work.mirror.path, "show", f"{work.fix()}:a.txt") == "one\ntwo"


def test_publishing_writes_branch_and_tip_and_repairs_them(tmp_path: Path) -> None:
    work = Work(tmp_path, {"a": "1"})
    write(work.check_out(), {"a": "2"})
    tip = work.fix()
    before = fingerprint(work.repository)

    for _ in range(2):
        assert publish(work.snapshot, issue=47, tip=tip, mirror=work.mirror).branch == "fixloop/47"
        assert git(work.repository, "rev-parse", "fixloop/47") == tip
        assert git(work.repository, "rev-parse", "refs/fixloop/47/tip") == tip
        git(work.repository, "update-ref", "-d", "refs/heads/fixloop/47")
    assert fingerprint(work.repository) == before
    assert git(work.repository, "fsck", "--connectivity-only", "--no-dangling") == ""


def test_a_branch_that_is_checked_out_is_left_alone_and_named(tmp_path: Path) -> None:
    work = Work(tmp_path, {"a": "1"})
    git(work.repository, "checkout", "-q", "-b", "fixloop/47")
    write(work.check_out(), {"a": "2"})
    before = fingerprint(work.repository)
    tip = work.fix()

    published = publish(work.snapshot, issue=47, tip=tip, mirror=work.mirror)

    assert "fixloop/47 is checked out in" in published.note
    assert fingerprint(work.repository) == before
    assert git(work.repository, "rev-parse", "refs/fixloop/47/tip") == tip


def test_a_branch_with_commits_of_others_is_left_alone_and_ours_is_moved(tmp_path: Path) -> None:
    work = Work(tmp_path, {"a": "1"})
    write(work.check_out(), {"a": "2"})
    first = work.fix()
    publish(work.snapshot, issue=47, tip=first, mirror=work.mirror)
    write(work.agent, {"a": "3"})
    second = work.fix()

    assert not publish(work.snapshot, issue=47, tip=second, mirror=work.mirror).note
    assert git(work.repository, "rev-parse", "fixloop/47") == second
    theirs = git(work.repository, "commit-tree", "HEAD^{tree}", "-p", second, "-m", "mine")
    git(work.repository, "update-ref", "refs/heads/fixloop/47", theirs)
    note = publish(work.snapshot, issue=47, tip=first, mirror=work.mirror).note
    assert "commits that are not fixloop's" in note
    assert git(work.repository, "rev-parse", "fixloop/47") == theirs


def test_a_branch_named_fixloop_does_not_break_publishing(tmp_path: Path) -> None:
    work = Work(tmp_path, {"a": "1"})
    git(work.repository, "branch", "fixloop")
    write(work.check_out(), {"a": "2"})

    published = publish(work.snapshot, issue=47, tip=work.fix(), mirror=work.mirror)

    assert "cannot write refs/heads/fixloop/47" in published.note


def test_a_plain_folder_has_nothing_to_publish(tmp_path: Path) -> None:
    work = Work(tmp_path, {"a": "1"}, plain=True)

    assert publish(work.snapshot, issue=47, tip=work.snapshot.commit, mirror=work.mirror).branch == ""
    assert sorted(path.name for path in work.repository.iterdir()) == ["a"]


@pytest.mark.parametrize("plain", [False, True])
def test_a_checkout_is_taken_exactly_and_missing_files_are_named(tmp_path: Path, plain: bool) -> None:
    work = Work(tmp_path, {"a": "1\n", "b": "1\n", "both": "1\n", "gone": ""}, plain=plain)
    agent = work.check_out()
    write(agent, {"a": "agent\n", "junk.py": "", "both": "same\n"})
    (agent / "gone").unlink()
    tip = work.fix()
    write(work.repository, {"a": "person\n", "b": "2\n", "both": "same\n"})

    change = take_checkout(work.repository, base=work.snapshot.commit, tip=tip, mirror=work.mirror)

    assert change.tree == import_folder(work.repository, work.snapshot.commit, work.mirror)
    assert git(work.mirror.path, "rev-parse", f"{change.commit}^") == tip
    assert change.files == ("a", "b", "gone", "junk.py")
    assert change.left_out == ("a", "gone", "junk.py")
    before = {path: path.read_bytes() for path in work.repository.iterdir() if path.is_file()}
    assert work.apply(change.commit) == []
    assert {path: path.read_bytes() for path in work.repository.iterdir() if path.is_file()} == before


def test_a_checkout_is_merged_over_the_snapshot_onto_the_work_so_far(tmp_path: Path) -> None:
    work = Work(tmp_path, {"a": LINES, "b": "1"})
    write(work.check_out(), {"a": LINES + "agent\n"})
    tip = work.fix()
    write(work.repository, {"a": "person\n" + LINES, "c": "new"})
    before = fingerprint(work.repository)

    change = merge_checkout(work.repository, base=work.snapshot.commit, tip=tip, mirror=work.mirror)

    assert change.files == ("a", "c")
    assert git(work.mirror.path, "show", f"{change.commit}:a") == "person\n" + LINES + "agent"
    assert git(work.mirror.path, "rev-parse", f"{change.commit}^") == tip
    assert work.mirror.has(change.commit)
    assert fingerprint(work.repository) == before


def test_a_checkout_that_contradicts_the_fixes_is_refused_by_name(tmp_path: Path) -> None:
    work = Work(tmp_path, {"a": "1\n"})
    write(work.check_out(), {"a": "agent\n"})
    tip = work.fix()
    write(work.repository, {"a": "person\n"})

    with pytest.raises(UsageError, match="same lines in a; nothing was taken"):
        merge_checkout(work.repository, base=work.snapshot.commit, tip=tip, mirror=work.mirror)


def test_a_revision_must_build_on_the_work_so_far(tmp_path: Path) -> None:
    work = Work(tmp_path, {"a": "1"})
    write(work.check_out(), {"a": "2"})
    tip = work.fix()
    publish(work.snapshot, issue=47, tip=tip, mirror=work.mirror)
    git(work.repository, "checkout", "-q", "-b", "mine", "fixloop/47")
    write(work.repository, {"a": "3", "tests/test_a.py": ""})
    git(work.repository, "add", "-A")
    git(work.repository, "commit", "-q", "-m", "mine")

    change = resolve_descendant("mine", path=work.repository, tip=tip, mirror=work.mirror)

    assert (change.files, change.marks) == (("a", "tests/test_a.py"), ("tests/test_a.py",))
    with pytest.raises(UsageError, match="main does not build on the work so far"):
        resolve_descendant("main", path=work.repository, tip=tip, mirror=work.mirror)
    with pytest.raises(UsageError, match="no branch, tag or commit 'absent'"):
        resolve_descendant("absent", path=work.repository, tip=tip, mirror=work.mirror)


def test_changed_judging_files_are_marked_and_others_are_not(tmp_path: Path) -> None:
    pyproject = "[project]\nname = 'a'\n[tool.ruff]\nline-length = 99\n"
    work = Work(tmp_path, {"pyproject.toml": pyproject, "a.py": "", "sub/pyproject.toml": pyproject})
    write(
        work.check_out(),
        {
            "pyproject.toml": pyproject.replace("99", "999"),
            "sub/pyproject.toml": pyproject.replace("'a'", "'b'"),
            "a.py": "1",
            "latest.py": "1",
            "src/conftest.py": "",
            "web/app.test.ts": "",
            "fixloop.toml": "",
            ".coveragerc": "",
            "mypy.ini": "",
            "eslint.config.mjs": "",
        },
    )

    change = commit_of_directory(work.agent, work.snapshot.commit, work.mirror, "a fix")

    assert set(change.files) - set(change.marks) == {"a.py", "latest.py", "sub/pyproject.toml"}
