"""Named files: whole at every moment for a reader, never older than they were, and never outside."""

import json
import os
from pathlib import Path

import pytest

from fixloop.errors import RefusedError, UsageError
from fixloop.files.atomic import File, Folders
from fixloop.statefiles.named_files import Edited, Files, NamedFiles, Record, Stamp

FOLDERS = ("pending", "accepted", "completed")


def drawn(*files: tuple[str, bytes], handoffs: dict[str, bytes] | None = None) -> Files:
    swapped = {"handoffs": Folders(FOLDERS, handoffs)} if handoffs is not None else {}
    return Files([File.of(*file) for file in files], swapped)


def of(version: int, workflow: str = "w") -> Stamp:
    return Stamp(workflow=workflow, version=version)


def write_version(files: NamedFiles, version: int) -> None:
    """A state too long for one page, and a handoff that is in a different folder in each version."""
    status = FOLDERS[version % 3]
    state = json.dumps({"first": version, "filler": "x" * 100_000, "last": version}).encode()
    handoff = {f"{status}/handoff-1.json": json.dumps({"status": status, "v": version}).encode()}
    files.write(of(version), drawn(("state.json", state), handoffs=handoff))


@pytest.mark.proves("K23")
def test_an_older_state_overwrites_no_newer_one(tmp_path: Path) -> None:
    files = NamedFiles(tmp_path, "w")

    assert files.write(of(3), drawn(("a.json", b"three"))).done
    assert not NamedFiles(tmp_path, "w").write(of(2), drawn(("a.json", b"two"))).done
    assert (tmp_path / "a.json").read_bytes() == b"three"


@pytest.mark.proves("K23", "R13")
def test_a_rebuilt_workflow_starts_its_versions_at_one(tmp_path: Path) -> None:
    files = NamedFiles(tmp_path, "w")
    files.write(of(7), drawn(("a.json", b"seven")))

    again = Stamp(workflow="w", rebuilt=1, version=1)
    assert files.write(again, drawn(("a.json", b"one"))).done
    assert not files.write(of(8), drawn(("a.json", b"eight"))).done


@pytest.mark.proves("D19")
def test_a_place_belongs_to_one_workflow_until_another_may_take_it(tmp_path: Path) -> None:
    files = NamedFiles(tmp_path, "handoff")
    files.write(of(5), drawn(("a.json", b"w"), handoffs={"pending/x": b"w"}))
    other = drawn(("a.json", b"o"), handoffs={})

    refused = files.write(of(9, "other"), other)
    taken = files.write(of(1, "other"), other, takes_over=lambda before: before.workflow == "w")

    assert (refused.done, refused.before.workflow, taken.done) == (False, "w", True)
    assert (tmp_path / "a.json").read_bytes() == b"o"
    assert os.listdir(tmp_path / "handoffs" / "pending") == []


@pytest.mark.proves("R13")
def test_files_left_incomplete_by_a_crash_are_complete_after_the_next_write(tmp_path: Path) -> None:
    files = NamedFiles(tmp_path, "w")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / ".a.json.new").write_bytes(b"hal")
    (tmp_path / ".handoffs.00000002").mkdir()

    files.write(of(2), drawn(("deep/a.json", b"whole"), handoffs={}))

    assert sorted(os.listdir(tmp_path / "deep")) == ["a.json"]
    assert sorted(os.listdir(tmp_path / "handoffs")) == sorted(FOLDERS)


@pytest.mark.proves("K23", "R13")
def test_a_killed_writer_s_files_are_no_edit_and_are_updated(tmp_path: Path) -> None:
    files = NamedFiles(tmp_path, "w")
    files.write(of(1), drawn(("a.json", b"one"), ("b.json", b"one"), handoffs={"pending/x": b"1"}))
    kept = (tmp_path / ".fixloop/files/w.json").read_bytes()
    files.write(of(2), drawn(("a.json", b"two"), ("b.json", b"two"), handoffs={"accepted/x": b"2"}))
    # As after a kill: all is written but the record, which still has its intent.
    (tmp_path / ".fixloop/files/w.json").rename(tmp_path / ".fixloop/files/w.intent")
    (tmp_path / ".fixloop/files/w.json").write_bytes(kept)
    (tmp_path / "b.json").write_bytes(b"one")

    written = files.write(
        of(3), drawn(("a.json", b"one"), ("b.json", b"three"), handoffs={"pending/x": b"1"})
    )

    assert (written.done, written.edited) == (True, ())
    assert ((tmp_path / "a.json").read_bytes(), (tmp_path / "b.json").read_bytes()) == (b"one", b"three")
    assert [path.name for path in (tmp_path / "handoffs").glob("*/*")] == ["x"]
    assert (tmp_path / "handoffs/pending/x").read_bytes() == b"1"


@pytest.mark.proves("K23", "C5")
def test_a_file_that_was_edited_by_hand_is_kept_aside_and_written_again(tmp_path: Path) -> None:
    files = NamedFiles(tmp_path, "w")
    given = drawn(("a.json", b"{}"), ("b/c.json", b"{}"), ("gone.json", b"{}"), handoffs={"pending/x": b"1"})
    files.write(of(1), given)
    (tmp_path / "b" / "c.json").write_bytes(b'{"status": "mine"}')
    (tmp_path / "gone.json").unlink()
    (tmp_path / "handoffs/pending/x").rename(tmp_path / "handoffs/accepted/x")

    found = list(files.edited(files.record, given))
    written = files.write(of(2), given)

    assert found == [
        Edited("b/c.json", b'{"status": "mine"}'),
        Edited("gone.json", None),
        Edited("handoffs/pending/x", None),
        Edited("handoffs/accepted/x", b"1"),
    ]
    assert [edit.path for edit in written.edited] == [edit.path for edit in found]
    aside = tmp_path / ".fixloop/files/edited/w.2.1"
    assert (aside / "b/c.json").read_bytes() == b'{"status": "mine"}'
    assert (aside / "handoffs/accepted/x").read_bytes() == b"1"
    assert list(files.edited(files.record, given)) == []


@pytest.mark.proves("K23")
def test_others_files_are_kept_aside_before_the_first_write(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"mine")
    (tmp_path / "same.json").write_bytes(b"same")

    written = NamedFiles(tmp_path, "w").write(of(1), drawn(("a.json", b"ours"), ("same.json", b"same")))

    assert [(edit.path, edit.found) for edit in written.edited] == [("a.json", b"mine")]
    assert (tmp_path / written.edited[0].kept).read_bytes() == b"mine"


@pytest.mark.proves("R13")
def test_contents_already_written_are_not_generated_again(tmp_path: Path) -> None:
    made: list[str] = []
    document = File("a.md", "digest-1", lambda: (made.append("a") or b"text",))  # type: ignore[func-returns-value]
    files = NamedFiles(tmp_path, "w")

    for version in range(1, 4):
        files.write(of(version), Files([document, File.of("state.json", str(version).encode())]))

    assert made == ["a"]
    assert (tmp_path / "state.json").read_bytes() == b"3"


def test_an_unreadable_record_is_ignored(tmp_path: Path) -> None:
    files = NamedFiles(tmp_path, "w")
    files.write(of(4), drawn(("a.json", b"{}")))
    (tmp_path / ".fixloop/files/w.json").write_text("{")

    assert files.record == Record()
    assert files.write(of(2), drawn(("a.json", b"{}"))).done


def test_only_two_generations_of_a_swapped_directory_are_kept(tmp_path: Path) -> None:
    files = NamedFiles(tmp_path, "w")

    for version in range(1, 6):
        write_version(files, version)

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
            files.write(of(1), drawn((path, b"")))
    with pytest.raises(RefusedError, match="link in link/a is no directory"):
        files.write(of(1), drawn(("link/a", b"")))
    assert list(outside.iterdir()) == []


def test_another_s_directory_is_not_swapped(tmp_path: Path) -> None:
    (tmp_path / "handoffs").mkdir()
    (tmp_path / "handoffs" / "mine.txt").write_text("mine")

    with pytest.raises(RefusedError, match="did not make"):
        NamedFiles(tmp_path, "w").write(of(1), drawn(handoffs={}))

    assert (tmp_path / "handoffs" / "mine.txt").read_text() == "mine"
