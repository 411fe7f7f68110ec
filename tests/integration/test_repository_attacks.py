"""A hostile repository: fixloop never starts anything that it configures or holds."""

import os
import subprocess
from pathlib import Path

import pytest

from fixloop.errors import FixloopError, UsageError
from fixloop.repository.apply import apply_changes
from fixloop.repository.identity import project_of, top_of
from fixloop.repository.merge import commit_of_patch, merge_checkout, resolve_descendant
from fixloop.repository.mirror import Mirror
from fixloop.repository.publication import publish
from fixloop.repository.snapshot import Snapshot, is_url, mirror_of, take_snapshot, take_snapshot_of_url
from tests.fixtures.repositories import git, make_repository, write
from workers.workspaces.workspace import open_workspace

pytestmark = pytest.mark.slow

HOOKS = (
    "applypatch-msg",
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "pre-receive",
    "update",
    "proc-receive",
    "post-receive",
    "post-update",
    "reference-transaction",
    "push-to-checkout",
    "pre-auto-gc",
    "post-rewrite",
    "post-index-change",
    "fsmonitor-watchman",
)
PROGRAMS = (
    "core.fsmonitor",
    "core.sshCommand",
    "core.gitProxy",
    "core.askPass",
    "core.editor",
    "core.pager",
    "core.alternateRefsCommand",
    "credential.helper",
    "credential.https://localhost.helper",
    "diff.external",
    "diff.evil.command",
    "diff.evil.textconv",
    "filter.evil.clean",
    "filter.evil.smudge",
    "filter.evil.process",
    "filter.a=b.clean",
    "filter.a=b.smudge",
    "merge.evil.driver",
    "gpg.program",
    "gpg.ssh.program",
    "gpg.ssh.defaultKeyCommand",
    "uploadpack.packObjectsHook",
    "remote.origin.uploadpack",
    "remote.origin.receivepack",
    "pager.diff",
    "sequence.editor",
    "trailer.evil.command",
    "alias.push",
    "alias.update-index",
    "difftool.evil.cmd",
    "man.evil.cmd",
)


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """The file that the attacker's program would create."""
    return tmp_path / "ran"


@pytest.fixture
def program(tmp_path: Path, mark: Path) -> Path:
    made = tmp_path / "evil"
    made.write_text(f'#!/bin/sh\necho "$0 $@" >>{mark}\ncat\n')
    made.chmod(0o755)
    return made


@pytest.fixture
def repository(tmp_path: Path, program: Path) -> Path:
    """Hooks of every kind, every setting that names a program, and files that ask for them."""
    made = make_repository(
        tmp_path / "evil-project",
        {
            "a.txt": "1\n",
            "b.dat": "1\n",
            ".gitattributes": "* filter=evil diff=evil merge=evil\nb.dat filter=a=b\n",
        },
    )
    for hook in HOOKS:
        (made / ".git/hooks").mkdir(exist_ok=True)
        (made / ".git/hooks" / hook).write_text(program.read_text())
        (made / ".git/hooks" / hook).chmod(0o755)
    git(made, "remote", "add", "origin", str(tmp_path / "nowhere.git"))
    flags = ("filter.evil.required", "log.showSignature", "core.splitIndex", "extensions.worktreeConfig")
    with (made / ".git/config").open("a") as config:
        for setting, value in (*((each, program) for each in PROGRAMS), *((each, "true") for each in flags)):
            section, _, key = setting.rpartition(".")
            kind, _, name = section.partition(".")
            config.write(f'[{kind} "{name}"]\n' if name else f"[{kind}]\n")
            config.write(f"\t{key} = {value}\n")
    git(made, "config", "--worktree", "filter.evil.clean", f"{program} worktree")
    write(made, {"a.txt": "2\n", "c.txt": "new\n"})
    return made


def test_no_hook_and_no_program_of_a_repositorys_configuration_is_started(
    repository: Path, mark: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    top_of(repository)
    project_of(repository)
    snapshot = take_snapshot(repository, issue=1, cache=cache)
    mirror = mirror_of(snapshot, cache)
    with open_workspace(cache, mirror, snapshot.commit, name="t.1") as workspace:
        write(workspace.path, {"a.txt": "3\n"})
        change = workspace.capture(snapshot.commit, "a fix")
    publish(snapshot, issue=1, tip=change.commit, mirror=mirror)
    write(repository, {"d.txt": "by hand\n"})
    merge_checkout(repository, base=snapshot.commit, tip=change.commit, mirror=mirror)
    apply_changes(repository, base=snapshot.commit, tip=change.commit, mirror=mirror)

    assert (repository / "a.txt").read_text() == "3\n"
    assert change.files == ("a.txt",)
    assert not mark.exists(), mark.read_text()


def test_a_commit_by_a_person_starts_nothing_either(repository: Path, mark: Path, tmp_path: Path) -> None:
    snapshot = take_snapshot(repository, issue=1, cache=tmp_path / "cache")
    mirror = mirror_of(snapshot, tmp_path / "cache")
    tree = git(repository, "-c", "core.hooksPath=/dev/null", "rev-parse", f"{snapshot.commit}^{{tree}}")
    commit = git(
        repository, "-c", "core.hooksPath=/dev/null", "commit-tree", tree, "-p", snapshot.commit, "-m", "x"
    )
    mark.unlink(missing_ok=True)

    resolve_descendant(commit, path=repository, tip=snapshot.commit, mirror=mirror)

    assert not mark.exists(), mark.read_text()


@pytest.mark.parametrize("rule", ["insteadOf", "pushInsteadOf"])
@pytest.mark.parametrize("prefix", ["/", ""])
def test_a_repository_cannot_lead_the_snapshot_to_another_place(
    rule: str, prefix: str, mark: Path, program: Path, tmp_path: Path
) -> None:
    trap = tmp_path / "trap.git"
    git(tmp_path, "init", "-q", "--bare", str(trap))
    (trap / "hooks").mkdir(exist_ok=True)
    (trap / "hooks/pre-receive").write_text(program.read_text())
    (trap / "hooks/pre-receive").chmod(0o755)
    repository = make_repository(tmp_path / "r", {"a": "1"})
    cache = tmp_path / "cache"
    # So long that the whole path of the mirror is replaced by that of the trap and nothing behind it.
    wanted = str(Mirror(cache, str(repository)).path) if prefix == "/" else prefix
    git(repository, "config", f"url.{trap}.{rule}", wanted)

    with pytest.raises(UsageError, match=r"url\..*\.(push)?insteadof"):
        take_snapshot(repository, issue=1, cache=cache)

    assert not mark.exists()
    assert git(trap, "for-each-ref") == ""


def test_a_remote_that_is_called_like_a_path_is_refused(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})
    mirror = Mirror(tmp_path / "cache", str(repository)).path
    git(repository, "config", f"remote.{mirror}.url", str(tmp_path / "elsewhere.git"))

    with pytest.raises(UsageError, match="remote"):
        take_snapshot(repository, issue=1, cache=tmp_path / "cache")


def test_the_user_s_own_filters_are_not_the_repository_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "home" / ".gitconfig"
    settings.parent.mkdir()
    settings.write_text('[filter "upper"]\n\tclean = tr a-z A-Z\n\tsmudge = cat\n')
    monkeypatch.setenv("HOME", str(settings.parent))
    repository = make_repository(tmp_path / "r", {"x": "1", ".gitattributes": "*.txt filter=upper\n"})
    git(repository, "config", "filter.upper.clean", "echo evil")
    write(repository, {"a.txt": "abc\n"})

    snapshot = take_snapshot(repository, issue=1, cache=tmp_path / "cache")

    assert git(repository, "show", f"{snapshot.commit}:a.txt") == "ABC"


def test_no_filter_of_the_user_rewrites_checked_out_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = make_repository(
        tmp_path / "r", {"test_a.py": "assert 0\n", ".gitattributes": "*.md filter=lower\n"}
    )
    snapshot = take_snapshot(repository, issue=1, cache=tmp_path / "cache")
    write(
        tmp_path / "home",
        {
            ".gitconfig": '[filter "lower"]\n\tsmudge = sed s/0/1/\n[core]\n\tautocrlf = true\n',
            ".config/git/attributes": "*.py filter=lower\n",
        },
    )
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)

    mirror = mirror_of(snapshot, tmp_path / "cache")
    with open_workspace(tmp_path / "cache", mirror, snapshot.commit, name="t.1") as workspace:
        assert (workspace.path / "test_a.py").read_bytes() == b"assert 0\n"


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c touch% {mark}",
        "fd::17",
        "-oProxyCommand=touch {mark}",
        "--upload-pack=touch {mark}",
        "ssh://-oProxyCommand=touch%20{mark}/x",
        "ssh://me@-oProxyCommand=touch%20{mark}/x",
        "-u@host:x",
        "me@-oProxyCommand:x",
    ],
)
def test_an_address_that_would_run_something_is_refused(url: str, mark: Path, tmp_path: Path) -> None:
    address = url.format(mark=mark)

    with pytest.raises(FixloopError) as raised:
        take_snapshot_of_url(address, issue=1, cache=tmp_path / "cache")

    assert "Traceback" not in str(raised.value)
    assert not mark.exists()
    assert is_url(address) is False or address.startswith(("ssh://", "me@", "-u@"))


@pytest.mark.parametrize(
    "ref", ["--upload-pack=touch ran", "-x", "--output=ran", "--all", "HEAD --", "", "a b", "@{-1}x"]
)
def test_a_ref_that_looks_like_an_option_is_just_an_unknown_ref(
    ref: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1"})
    monkeypatch.chdir(tmp_path)
    before = sorted(os.listdir(tmp_path))
    snapshot = take_snapshot(repository, issue=1, cache=tmp_path / "cache")
    mirror = mirror_of(snapshot, tmp_path / "cache")

    for attempt in (
        lambda: take_snapshot(repository, issue=2, cache=tmp_path / "cache", ref=ref or "-"),
        lambda: take_snapshot_of_url(f"file://{repository}", ref or "-", issue=3, cache=tmp_path / "cache"),
        lambda: resolve_descendant(ref or "-", path=repository, tip=snapshot.commit, mirror=mirror),
    ):
        with pytest.raises(UsageError):
            attempt()
    assert sorted(os.listdir(tmp_path)) == sorted([*before, "cache"])


def test_files_whose_names_look_like_options_are_files(tmp_path: Path) -> None:
    names = {"--output=x": "1", "-rf": "1", "--": "1", ":(top)x": "1", "-": "1"}
    repository = make_repository(tmp_path / "r", {"a": "1"})
    write(repository, names)
    cache = tmp_path / "cache"

    snapshot = take_snapshot(repository, issue=1, cache=cache)
    mirror = mirror_of(snapshot, cache)
    with open_workspace(cache, mirror, snapshot.commit, name="t.1") as workspace:
        write(workspace.path, {name: "2" for name in names})
        change = workspace.capture(snapshot.commit, "a fix")
    apply_changes(repository, base=snapshot.commit, tip=change.commit, mirror=mirror)

    assert set(change.files) == set(names)
    assert {name: (repository / name).read_text() for name in names} == dict.fromkeys(names, "2")


def test_a_submodule_whose_address_is_an_option_is_not_fetched(tmp_path: Path, mark: Path) -> None:
    repository = make_repository(
        tmp_path / "r", {".gitmodules": f'[submodule "m"]\n\tpath = m\n\turl = -u touch {mark}\n'}
    )
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},m")
    git(repository, "commit", "-q", "-m", "a submodule")
    cache = tmp_path / "cache"

    for snapshot in (
        take_snapshot(repository, issue=1, cache=cache),
        take_snapshot_of_url(f"file://{repository}", issue=2, cache=cache),
    ):
        with open_workspace(cache, mirror_of(snapshot, cache), snapshot.commit, name="t.1") as workspace:
            assert (workspace.path / ".gitmodules").is_file()
    assert not mark.exists()


def test_an_agent_s_git_configuration_starts_nothing_in_fixloop(
    tmp_path: Path, mark: Path, program: Path
) -> None:
    repository = make_repository(tmp_path / "r", {"a": "1", ".gitattributes": "* filter=evil\n"})
    cache = tmp_path / "cache"
    snapshot = take_snapshot(repository, issue=1, cache=cache)

    with open_workspace(cache, mirror_of(snapshot, cache), snapshot.commit, name="t.1") as workspace:
        for setting in PROGRAMS:
            git(workspace.path, "config", setting, str(program))
        mark.unlink(missing_ok=True)
        write(workspace.path, {"a": "2"})
        workspace.tracked_changes(workspace.tree_hash())
        change = workspace.capture(snapshot.commit, "a fix")

    assert change.files == ("a",)
    assert not mark.exists(), mark.read_text()


def test_the_attack_would_work_with_plain_git(repository: Path, mark: Path) -> None:
    """The counter-test: if git started none of it either, the tests above would prove nothing."""
    subprocess.run(["git", "add", "-A"], cwd=repository, check=False, capture_output=True)

    assert mark.exists()


@pytest.fixture
def partial(tmp_path: Path) -> Path:
    """A clone that lacks an old file, and fetches it when it is needed."""
    origin = make_repository(tmp_path / "origin", {"a": "1", "b": "old"})
    write(origin, {"b": "new"})
    git(origin, "commit", "-qam", "second")
    git(origin, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{origin}", "partial")
    return tmp_path / "partial"


def test_a_partial_clone_fetches_what_it_lacks(partial: Path, tmp_path: Path) -> None:
    snapshot = take_snapshot(partial, issue=1, cache=tmp_path / "cache")

    assert git(mirror_of(snapshot, tmp_path / "cache").path, "show", f"{snapshot.commit}~:b") == "old"


def test_a_partial_clone_does_not_choose_its_fetch_command(
    partial: Path, tmp_path: Path, mark: Path, program: Path
) -> None:
    git(partial, "config", "remote.origin.uploadpack", str(program))

    with pytest.raises(UsageError, match=r"remote\.origin\.uploadpack"):
        take_snapshot(partial, issue=1, cache=tmp_path / "cache")

    assert not mark.exists()


def test_a_partial_clone_does_not_choose_its_ssh_either(
    partial: Path, tmp_path: Path, mark: Path, program: Path
) -> None:
    git(partial, "config", "core.sshCommand", str(program))
    git(partial, "config", "remote.origin.url", "ssh://nobody@localhost:1/x")

    with pytest.raises(FixloopError):
        take_snapshot(partial, issue=1, cache=tmp_path / "cache")

    assert not mark.exists()


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    return take_snapshot(make_repository(tmp_path / "r", {"a.py": "1\n"}), issue=1, cache=tmp_path / "cache")


@pytest.mark.parametrize(
    "path",
    [
        ".fixloop/redis/planted",
        "lib/.FIXLOOP/x",
        ".fix\u200cloop/x",
        ".g\u200cit/hooks/post-checkout",
        ".GIT/x",
    ],
)
@pytest.mark.proves("K35")
def test_a_patch_writes_no_file_of_git_or_fixloop(snapshot: Snapshot, path: str, tmp_path: Path) -> None:
    patch = f"diff --git a/{path} b/{path}\nnew file mode 100755\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
    mirror = mirror_of(snapshot, tmp_path / "cache")

    with pytest.raises(UsageError, match=r"is no part of the project|does not apply"):
        commit_of_patch(patch.encode(), snapshot.commit, mirror, "a fix")


@pytest.mark.parametrize("encoding", ["=UTF-16", "=NO-SUCH", ""])
def test_a_fix_whose_files_do_not_have_their_encoding_is_refused(
    snapshot: Snapshot, encoding: str, tmp_path: Path
) -> None:
    mirror = mirror_of(snapshot, tmp_path / "cache")
    with open_workspace(tmp_path / "cache", mirror, snapshot.commit, name="t.1") as workspace:
        write(
            workspace.path, {".gitattributes": f"*.py text working-tree-encoding{encoding}\n", "a.py": "2\n"}
        )

        with pytest.raises(UsageError, match=r"cannot be read: .*encod"):
            workspace.capture(snapshot.commit, "a fix")
