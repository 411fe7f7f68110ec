"""mypy's cache: who may read it, and when it is written again."""

import os
import time
from pathlib import Path

import pytest

from workers.workspaces.mypy_cache import DAY_SECONDS, is_due, is_mypy, lend_cache, runs_other_code


def remembered(folder: Path) -> Path:
    (folder / "kept/3.13").mkdir(parents=True)
    (folder / "kept/3.13/cache.db").write_bytes(b"what it knows")
    return folder / "kept"


def test_a_cache_is_rewritten_when_all_of_it_is_older_than_a_day(tmp_path: Path) -> None:
    kept, now = remembered(tmp_path), time.time()
    (kept / ".gitignore").touch()
    os.utime(kept / ".gitignore", (now - 2 * DAY_SECONDS,) * 2)

    assert not is_due(kept, now)
    assert is_due(kept, now + DAY_SECONDS + 60)


def test_an_empty_or_missing_folder_is_written(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()

    assert is_due(tmp_path / "kept", time.time())
    assert is_due(tmp_path / "missing", time.time())


def test_a_younger_cache_is_not_lent_even_with_an_old_date(tmp_path: Path) -> None:
    kept, began = remembered(tmp_path), time.time() - 60
    os.utime(kept / "3.13/cache.db", (0, 0))

    lend_cache(kept, tmp_path / "young", began)
    lend_cache(kept, tmp_path / "old", time.time() + 60)

    assert not (tmp_path / "young").exists()
    assert (tmp_path / "old/3.13/cache.db").read_bytes() == b"what it knows"


@pytest.mark.proves("I4")
@pytest.mark.parametrize(
    ("name", "text", "is_other"),
    [
        ("mypy.ini", "[mypy]\nplugins = tools.spoil\n", True),
        ("setup.cfg", "[mypy]\nplugins =\n    pydantic.mypy,\n    spoil\nstrict = true\n", True),
        ("pyproject.toml", '[tool.mypy]\nplugins = [\n  "pydantic.mypy",\n  "./spoil.py",\n]\n', True),
        ("own.ini", "[mypy]\npython_executable = bin/python\n", True),
        ("pyproject.toml", '[tool.mypy]\nplugins = ["pydantic.mypy"]\nfiles = ["tools"]\n', False),
        ("mypy.ini", "[mypy]\nstrict = true\nfiles = tools\n", False),
    ],
)
def test_mypy_has_no_kept_cache_where_it_runs_code_of_the_project(
    tmp_path: Path, name: str, text: str, is_other: bool
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/spoil.py").touch()
    (tmp_path / name).write_text(text)

    assert runs_other_code(["python", "-m", "mypy", "--config-file=own.ini", "tools"], tmp_path) == is_other


def test_a_command_that_only_names_mypy_is_not_mypy() -> None:
    mypy = (["mypy", "."], [".venv/bin/mypy"], ["uv", "run", "mypy"], ["env", "A=b", "python3", "-m", "mypy"])

    assert all(map(is_mypy, mypy))
    assert not any(map(is_mypy, (["sh", "-c", "spoil", "mypy"], ["python", "spoil.py", "mypy"])))
