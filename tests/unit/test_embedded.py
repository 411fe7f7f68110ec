"""What the embedded Redis needs: a place, a server that can read the data, a socket of its owner."""

import os
from pathlib import Path

import pytest

from fixloop.errors import InfrastructureError, UsageError
from fixloop.servers.embedded import embedded_redis
from fixloop.servers.redis_binary import ServerVersion, read_written_by, server_binary
from fixloop.servers.redis_place import Place, runtime_directory


def leftovers(project: Path) -> list[str]:
    """The command lines of keepers and servers of `project` that still run."""
    socket = str(Place(project).recorded_socket() or "no socket yet")
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(project / ".fixloop") in line or socket in line:
            found.append(line)
    return found


def test_a_server_version_is_read_from_what_servers_and_files_say() -> None:
    assert ServerVersion.parse("Redis server v=6.2.14 sha=40305114:0") == ("redis", (6, 2, 14))
    assert ServerVersion.parse("Valkey server v=8.0.1 sha=0") == ("valkey", (8, 0, 1))
    assert ServerVersion.parse("redis 7.0.15\n") == ("redis", (7, 0, 15))
    assert ServerVersion.parse("nginx version: 1.2") is None


@pytest.mark.parametrize(
    ("server", "writer", "readable"),
    [
        ("redis 7.0.15", "redis 7.0.15", True),
        ("redis 7.2.0", "redis 7.0.15", True),
        ("redis 6.2.14", "redis 7.0.15", False),
        ("redis 10.0.0", "redis 9.9.9", True),
        ("valkey 8.0.0", "redis 7.2.4", True),
        ("valkey 8.0.0", "redis 7.4.0", False),
        ("redis 8.0.0", "valkey 8.0.0", False),
        ("valkey 9.1.2", "redis 6.2.14", True),
        ("valkey 9.1.2", "redis 8.2.0", False),
        ("redis 7.2.4", "valkey 7.2.4", True),
        ("redis 8.2.0", "valkey 9.1.2", False),
        ("valkey 8.1.0", "valkey 9.1.2", False),
    ],
)
def test_a_server_reads_what_an_older_one_of_its_line_wrote(server: str, writer: str, readable: bool) -> None:
    reader, written_by = ServerVersion.parse(server), ServerVersion.parse(writer)

    assert reader is not None
    assert written_by is not None
    assert reader.can_read(written_by) is readable


def test_a_runtime_directory_open_to_others_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))

    tmp_path.chmod(0o700)
    assert runtime_directory() == tmp_path / "fixloop"

    tmp_path.chmod(0o755)
    assert runtime_directory() == Path(f"/tmp/fixloop-{os.getuid()}")


def test_a_runtime_directory_too_long_for_a_socket_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))

    assert runtime_directory() == Path(f"/tmp/fixloop-{os.getuid()}")


def test_a_directory_that_cannot_be_written_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / ".fixloop").write_text("a file in the way")

    with pytest.raises(
        UsageError, match=r"cannot keep the embedded Redis in .*: .*; make the directory"
    ) as refused:
        embedded_redis(tmp_path).__enter__()

    assert "\n" not in str(refused.value)


def test_an_older_server_than_the_one_that_wrote_the_data_is_refused(tmp_path: Path) -> None:
    data = Place.prepare(tmp_path).data
    (data / "written-by").write_text("redis 99.1.0\n")

    with pytest.raises(UsageError, match=r"was written by redis 99\.1\.0, and .* cannot read it"):
        embedded_redis(tmp_path).__enter__()

    assert leftovers(tmp_path) == []
    assert (data / "written-by").read_text() == "redis 99.1.0\n"


@pytest.mark.parametrize("is_empty", [False, True], ids=["nothing", "what a loss of power left empty"])
def test_data_of_a_multi_part_log_is_taken_for_redis_7_where_its_writer_is_not_named(
    is_empty: bool, tmp_path: Path
) -> None:
    if is_empty:
        (tmp_path / "written-by").touch()
    assert read_written_by(tmp_path) is None

    (tmp_path / "appendonlydir").mkdir()

    assert read_written_by(tmp_path) == ("redis", (7, 0, 0))


def test_an_unreadable_version_is_refused_with_its_text(tmp_path: Path) -> None:
    (tmp_path / "written-by").write_text("soup")

    with pytest.raises(UsageError, match=r"written-by says 'soup'"):
        read_written_by(tmp_path)


def test_no_server_at_all_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with pytest.raises(InfrastructureError, match="apt install redis-server"):
        server_binary()
