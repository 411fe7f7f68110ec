"""A reader of named files sees each of them whole at every moment."""

import subprocess
import sys
from pathlib import Path

import pytest

from fixloop.statefiles.named_files import NamedFiles
from tests.unit.test_named_files import write_version

pytestmark = pytest.mark.slow
READER = Path(__file__).with_name("file_reader.py")


@pytest.mark.proves("K23", "D15", "R13")
def test_a_polling_reader_never_sees_half_a_file_or_a_handoff_twice(tmp_path: Path) -> None:
    files = NamedFiles(tmp_path, "w")
    write_version(files, 1)
    with subprocess.Popen(
        [sys.executable, str(READER), str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "reading\n"

        for version in range(2, 60):
            write_version(files, version)

        (tmp_path / "stop").touch()
        looks, _ = reader.communicate(timeout=60)
    assert reader.returncode == 0, looks
    assert int(looks) > 10
