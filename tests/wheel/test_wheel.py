"""The wheel claims one import name and contains the whole application."""

import zipfile
from pathlib import Path

import pytest

CARRIED = {
    "src/fixloop": "fixloop",
    "workers": "fixloop/_app/workers",
    "workflows": "fixloop/_app/workflows",
    "config": "fixloop/_app/config",
}

pytestmark = pytest.mark.slow


@pytest.fixture
def contents(wheel: Path) -> list[str]:
    """The names of the wheel's files."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def carried_name(name: str) -> str | None:
    for folder, target in CARRIED.items():
        if name.startswith(f"{folder}/"):
            return target + name.removeprefix(folder)
    return None


def test_the_wheel_claims_one_import_name(contents: list[str]) -> None:
    tops = {name.split("/")[0] for name in contents}

    assert {name for name in tops if not name.endswith(".dist-info")} == {"fixloop"}
    assert len(tops) == 2


def test_the_wheel_has_every_file_of_library_and_application_and_nothing_else(
    contents: list[str], project_files: list[str]
) -> None:
    expected = {target for name in project_files if (target := carried_name(name))}

    assert {name for name in contents if ".dist-info/" not in name} == expected


@pytest.mark.parametrize(
    "name",
    [
        "fixloop/py.typed",
        "fixloop/servers/keeper.py",
        "fixloop/store/commit.lua",
        "fixloop/protocol/templates/failure-report.md.j2",
        "fixloop/_app/workers/launch.py",
        "fixloop/_app/config/redis.conf",
    ],
)
def test_files_that_are_not_imported_are_packaged_too(contents: list[str], name: str) -> None:
    assert name in contents


def test_the_wheel_contains_the_command_and_the_licence(contents: list[str]) -> None:
    assert any(name.endswith(".dist-info/entry_points.txt") for name in contents)
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in contents)
