"""Which files of a real change judge: by path, else by content and by the files that name them."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from fixloop.integrity.paths import UNTOLD, Kind, Trust
from fixloop.repository.change import judging
from fixloop.repository.git import Git
from fixloop.repository.tree import deltas, tree_with
from tests.fixtures.repositories import git, make_repository, write

pytestmark = pytest.mark.slow


def kinds(
    folder: Path, before: Mapping[str, str], after: Mapping[str, str], trust: Trust = UNTOLD
) -> dict[str, str]:
    """Which files of a change judge; an empty text removes a file."""
    top = make_repository(folder / "shop", {**before, "kept": ""})
    old = git(top, "rev-parse", "HEAD")
    write(top, dict(after))
    for name in (name for name, text in after.items() if not text):
        (top / name).unlink()
    git(top, "add", "-A")
    git(top, "commit", "-qm", "fixed")
    own = Git(top)
    found = judging(own, old, deltas(own, old, "HEAD"), trust)
    return {path.decode(): str(kind) for path, kind in found.items()}


def test_a_manifest_judges_where_the_settings_of_a_tool_changed(tmp_path: Path) -> None:
    project = "[project]\nversion = '1'\n[tool.ruff]\nline-length = 99\n"
    before = {
        "pyproject.toml": project,
        "a/pyproject.toml": project,
        "a/package.json": "{}",
        "b/setup.cfg": "[a]\nb=1\n",
    }
    after = {
        "pyproject.toml": project.replace("99", "999"),
        "a/pyproject.toml": project.replace("'1'", "'2'"),
        "a/package.json": '{"version": "2"}',
        "b/setup.cfg": "[a\n",
        "c/pyproject.toml": "[project]\nname = 'c'\n",
        "d/pyproject.toml": "[tool.mypy]\nstrict = false\n",
    }

    assert kinds(tmp_path, before, after) == dict.fromkeys(
        ("b/setup.cfg", "d/pyproject.toml", "pyproject.toml"), "gate"
    )


def test_a_lock_file_judges_unless_its_manifest_asks_for_something_else(tmp_path: Path) -> None:
    before = {
        name: "1\n" for name in ("poetry.lock", "web/package-lock.json", "web/package.json", "api/go.sum")
    }
    after = {**dict.fromkeys(before, "2\n"), "web/package.json": '{"dependencies": {"a": "1"}}'}
    before["web/package.json"] = "{}"

    assert kinds(tmp_path, before, after) == {"api/go.sum": "gate", "poetry.lock": "gate"}


DATA = {"rows.csv": "1,2\n", "test_sum.py": "ROWS = open('rows.csv')\n"}
CHANGED = {"rows.csv": "1,1\n"}


@pytest.mark.proves("I1")
def test_data_that_only_tests_name_belongs_to_the_tests(tmp_path: Path) -> None:
    assert kinds(tmp_path, {**DATA, "README.md": "see rows.csv"}, CHANGED) == {"rows.csv": "test"}


@pytest.mark.parametrize(
    "further", [{"shop.py": "open('rows.csv')"}, {"fixloop.toml": "command = 'lint rows.csv'"}]
)
def test_data_that_the_product_or_a_gate_names_is_judged(tmp_path: Path, further: dict[str, str]) -> None:
    assert kinds(tmp_path, {**DATA, **further}, CHANGED) == {}
    assert kinds(tmp_path / "told", {**DATA, **further}, CHANGED, Trust("", {Kind.TEST: ("*.csv",)})) == {
        "rows.csv": "test"
    }


HELPER = {
    "checking.py": "def equal(a, b):\n    assert a == b\n",
    "test_sum.py": "from checking import equal\n",
}
LOOSE = {"checking.py": "def equal(a, b):\n    pass\n"}


def test_assertions_that_only_tests_import_belong_to_the_tests(tmp_path: Path) -> None:
    assert kinds(tmp_path, HELPER, LOOSE) == {"checking.py": "test"}
    assert kinds(tmp_path / "used", {**HELPER, "shop.py": "import checking\n"}, LOOSE) == {}


def test_a_module_that_only_tests_import_is_judged_as_any_other(tmp_path: Path) -> None:
    before = {"calc.py": "assert True\n", "test_calc.py": "import calc\n"}

    assert kinds(tmp_path, before, {"calc.py": "assert 1\n"}) == {}


def test_only_a_new_module_can_shadow_the_library(tmp_path: Path) -> None:
    found = kinds(tmp_path, {"calendar.py": "a = 1\n"}, {"calendar.py": "a = 2\n", "random.py": "b = 1\n"})

    assert found == {"random.py": "runner"}


def test_files_are_restored_even_where_a_file_became_a_folder(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "shop", {"a": "1", "tests": "2", "gone/b": "3"})
    own, old = Git(top), git(top, "rev-parse", "HEAD")
    for name in ("tests", "gone/b"):
        (top / name).unlink()
    (top / "gone").rmdir()
    write(top, {"a": "new", "tests/c": "4", "gone": "5"})
    git(top, "add", "-A")
    git(top, "commit", "-qm", "fixed")
    changed = {delta.path: delta.old for delta in deltas(own, old, "HEAD") if delta.path != b"a"}

    tree = tree_with(own, "HEAD", changed)

    assert git(top, "ls-tree", "-r", "--name-only", tree).split() == ["a", "gone/b", "tests"]
    assert git(top, "show", f"{tree}:a") == "new"
