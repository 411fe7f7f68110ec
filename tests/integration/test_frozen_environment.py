"""The listing of a real virtual environment: deliberate changes show, those by running checks do not."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fixloop.machine.interpreters import Interpreter
from tests.fixtures.repositories import write
from tests.integration.test_interpreter import make_venv, site_packages
from tests.unit.test_frozen_environment import lay_package
from workers.workspaces.frozen_environment import changes, listing

pytestmark = pytest.mark.slow

FILES = {"tool/__init__.py": "", "tool/core.py": "x = 1\n"}


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    made = make_venv(tmp_path / "shop/.venv")
    lay_package(site_packages(made), "tool", FILES)
    return made


def listed(venv: Path) -> dict[str, str]:
    return listing(Interpreter(str(venv / "bin/python"), str(venv), "checkout"), [], [], [])


def edit_in_place(venv: Path) -> None:
    """The same size, and the date set back."""
    file = site_packages(venv) / "tool/core.py"
    was = file.stat()
    file.write_text("x = 2\n")
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))


def plant(name: str, text: str = "") -> Callable[[Path], None]:
    return lambda venv: write(site_packages(venv), {name: text})


def replace_python(venv: Path) -> None:
    (venv / "bin/python").unlink()
    write(venv, {"bin/python": "#!/bin/sh\n"})


@pytest.mark.proves("I4")
@pytest.mark.parametrize(
    ("act", "told"),
    [
        (plant("evil.pth", "import os\n"), "site-packages/evil.pth was added"),
        (plant("sitecustomize.py"), "site-packages/sitecustomize.py was added"),
        (plant("evil-1.0.dist-info/entry_points.txt", "[pytest11]\n"), "site-packages/evil-1.0.dist-info was added"),
        (plant("tool-1.0.dist-info/entry_points.txt"), "tool-1.0.dist-info/entry_points.txt was added"),
        (plant("tool/new.py"), "site-packages/tool/new.py was added"),
        (edit_in_place, "site-packages/tool/core.py was changed"),
        (lambda venv: write(venv, {"bin/ruff": "#!/bin/sh\n"}), ".venv/bin/ruff was added"),
        (lambda venv: (site_packages(venv) / "tool/core.py").unlink(), "tool/core.py was removed"),
        (lambda venv: write(venv, {"pyvenv.cfg": "home = /evil\n"}), ".venv/pyvenv.cfg was changed"),
        (replace_python, ".venv/bin/python was changed"),
    ],
)  # fmt: skip
def test_a_change_to_an_environment_is_reported_with_its_file(
    venv: Path, act: Callable[[Path], object], told: str
) -> None:
    before = listed(venv)

    act(venv)

    assert any(change.endswith(told) for change in changes(before, listed(venv)))


@pytest.mark.proves("I4")
def test_importing_or_reinstalling_the_same_files_changes_nothing(venv: Path) -> None:
    before = listed(venv)

    subprocess.run([venv / "bin/python", "-c", "import tool.core"], check=True)
    assert list(site_packages(venv).rglob("*.pyc"))
    write(site_packages(venv), {f"{name}.new": text for name, text in FILES.items()})
    for name in FILES:
        (site_packages(venv) / f"{name}.new").rename(site_packages(venv) / name)
    now = listed(venv)

    assert now != before
    assert [*changes(before, now)] == []


def test_a_newer_version_of_a_package_is_reported(venv: Path) -> None:
    before = listed(venv)

    lay_package(site_packages(venv), "tool", {**FILES, "tool/core.py": "x = 22\n"})

    told = [change.removeprefix(f"{site_packages(venv)}/") for change in changes(before, listed(venv))]
    assert told == ["tool was changed", "tool-1.0.dist-info/RECORD was changed"]
