"""Where lines and renamed files went, as git reports it."""

from pathlib import Path

import pytest

from fixloop.repository.git import Git
from fixloop.repository.moves import Moves
from tests.fixtures.repositories import git, make_repository, write

pytestmark = pytest.mark.slow


def test_git_reports_where_lines_and_renamed_files_went(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(30)]
    repository = make_repository(tmp_path / "r", {"old/a.py": "\n".join(lines) + "\n", "b.py": "one\ntwo\n"})
    first = git(repository, "rev-parse", "HEAD")
    git(repository, "mv", "old/a.py", "new name.py")
    write(repository, {"new name.py": "\n".join(["top", *lines[:9], *lines[10:], lines[9]]) + "\n"})
    write(repository, {"b.py": "one\n2\ntwo"})
    git(repository, "commit", "-aqm", "second")

    moves = Moves(Git(repository), first, git(repository, "rev-parse", "HEAD"))

    assert moves.name_after("old/a.py") == "new name.py"
    renamed = moves.lines("new name.py")
    assert [renamed.after(line) for line in (1, 9, 10, 11, 30)] == [2, 10, None, 11, 30]
    assert (renamed.removed, renamed.added) == ({10: "line 9"}, {1: "top", 31: "line 9"})
    assert [moves.lines("b.py").after(line) for line in (1, 2)] == [1, None]
