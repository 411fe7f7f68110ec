"""Compiled libraries that are lent to a workspace, with a real interpreter."""

import math
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from fixloop.configuration.model import Configuration
from fixloop.machine.interpreters import Interpreter
from fixloop.repository.snapshot import take_snapshot
from tests.fixtures.repositories import make_repository
from workers.workspaces import bytecode
from workers.workspaces.bytecode import give_back, lend
from workers.workspaces.ground import Ground, Site
from workers.workspaces.workspace import remove_folder

pytestmark = pytest.mark.slow

OWN = Interpreter(sys.executable, "", "PATH")


def compiled(pycache: Path, *, lent: bool) -> set[str]:
    """The modules there, that were lent or that commands compiled."""
    return {
        path.name.partition(".")[0]
        for path in pycache.rglob("*.pyc")
        if path.is_symlink() is lent and path.name.startswith(("decoder.", "calc."))
    }


def play(ground: Ground) -> Path:
    """Import a module of a library and one of the project; where its bytecode is."""
    environment = ground.check_environment(())
    program = [ground.interpreter.path, "-c", "import json.decoder, calc"]
    subprocess.run(program, cwd=ground.workspace.directory, env=environment, check=True)
    return Path(environment["PYTHONPYCACHEPREFIX"])


def test_libraries_are_compiled_once_and_the_project_each_time(tmp_path: Path) -> None:
    repository, cache = make_repository(tmp_path / "calc", {"calc.py": ""}), tmp_path / "cache"
    snapshot = take_snapshot(repository, issue=1, cache=cache)
    site = Site(snapshot, Configuration(), cache, "mine")
    with site.ground(snapshot.commit) as ground:
        play(ground)

    with site.ground(snapshot.commit) as ground, site.ground(snapshot.commit) as other:
        for pycache in (play(ground), play(other)):
            assert compiled(pycache, lent=True) == {"decoder"}
            assert compiled(pycache, lent=False) == {"calc"}


def test_an_interpreter_s_first_command_gets_all_bytecode_and_the_next_what_it_read(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    lend(first, tmp_path / "cache", OWN, math.inf)
    everything = sum(1 for _ in first.rglob("*.pyc"))

    environment = os.environ | {"PYTHONPYCACHEPREFIX": str(first)}
    program = "import asyncio, http.server, json.decoder, logging.config, unittest.mock, xml.dom.minidom"
    subprocess.run([OWN.path, "-c", program], env=environment, check=True)
    give_back(first, tmp_path / "cache", OWN)
    lend(second, tmp_path / "cache", OWN, math.inf)

    assert compiled(second, lent=True) == {"decoder"}
    assert 0 < sum(1 for _ in second.rglob("*.pyc")) < everything


def test_an_interpreter_s_first_command_gets_no_bytecode_that_was_never_read(tmp_path: Path) -> None:
    compiled = tmp_path / "venv/lib/python3.11/site-packages/__pycache__"
    compiled.mkdir(parents=True)
    for name, read_seconds in (("used", 2), ("unused", 1)):
        (compiled / f"{name}.cpython-311.pyc").write_bytes(b"bytecode")
        os.utime(compiled / f"{name}.cpython-311.pyc", (read_seconds, 1))

    lend(
        tmp_path / "first",
        tmp_path / "cache",
        Interpreter(f"{tmp_path}/venv/bin/python", "", "PATH"),
        math.inf,
    )

    assert [path.name for path in (tmp_path / "first").rglob("*.pyc")] == ["used.cpython-311.pyc"]


NAME = "tool.cpython-311.pyc"


def pool(cache: Path) -> Path:
    """Where the one interpreter's folders are."""
    [found] = [each for each in (cache / "imported").iterdir() if each.is_dir()]
    return found


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One with a compiled module, which a command has imported and given back."""
    monkeypatch.setattr(bytecode, "FEWEST_IMPORTED", 1)
    library = tmp_path / "venv/lib/python3.11/site-packages"
    library.joinpath("__pycache__").mkdir(parents=True)
    (library / "__pycache__" / NAME).write_bytes(b"bytecode")
    used = Path(f"{tmp_path}/used{library}")
    used.mkdir(parents=True)
    (used / NAME).write_bytes(b"planted")
    give_back(tmp_path / "used", tmp_path / "cache", OWN)
    return library


def test_bytecode_that_a_command_wrote_is_never_lent(library: Path, tmp_path: Path) -> None:
    lend(tmp_path / "next", tmp_path / "cache", OWN, math.inf)

    [lent] = [path for path in (tmp_path / "next").rglob("*") if not path.is_dir()]
    assert lent.readlink() == library / "__pycache__" / NAME


def test_a_command_that_finds_one_folder_left_gets_an_equal_one(library: Path, tmp_path: Path) -> None:
    for name in ("next", "another"):
        lend(tmp_path / name, tmp_path / "cache", OWN, math.inf)

        [lent] = [path for path in (tmp_path / name).rglob("*") if not path.is_dir()]
        assert lent.readlink() == library / "__pycache__" / NAME


def test_a_command_that_loses_the_race_for_a_folder_gets_an_equal_one(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = pool(tmp_path / "cache")
    [kept] = folders.iterdir()
    listdir = os.listdir

    def taken(path: Path) -> list[str]:
        names = listdir(path)
        kept.rename(tmp_path / "another")
        return names

    monkeypatch.setattr(os, "listdir", taken)

    lend(tmp_path / "next", tmp_path / "cache", OWN, math.inf)

    assert [path.readlink() for path in (tmp_path / "next").rglob("*.pyc")] == [
        library / "__pycache__" / NAME
    ]


def test_bytecode_newer_than_the_workflow_is_not_lent(library: Path, tmp_path: Path) -> None:
    began = time.time() - 60
    os.utime(library / "__pycache__" / NAME, (began - 60, began - 60))

    lend(tmp_path / "next", tmp_path / "cache", OWN, began)

    assert not list((tmp_path / "next").rglob("*.pyc"))


def test_links_that_lead_elsewhere_and_files_are_removed(library: Path, tmp_path: Path) -> None:
    folders = pool(tmp_path / "cache")
    lend(tmp_path / "another", tmp_path / "cache", OWN, math.inf)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    elsewhere.joinpath(NAME).write_bytes(b"planted")
    give_back(tmp_path / "another", tmp_path / "cache", OWN)
    for kept in folders.iterdir():
        inside = kept / library.relative_to("/")
        (inside / NAME).unlink()
        (inside / NAME).symlink_to(elsewhere / NAME)
        (inside / "written.cpython-311.pyc").write_bytes(b"planted")
        (inside / "package").symlink_to(elsewhere)
        (kept / NAME).symlink_to(f"/__pycache__/{NAME}")

    for name in ("taken", "made"):
        lend(tmp_path / name, tmp_path / "cache", OWN, math.inf)

        lent = [path for path in (tmp_path / name).rglob("*") if not path.is_dir()]
        assert {path.readlink() for path in lent} <= {library / "__pycache__" / NAME}
    assert elsewhere.joinpath(NAME).exists()


def test_unread_modules_are_dropped_in_favour_of_an_imported_one(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bytecode, "MOST_MODULES", 1)
    (library / "__pycache__/other.cpython-311.pyc").write_bytes(b"bytecode")
    used = tmp_path / "unread" / library.relative_to("/")
    used.mkdir(parents=True)
    (used / NAME).symlink_to(library / "__pycache__" / NAME)
    (used / "other.cpython-311.pyc").write_bytes(b"written")

    give_back(tmp_path / "unread", tmp_path / "elsewhere", OWN)
    lend(tmp_path / "next", tmp_path / "elsewhere", OWN, math.inf)

    assert [path.name for path in (tmp_path / "next").rglob("*.pyc")] == ["other.cpython-311.pyc"]


def test_every_command_is_lent_all_modules_that_commands_imported(library: Path, tmp_path: Path) -> None:
    names = [f"part{number}.cpython-311.pyc" for number in range(3)]
    for number, name in enumerate(names):
        (library / "__pycache__" / name).write_bytes(b"bytecode")
        used = tmp_path / f"used{number}" / library.relative_to("/")
        used.mkdir(parents=True)
        (used / name).write_bytes(b"written")
        give_back(tmp_path / f"used{number}", tmp_path / "cache", OWN)

    for place in ("one", "another"):
        lend(tmp_path / place, tmp_path / "cache", OWN, math.inf)

        assert {path.name for path in (tmp_path / place).rglob("*.pyc")} == {NAME, *names}


def test_a_forged_list_makes_links_to_libraries_only(library: Path, tmp_path: Path) -> None:
    [listed] = (tmp_path / "cache/imported").glob("*.modules")
    planted = tmp_path / "planted/lib/python3.11/__pycache__"
    planted.mkdir(parents=True)
    (planted / NAME).write_bytes(b"planted")
    above = f"../{tmp_path.name}/planted/lib/python3.11/{NAME}"
    listed.write_text(f"{above}\n{listed.read_text()}\nnothing\n/lib/python3/\0.pyc")

    lend(tmp_path / "next", tmp_path / "cache", OWN, math.inf)

    assert [path.name for path in (tmp_path / "next").rglob("*") if path.is_symlink()] == [NAME]
    assert sorted(path.name for path in planted.parent.iterdir()) == ["__pycache__"]


def nested(folder: Path, levels: int) -> None:
    """Folders in folders, deeper than any path can name."""
    folder.mkdir(parents=True, exist_ok=True)
    at = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("a", dir_fd=at)
        inner = os.open("a", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)


@pytest.mark.parametrize("levels", [300, 1500])
def test_folders_that_a_command_nested_are_not_lent_to_another(
    library: Path, tmp_path: Path, levels: int
) -> None:
    lend(tmp_path / "taken", tmp_path / "cache", OWN, math.inf)
    nested(tmp_path / "taken", levels)
    with suppress(RecursionError):
        give_back(tmp_path / "taken", tmp_path / "cache", OWN)
    remove_folder(tmp_path / "taken")

    lend(tmp_path / "next", tmp_path / "cache", OWN, math.inf)

    assert [path.name for path in (tmp_path / "next").rglob("*") if path.is_symlink()] == [NAME]


@pytest.mark.parametrize("left", ["own", "library", "name"])
def test_whatever_a_command_leaves_in_its_bytecode_its_workspace_ends(tmp_path: Path, left: str) -> None:
    repository, cache = make_repository(tmp_path / "calc", {"calc.py": ""}), tmp_path / "cache"
    snapshot = take_snapshot(repository, issue=1, cache=cache)
    with Site(snapshot, Configuration(), cache, "mine").ground(snapshot.commit) as ground:
        pycache = play(ground)
        if left == "name":
            link = os.fsencode(pycache) + b"/\xff.pyc"
            os.symlink("/", link)
            os.utime(link, (2e9, 1), follow_symlinks=False)
        else:
            nested(Path(f"{pycache}{ground.workspace.path}") if left == "own" else pycache, 1500)

    assert not ground.workspace.folder.exists()
