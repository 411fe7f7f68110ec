"""The wheel, built once from a clean copy of the project's files."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def project_files() -> list[str]:
    """The files of the project as they would be released: all that git does not ignore."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("this is no git checkout, so nothing says which files belong to the project")
    return sorted({name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()})


@pytest.fixture(scope="session")
def wheel(project_files: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's file."""
    copy, out = tmp_path_factory.mktemp("clean"), tmp_path_factory.mktemp("wheel")
    for name in project_files:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, copy / name)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out], cwd=copy, check=True
    )
    (built,) = out.glob("*.whl")
    return built
