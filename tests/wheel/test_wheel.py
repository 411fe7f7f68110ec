"""The wheel claims one import name and carries the application whole."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CARRIED = {
    "src/fixloop": "fixloop",
    "workers": "fixloop/_app/workers",
    "workflows": "fixloop/_app/workflows",
    "config": "fixloop/_app/config",
}


def tracked_files() -> list[str]:
    """The files of the project as they would be released."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("this is no git checkout, so nothing says which files belong to the project")
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The names of the files in a wheel built from a clean copy."""
    copy, out = tmp_path_factory.mktemp("clean"), tmp_path_factory.mktemp("wheel")
    for name in tracked_files():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, copy / name)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out], cwd=copy, check=True
    )
    (wheel,) = out.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def carried_name(name: str) -> str | None:
    for folder, target in CARRIED.items():
        if name.startswith(f"{folder}/"):
            return target + name.removeprefix(folder)
    return None


@pytest.mark.slow
def test_the_wheel_claims_one_import_name(contents: list[str]) -> None:
    tops = {name.split("/")[0] for name in contents}

    assert {name for name in tops if not name.endswith(".dist-info")} == {"fixloop"}
    assert len(tops) == 2


@pytest.mark.slow
def test_every_file_of_library_and_application_is_carried_and_nothing_else(contents: list[str]) -> None:
    expected = {target for name in tracked_files() if (target := carried_name(name))}

    assert {name for name in contents if ".dist-info/" not in name} == expected
    assert "fixloop/keeper.py" in expected
    assert "fixloop/_app/config/redis.conf" in expected


@pytest.mark.slow
def test_the_wheel_brings_the_command_and_the_licence(contents: list[str]) -> None:
    assert any(name.endswith(".dist-info/entry_points.txt") for name in contents)
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in contents)
