"""Processes that write one file of the archive at once."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from fixloop.store.archive.files import Archive

pytestmark = pytest.mark.slow

WRITER: Final = """
import sys; from pathlib import Path; from datetime import datetime, UTC
from fixloop.store.archive.files import Archive; from fixloop.store.records import Stored
archive = Archive(Path(sys.argv[1]), host="h")
for n in range(1, 41):
    flow = f"0a1b2c3d-{n}-{sys.argv[2]}"
    archive.append(Stored(flow, 1, "h", b"s" * 3000, (b"e" * 9000,), {}, {}), datetime(2026, 3, 1, tzinfo=UTC))
"""


@pytest.mark.proves("G26")
def test_processes_of_one_machine_write_the_same_file_at_once(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(number)]) for number in (1, 2, 3)
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]

    archive = Archive(tmp_path)

    assert len(list(tmp_path.glob("*/*"))) == 1
    assert list(archive.damaged()) == []
    found = list(archive.workflows())
    assert len({each.workflow for each in found}) == len(found) == 120
    assert all(archive.load(each).entries == (b"e" * 9000,) for each in found)
