"""`init` in a project whose checks it tries."""

import sys
import tomllib
from pathlib import Path

import pytest

from tests.fixtures.command_stage import said
from tests.unit.test_commands_read_doctor_init import Capsys, make_project

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, without any configuration."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_passing_project_still_passes_with_the_file_that_init_wrote(
    project: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_project(project)
    (project / "shop.py").write_text("def sold():\n    return 1\n\n\ndef lost():\n    return 2\n")
    (project / "ruff.toml").write_text("line-length = 10\n[lint]\nselect = ['E501']\n")
    (project / "tests" / "test_x.py").write_text("import shop\n\n\ndef test_x():\n    assert shop.sold()\n")
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    monkeypatch.setenv("FIXLOOP_CACHE_DIR", str(project.parent / "cache"))

    told = said(capsys, "init")

    assert "test-runner: pytest: passed" in told.err
    assert "code-quality: ruff: 7 failures" in told.err
    text = (project / "fixloop.toml").read_text()
    assert "# does not pass today: 7 failures\n" in text
    assert tomllib.loads(text)["specialist"]["test-runner"]["coverage_percent"] == 75
