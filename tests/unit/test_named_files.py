"""Named files: whole at every moment for whoever reads them, never older than they were, and never outside."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fixloop.errors import RefusedError, UsageError
from fixloop.named_files import Folders, NamedFiles

FOLDERS = ("pending", "accepted", "completed")
READER = Path(__file__).with_name("file_reader.py")


def bring(files: NamedFiles, version: int) -> None:
    """A state too long for one page, and a handoff that lies somewhere else in each version."""
    status = FOLDERS[version % 3]
    state = json.dumps({"first": version, "filler": "x" * 100_000, "last": version}).encode()
    handoff = {f"{status}/handoff-1.json": json.dumps({"status": status, "v": version}).encode()}
    files.write(version, [("state.json", state)], {"handoffs": Folders(FOLDERS, handoff)})


@pytest.mark.slow
@pytest.mark.proves("K23", "D15", "R13")
def test_a_reader_that_polls_never_sees_half_a_file_nor_a_handoff_in_two_places(tmp_path: Path) -> None:
    files = NamedFiles(tmp_path, "w")
    bring(files, 1)
    with subprocess.Popen(
        [sys.executable, str(READER), str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "reading\n"

        for version in range(2, 150):
            bring(files, version)

        (tmp_path / "stop").touch()
        looks, _ = reader.communicate(timeout=30)
    assert reader.returncode == 0, looks
    assert int(looks) > 10


@pytest.mark.proves("K23")
def test_an_older_state_writes_nothing_over_a_newer_one(tmp_path: Path) -> None:
    files = NamedFiles(tmp_path, "w")

    assert files.write(3, [("a.json", b"three")])
    assert not NamedFiles(tmp_path, "w").write(2, [("a.json", b"two")])
    assert (tmp_path / "a.json").read_bytes() == b"three"


@pytest.mark.proves("R13")
def test_files_that_a_crash_left_half_done_are_whole_after_the_next_write(tmp_path: Path) -> None:
    files = NamedFiles(tmp_path, "w")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / ".a.json.new").write_bytes(b"hal")
    (tmp_path / ".handoffs.00000002").mkdir()

    files.write(2, [("deep/a.json", b"whole")], {"handoffs": Folders(FOLDERS, {})})

    assert sorted(os.listdir(tmp_path / "deep")) == ["a.json"]
    assert sorted(os.listdir(tmp_path / "handoffs")) == sorted(FOLDERS)


@pytest.mark.proves("K23")
def test_what_somebody_changed_by_hand_is_named(tmp_path: Path) -> None:
    files = NamedFiles(tmp_path, "w")
    given = [("a.json", b"{}"), ("b/c.json", b"{}"), ("gone.json", b"{}")]
    files.write(1, given)

    (tmp_path / "b" / "c.json").write_bytes(b'{"status": "mine"}')
    (tmp_path / "gone.json").unlink()

    assert list(files.edited(given)) == ["b/c.json", "gone.json"]


def test_only_two_generations_of_a_swapped_directory_are_kept(tmp_path: Path) -> None:
    files = NamedFiles(tmp_path, "w")

    for version in range(1, 6):
        bring(files, version)

    assert sorted(path.name for path in tmp_path.glob(".handoffs.*")) == [
        ".handoffs.00000004",
        ".handoffs.00000005",
    ]


@pytest.mark.proves("C18")
def test_no_file_is_written_outside_or_through_a_link(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (inside / "link").symlink_to(outside)
    files = NamedFiles(inside, "w")

    for path in ("../a", "/tmp/a", "b/../../a"):
        with pytest.raises(UsageError, match="leads out of"):
            files.write(1, [(path, b"")])
    with pytest.raises(RefusedError, match="link in link/a is no directory"):
        files.write(1, [("link/a", b"")])
    assert list(outside.iterdir()) == []


def test_a_directory_of_somebody_elses_is_not_swapped(tmp_path: Path) -> None:
    (tmp_path / "handoffs").mkdir()
    (tmp_path / "handoffs" / "mine.txt").write_text("mine")

    with pytest.raises(RefusedError, match="did not make"):
        NamedFiles(tmp_path, "w").write(1, [], {"handoffs": Folders(FOLDERS, {})})

    assert (tmp_path / "handoffs" / "mine.txt").read_text() == "mine"
