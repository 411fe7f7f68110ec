"""The archive's files: they grow by whole records, with several writers and after a crash in mid-record."""

import gzip
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from fixloop.errors import InfrastructureError, ProtocolError
from fixloop.store.archive import record
from fixloop.store.archive.files import Archive
from fixloop.store.archive.record import Member, erase, line_of, member, read, stored_of, walk
from fixloop.store.records import Stored

ENDED: Final = datetime(2026, 3, 1, 23, 59, tzinfo=UTC)
FLOW: Final = "0a1b2c3d-47-1"


def stored(workflow: str = FLOW, **more: Any) -> Stored:
    values: dict[str, Any] = {
        "workflow": workflow,
        "version": 2,
        "head": "h" * 64,
        "snapshot": b"\x00snapshot\xff",
        "entries": (b"one\n", b"two\x00"),
        "artifacts": {"d" * 64: b"log\n" * 100},
        "fields": {"name": "a feature — with a dash", "outcome": "success"},
        "stale": 1,
    }
    return Stored(**{**values, **more})


def members_of(path: Path) -> list[Member | int]:
    file = os.open(path, os.O_RDONLY)
    try:
        return list(walk(file))
    finally:
        os.close(file)


@pytest.mark.proves("G26")
def test_an_archived_record_is_read_back_unchanged(tmp_path: Path) -> None:
    archive = Archive(tmp_path)

    archive.append(stored(), ENDED)

    assert Archive(tmp_path).find(FLOW) == stored()
    assert Archive(tmp_path).find(FLOW, ENDED) == stored()
    assert Archive(tmp_path).find("0a1b2c3d-47-2") is None
    assert Archive(tmp_path / "none").find(FLOW) is None


@pytest.mark.proves("G26")
def test_one_file_a_day_and_project_holds_lines_of_json(tmp_path: Path) -> None:
    archive = Archive(tmp_path, host="host.example")
    flows = [FLOW, "0a1b2c3d-48-1", "ffffffff-47-1"]
    paths = [archive.append(stored(flow), ENDED) for flow in flows]
    paths.append(archive.append(stored("0a1b2c3d-49-1"), ENDED.replace(day=2)))

    assert [str(path.relative_to(tmp_path)) for path in dict.fromkeys(paths)] == [
        "0a1b2c3d/2026-03-01.host_example.jsonl.gz",
        "ffffffff/2026-03-01.host_example.jsonl.gz",
        "0a1b2c3d/2026-03-02.host_example.jsonl.gz",
    ]
    lines = [json.loads(line) for line in gzip.decompress(paths[0].read_bytes()).splitlines()]
    assert [line["workflow"] for line in lines] == flows[:2]
    assert lines[0]["fields"]["outcome"] == "success"


def test_the_index_is_read_without_unpacking_records(tmp_path: Path) -> None:
    path = Archive(tmp_path).append(stored(), ENDED)
    damage(path, path.stat().st_size - 20)

    (found,) = Archive(tmp_path).workflows()

    assert (found.workflow, found.ended_at, found.version) == (FLOW, ENDED, 2)
    assert found.fields == stored().fields
    with pytest.raises(ProtocolError, match=f"{FLOW} cannot be read from .*damaged"):
        Archive(tmp_path).load(found)


def damage(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


@pytest.mark.proves("G26")
@pytest.mark.parametrize("rest", [1, 10, 40, 200, -1])
def test_a_record_truncated_by_a_crash_hides_no_other(tmp_path: Path, rest: int) -> None:
    path = Archive(tmp_path).append(stored(), ENDED)
    whole = path.stat().st_size
    Archive(tmp_path).append(stored("0a1b2c3d-48-1"), ENDED)
    os.truncate(path, whole + rest if rest > 0 else path.stat().st_size - 1)

    again = Archive(tmp_path).append(stored("0a1b2c3d-48-1"), ENDED)

    assert again != path
    assert [each.workflow for each in Archive(tmp_path).workflows()] == ["0a1b2c3d-48-1", FLOW]
    (said,) = Archive(tmp_path).damaged()
    assert said.startswith(f"{path} cannot be read from byte {whole} of ")


def test_another_s_file_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "0a1b2c3d" / "2026-03-01.host.jsonl.gz"
    path.parent.mkdir()
    path.write_bytes(gzip.compress(b'{"workflow": "mine"}\n'))
    before = path.read_bytes()

    Archive(tmp_path, host="host").append(stored(), ENDED)

    assert path.read_bytes() == before
    assert Archive(tmp_path).find(FLOW) == stored()


def test_a_workflow_archived_twice_is_read_as_its_latest_record(tmp_path: Path) -> None:
    archive = Archive(tmp_path, host="one")
    archive.append(stored(), ENDED)
    Archive(tmp_path, host="two").append(stored(version=3), ENDED)
    archive.append(stored(), ENDED)

    assert archive.find(FLOW) == stored(version=3)
    assert archive.newest("0a1b2c3d", 47) == FLOW
    assert list(archive.of_issue(47)) == [FLOW] * 3
    assert archive.newest("0a1b2c3d", 4) is None


def test_an_open_archive_sees_what_others_write(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    assert list(archive.workflows()) == []
    archive.append(stored(), ENDED)
    assert len(list(archive.workflows())) == 1

    Archive(tmp_path).append(stored("0a1b2c3d-48-1"), ENDED)

    assert [each.workflow for each in archive.workflows()] == [FLOW, "0a1b2c3d-48-1"]


@pytest.mark.proves("G26")
def test_an_erased_workflow_leaves_no_bytes_and_the_others_stay(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    path = archive.append(stored(), ENDED)
    archive.append(stored("0a1b2c3d-48-1"), ENDED)
    size = path.stat().st_size

    archive.erase(next(archive.workflows()))

    assert archive.find(FLOW) is None
    assert FLOW.encode() not in path.read_bytes()
    assert path.stat().st_size == size
    assert json.loads(gzip.decompress(path.read_bytes()))["workflow"] == "0a1b2c3d-48-1"
    archive.append(stored("0a1b2c3d-49-1"), ENDED)
    assert [each.workflow for each in archive.workflows()] == ["0a1b2c3d-48-1", "0a1b2c3d-49-1"]


def test_a_file_is_deleted_with_its_last_workflow(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    path = archive.append(stored(), ENDED)

    archive.erase(next(archive.workflows()))

    assert not path.exists()


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "0a1b2c3d").write_text("a file")

    with pytest.raises(InfrastructureError, match=r"cannot write to the archive .*; see FIXLOOP_ARCHIVE_DIR"):
        Archive(tmp_path).append(stored(), ENDED)


@pytest.mark.parametrize(
    "line", [b"", b"{}", b"[]", b'{"fixloop_archive": 1}', b'{"fixloop_archive": "x"}', b"\xff"]
)
def test_a_line_that_is_no_record_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        stored_of(line)


def test_a_record_of_a_newer_version_is_named_as_such() -> None:
    line = line_of(stored(), ENDED).replace(b'"fixloop_archive":1', b'"fixloop_archive":2')

    with pytest.raises(
        ProtocolError, match=r"archived by a newer fixloop \(format 2, this one reads up to 1\)"
    ):
        stored_of(line)


def test_members_are_gzip_and_state_their_length(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(member("a", "about a", b"A" * 500) + member("b", "", b""))

    first, second, end = members_of(path)

    assert isinstance(first, Member)
    assert isinstance(second, Member)
    assert (first.name, first.comment, second.name, end) == ("a", "about a", "b", path.stat().st_size)
    assert gzip.decompress(path.read_bytes()) == b"A" * 500
    file = os.open(path, os.O_RDWR)
    assert (read(file, first), read(file, second)) == (b"A" * 500, b"")
    erase(file, first)
    os.close(file)
    assert members_of(path) == [second, end]
    assert gzip.decompress(path.read_bytes()) == b""


def test_a_record_made_to_fill_memory_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = Archive(tmp_path)
    archive.append(stored(artifacts={"d" * 64: bytes(100_000)}), ENDED)
    monkeypatch.setattr(record, "MOST_BYTES", 50_000)

    with pytest.raises(ProtocolError, match=r"has more than 50,000 bytes"):
        archive.find(FLOW)

    monkeypatch.setattr(record, "MOST_BYTES", 100)
    with pytest.raises(ProtocolError, match=r"has more than 100 bytes"):
        archive.find(FLOW)


def test_a_header_with_a_version_without_end_hides_no_other_record(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    path = archive.append(stored(), ENDED)
    told = '{"ended_at": "2026-03-01", "version": 1e999, "fields": {}}'
    path.write_bytes(member(f"{FLOW}.json", told, b"{}\n") + path.read_bytes())

    assert Archive(tmp_path).find(FLOW) == stored()
