"""A change that was taken from a folder: its commit, its files, and which of them judge rather than are judged."""

import contextlib
import re
import tomllib
from typing import Final

from pydantic import BaseModel, ConfigDict

from fixloop.repository.git import Git, shown
from fixloop.repository.tree import deltas, tree_id

DIFF_BYTES: Final = 1024 * 1024
"""Nobody reads more; the commit itself is whole."""

TEST_FOLDERS: Final = frozenset({"test", "tests", "__tests__", "spec", "specs", "e2e"})
TEST_FILE: Final = re.compile(r"test_.*|.*_test\.\w+|.*\.(test|spec)\.\w+|conftest\.py")
GATE_FILE: Final = re.compile(
    r"fixloop\.toml|setup\.cfg|tox\.ini|noxfile\.py|package\.json|tsconfig.*\.json|\.pre-commit-config\.yaml"
    r"|\.?(ruff|pytest|mypy|bandit|pyright|pyrightconfig|coverage|pylint|flake8|semgrep|ty)"
    r"\.(toml|ini|ya?ml|json|cfg)"
    r"|\.(coveragerc|flake8|pylintrc|bandit|semgrepignore|semgrep|nycrc)|pylintrc"
    r"|\.?(eslint|jest|vitest|playwright|stylelint|prettier|babel|cypress|karma|mocha|pa11y|axe)(rc|ignore|\.config)?"
    r"(\.\w+)?"
)


class Change(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    commit: str
    tree: str
    files: tuple[str, ...] = ()
    """The changed paths, as they are printed."""
    marks: tuple[str, ...] = ()
    """Those of them that are tests, fixloop.toml or a tool's configuration."""
    left_out: tuple[str, ...] = ()
    """What earlier fixes changed and this change does not have; of a checkout that was taken as it stands."""


def change_between(git: Git, old: str, new: str) -> Change:
    """The change from one commit to another that `git` knows both."""
    files, marks = [], []
    for delta in deltas(git, old, new):
        path = shown(delta.path)
        files.append(path)
        is_marked = is_mark(path)
        if path.endswith("pyproject.toml") and not is_marked:
            # Where its `[tool]` table changed, or cannot be read.
            tables = []
            for blob in () if delta.is_addition or delta.is_deletion else (delta.old.blob, delta.new.blob):
                with contextlib.suppress(ValueError):
                    document = tomllib.loads(git.output("cat-file", "blob", blob).decode())
                    tables.append(document.get("tool", {}))
            is_marked = len(tables) < 2 or tables[0] != tables[1]
        marks += [path] if is_marked else []
    return Change(commit=new, tree=tree_id(git, new), files=tuple(files), marks=tuple(marks))


def diff_between(git: Git, old: str, new: str) -> str:
    """What turns one commit into another, as a unified diff; whole lines of it, at most a megabyte."""
    printed = git.output(
        "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", old, new, "--"
    )
    if len(printed) > DIFF_BYTES:
        # Of a line that is cut in two, half a secret may be left.
        printed = printed[: printed.rfind(b"\n", 0, DIFF_BYTES) + 1]
    return printed.decode("utf-8", "replace")


def is_mark(path: str) -> bool:
    """True for a test, fixloop.toml or a tool's configuration; pyproject.toml depends on its content."""
    return is_test(path) or GATE_FILE.fullmatch(path.rpartition("/")[2]) is not None


def is_test(path: str) -> bool:
    """True for a file of tests, by its name or by a folder it lies in."""
    *folders, name = path.split("/")
    return not TEST_FOLDERS.isdisjoint(folders) or TEST_FILE.fullmatch(name) is not None
