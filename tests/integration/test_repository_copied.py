"""What a snapshot also copies: ignored modules that tracked ones import, `copy`, and submodules."""

import time
from pathlib import Path

import pytest

from fixloop.repository.generated import needed_and_ignored
from fixloop.repository.git import Git
from fixloop.repository.snapshot import Snapshot, bring, mirror_of, take_snapshot, take_snapshot_of_url
from fixloop.repository.tree import tracked_in_index
from tests.fixtures.repositories import git, make_repository, write
from workers.workspaces.workspace import Workspace, open_workspace

pytestmark = pytest.mark.slow

HUMAN = {
    ".gitignore": "src/*/_version.py\n*.so\nbuild/\n_gen/\n.venv/\n",
    "src/human/__init__.py": "from human._version import __version__\n",
    "tests/test_it.py": "import human\n",
}


def taken(repository: Path, *globs: str, directory: str = "", ref: str | None = None) -> Snapshot:
    cache = repository.parent / "cache"
    return take_snapshot(repository / directory, issue=7, cache=cache, copy_globs=globs, ref=ref)


def copied(repository: Path, *globs: str, ref: str | None = None) -> list[str]:
    snapshot = taken(repository, *globs, ref=ref)
    if not snapshot.copied:
        return []
    mirror = mirror_of(snapshot, repository.parent / "cache")
    return git(mirror.path, "ls-tree", "-r", "--name-only", snapshot.copied).splitlines()


def opened(snapshot: Snapshot, cache: Path) -> Workspace:
    mirror = mirror_of(snapshot, cache)
    return open_workspace(cache, mirror, snapshot.commit, name="t.1", copied=snapshot.copied)


def test_an_ignored_version_file_that_the_package_imports_is_copied(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", HUMAN)
    write(repository, {"src/human/_version.py": "__version__ = '1'\n"})

    snapshot = taken(repository)
    workspace = opened(snapshot, tmp_path / "cache")

    assert snapshot.commit == git(repository, "rev-parse", "HEAD")
    assert snapshot.notes == (
        "copies src/human/_version.py: ignored by git and imported by src/human/__init__.py",
    )
    assert (workspace.path / "src/human/_version.py").read_text() == "__version__ = '1'\n"
    assert workspace.tree_hash() == snapshot.tree


def test_what_tells_pytest_which_modules_of_a_plugin_to_rewrite_is_copied(tmp_path: Path) -> None:
    repository = make_repository(
        tmp_path / "r", {".gitignore": "*.egg-info/\n", "src/steady.py": "def a(): ...\n"}
    )
    files = {"entry_points.txt": "[pytest11]\nsteady = steady\n", "SOURCES.txt": "src/steady.py\n"}
    write(repository, {f"src/steady.egg-info/{name}": text for name, text in files.items()})
    write(repository, {"src/other.egg-info/SOURCES.txt": "src/other.py\n"})

    assert copied(repository) == [f"src/steady.egg-info/{name}" for name in sorted(files)]
    (note,) = taken(repository).notes
    assert note == (
        "copies src/steady.egg-info/SOURCES.txt and 1 more: ignored by git, read by pytest and others"
    )


@pytest.mark.parametrize(
    ("importer", "text", "module"),
    [
        ("pkg/__init__.py", "from ._version import version\n", "pkg/_version.py"),
        ("pkg/a/b.py", "from .. import _version\n", "pkg/_version.py"),
        ("pkg/__init__.py", "try:\n    from pkg import _version\nexcept ImportError:\n    pass\n", "pkg/_version.py"),
        ("pkg/__init__.py", "def f():\n    import pkg._version as v\n", "pkg/_version.py"),
        ("lib/python/pkg/__init__.py", "import pkg._version\n", "lib/python/pkg/_version.py"),
        ("pkg/__init__.py", "from pkg.proto import shop_pb2\n", "pkg/proto/shop_pb2.py"),
        ("tests/test_a.py", "import made\n", "tests/made.py"),
        ("app.py", "import parser_gen\n", "src/parser_gen.py"),
    ],
)  # fmt: skip
def test_every_form_of_import_is_followed(tmp_path: Path, importer: str, text: str, module: str) -> None:
    ignored = "_version.py\n*_pb2.py\nmade.py\nparser_gen.py\n"
    files = {".gitignore": ignored, "pkg/__init__.py": "", "lib/python/pkg/__init__.py": ""}
    repository = make_repository(tmp_path / "r", {**files, importer: text})
    write(repository, {module: "", "other/_version.py": "", "docs/made.py": ""})

    assert copied(repository) == [module]


def test_generated_packages_come_with_what_they_import_themselves(tmp_path: Path) -> None:
    repository = make_repository(
        tmp_path / "r", {**HUMAN, "src/human/__init__.py": "from human._gen import a\n"}
    )
    folder = "src/human/_gen"
    write(repository, {f"{folder}/{name}": "" for name in ("__init__.py", "unused.py", "__pycache__/a.pyc")})
    write(repository, {f"{folder}/a.py": "from . import a_types\n", f"{folder}/a_types.py": ""})
    write(repository, {"build/lib/human/_gen/a.py": "", ".venv/pyvenv.cfg": "", ".venv/human/_gen/a.py": ""})

    assert copied(repository) == [f"{folder}/{name}.py" for name in ("__init__", "a", "a_types")]
    assert taken(repository).notes == (
        "copies src/human/_gen/__init__.py and 2 more: ignored by git, imported by src/human/__init__.py and others",
    )


def test_an_extension_built_in_place_is_copied_unless_its_source_is_a_module(tmp_path: Path) -> None:
    text = "try:\n    from ._fast import f\nexcept ImportError:\n    pass\nfrom . import slow\n"
    repository = make_repository(
        tmp_path / "r", {**HUMAN, "src/human/__init__.py": text, "src/human/slow.py": ""}
    )
    write(repository, {f"src/human/{name}.cpython-311-x86_64-linux-gnu.so": "" for name in ("_fast", "slow")})

    assert copied(repository) == ["src/human/_fast.cpython-311-x86_64-linux-gnu.so"]


def test_unimported_files_and_likely_secrets_are_not_copied(tmp_path: Path) -> None:
    files = {
        ".gitignore": "local_settings.py\nscratch.py\n",
        "app.py": "from local_settings import *  # scratch\n",
    }
    repository = make_repository(tmp_path / "r", files)
    write(repository, {"local_settings.py": "KEY = 'hidden'", "scratch.py": ""})

    assert copied(repository) == []
    assert taken(repository).notes == (
        "does not copy local_settings.py, ignored by git and imported by app.py, because its name sounds like a "
        'secret\'s; `copy = ["local_settings.py"]` below [workspace] takes it along',
    )
    assert copied(repository, "local_settings.py") == ["local_settings.py"]


def test_a_catalogue_is_copied_if_its_source_is_tracked(tmp_path: Path) -> None:
    folder = "pkg/locale/de/LC_MESSAGES"
    repository = make_repository(tmp_path / "r", {".gitignore": "*.mo\n", f"{folder}/pkg.po": ""})
    write(repository, {f"{folder}/pkg.mo": "", f"{folder}/old.mo": ""})

    assert copied(repository) == [f"{folder}/pkg.mo"]
    assert taken(repository).notes == (
        f"copies {folder}/pkg.mo: ignored by git and compiled from {folder}/pkg.po",
    )


def test_node_modules_are_shared_and_not_copied_although_copy_names_them(tmp_path: Path) -> None:
    repository = make_repository(
        tmp_path / "r", {"package.json": "{}", ".gitignore": "node_modules/\nmade/\n"}
    )
    write(repository, {"node_modules/vitest/index.js": "", "made/a.json": ""})

    assert copied(repository, "node_modules/**", "made/**") == ["made/a.json"]


@pytest.mark.parametrize(
    "table",
    [
        '[tool.hatch.build.hooks.vcs]\nversion-file = "src/a/_version.py"',
        '[tool.setuptools_scm]\nwrite_to = "src/a/_version.py"',
        '[tool.pdm.version]\nwrite_to = "src/a/_version.py"',
    ],
)
def test_a_version_file_that_is_declared_and_missing_is_named(tmp_path: Path, table: str) -> None:
    repository = make_repository(tmp_path / "r", {"pyproject.toml": table, "src/a/__init__.py": ""})

    (note,) = taken(repository).notes

    assert note.startswith("src/a/_version.py is not there: ")
    assert "`pip install -e .`" in note
    write(repository, {"src/a/_version.py": ""})
    assert taken(repository).notes == ()


def test_changes_to_copied_files_do_not_count(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", {"a.py": "", ".gitignore": ""})
    (repository / ".git/info").mkdir(exist_ok=True)
    (repository / ".git/info/exclude").write_text("made/\n")
    write(repository, {"made/one.json": "1", "made/two.json": "2"})
    snapshot = taken(repository, "made/**")
    workspace = opened(snapshot, tmp_path / "cache")
    before = workspace.tree_hash()

    write(workspace.path, {"made/one.json": "written by a check"})
    (workspace.path / "made/two.json").unlink()

    assert before == snapshot.tree
    assert workspace.tracked_changes(before) == ()
    assert workspace.capture(workspace.commit, "a fix").files == ()
    assert (opened(snapshot, tmp_path / "cache").path / "made/one.json").read_text() == "1"


def test_copied_files_reach_another_machine_and_leave_the_branch_alone(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r", HUMAN)
    write(repository, {"src/human/_version.py": "1"})
    snapshot = taken(repository)

    bring(snapshot, issue=7, cache=tmp_path / "elsewhere")

    assert (opened(snapshot, tmp_path / "elsewhere").path / "src/human/_version.py").read_text() == "1"
    assert snapshot.commit == git(repository, "rev-parse", "HEAD")
    assert git(repository, "rev-parse", "refs/fixloop/7/copied") == snapshot.copied


def test_a_plain_folder_with_a_lost_mirror_is_copied_again_completely(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    write(folder, {"a.py": "1", ".gitignore": "made/\n", "made/one.json": "1"})
    snapshot = taken(folder, "made/**")

    bring(Snapshot.model_validate_json(snapshot.model_dump_json()), issue=7, cache=tmp_path / "elsewhere")

    assert (opened(snapshot, tmp_path / "elsewhere").path / "made/one.json").read_text() == "1"


def with_submodules(folder: Path) -> Path:
    """A repository with a submodule in a submodule, all checked out."""
    deep = make_repository(folder / "deep", {"d.py": "1"})
    inner = make_repository(folder / "inner", {"i.py": "1", ".gitignore": "*.log\n"})
    git(inner, "submodule", "add", "-q", str(deep), "deep")
    git(inner, "commit", "-q", "-m", "with a submodule")
    repository = make_repository(folder / "r", {"a.py": "1"})
    git(repository, "submodule", "add", "-q", str(inner), "sub")
    git(repository, "submodule", "update", "-q", "--init", "--recursive")
    git(repository, "commit", "-q", "-m", "with submodules")
    return repository


def test_submodules_are_filled_with_their_checked_out_commits(tmp_path: Path) -> None:
    repository = with_submodules(tmp_path)
    write(repository, {"sub/i.py": "edited", "sub/new.py": "1", "sub/x.log": "ignored"})

    snapshot = taken(repository)
    workspace = opened(snapshot, tmp_path / "cache")

    assert (snapshot.submodules, snapshot.notes) == ((), ())
    assert copied(repository) == [
        "sub/.gitignore",
        "sub/.gitmodules",
        "sub/deep/d.py",
        "sub/i.py",
        "sub/new.py",
    ]
    assert (workspace.path / "sub/i.py").read_text() == "edited"
    assert workspace.tree_hash() == snapshot.tree
    write(workspace.path, {"sub/i.py": "by an agent", "sub/more.py": ""})
    assert workspace.capture(workspace.commit, "a fix").files == ()
    assert workspace.left_out() == ("sub/i.py", "sub/more.py")


def test_submodules_that_cannot_be_filled_are_named_with_a_remedy(tmp_path: Path) -> None:
    repository = with_submodules(tmp_path)
    git(repository, "submodule", "deinit", "-q", "-f", "sub")

    snapshot = taken(repository)

    assert snapshot.submodules == ("sub",)
    assert "`git submodule update --init --recursive` in the checkout fills them" in snapshot.notes[0]
    of_url = take_snapshot_of_url(f"file://{repository}", issue=8, cache=tmp_path / "cache")
    assert of_url.submodules == ("sub",)
    assert "clone with `--recurse-submodules`" in of_url.notes[0]


def test_a_ref_does_not_take_a_submodule_checked_out_at_another_commit(tmp_path: Path) -> None:
    repository = with_submodules(tmp_path)
    write(repository / "sub", {"i.py": "2"})
    git(repository / "sub", "commit", "-q", "-a", "-m", "further")

    assert taken(repository, ref="HEAD").submodules == ("sub",)
    assert taken(repository).submodules == ()


def test_ten_thousand_modules_are_searched_quickly(tmp_path: Path) -> None:
    text = "import os\nfrom typing import Any\n\n\ndef f(x: Any) -> Any:\n    return os.fspath(x)\n" * 20
    write(tmp_path / "r", {f"pkg/p{n % 100}/m{n}.py": text for n in range(10_000)})
    write(tmp_path / "r", {".gitignore": "_version.py\n", "pkg/__init__.py": "from ._version import v\n"})
    write(tmp_path / "r", {"pkg/_version.py": "", "pkg/p1/_version.py": ""})
    git(tmp_path / "r", "init", "-q")
    tracked = Git(tmp_path / "r")
    git(tmp_path / "r", "add", "-A")
    files = tracked_in_index(tracked)

    began = time.process_time()
    found = needed_and_ignored(tracked, files, tmp_path / "r")

    assert found == {b"pkg/_version.py": b"pkg/__init__.py"}
    assert time.process_time() - began < 2
