"""Reading many files of a repository at once."""

from pathlib import Path

import pytest

from fixloop.repository.git import Git
from fixloop.repository.tree import texts
from tests.fixtures.repositories import git, make_repository

pytestmark = pytest.mark.slow


def test_texts_are_read_by_blob_or_by_path_and_binary_files_are_left_out(tmp_path: Path) -> None:
    content = {"a.py": "one\n", "b c.py": "", "d/é.py": "\n\ntwo\n", "large.py": "x" * 101, "binary": "a\0b"}
    top = make_repository(tmp_path / "shop", content)
    blob = git(top, "rev-parse", "HEAD:a.py")

    found = texts(Git(top), [*(f"HEAD:{path}" for path in content), blob, "HEAD:gone", "HEAD:d"], 100)

    assert found == {"HEAD:a.py": "one\n", "HEAD:b c.py": "", "HEAD:d/é.py": "\n\ntwo\n", blob: "one\n"}
    assert texts(Git(top), [], 100) == {}
