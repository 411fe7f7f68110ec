"""The sessions that the documentation shows, as a user types them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.test_documentation import ROOT

pytestmark = pytest.mark.slow


@pytest.mark.proves("E5", "E18")
def test_the_session_with_a_chat_works_in_an_empty_project(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "chat.md").read_text().split("## From the first file to the last")[1]
    block = re.search(r"```console\n(.*?)```", page, re.DOTALL)
    assert block is not None
    for typed, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block[1], re.MULTILINE):
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            typed, shell=True, cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True
        )

        assert done.returncode == 0, f"{typed}: {done.stderr}"
        assert done.stdout.endswith(expected.replace("…\n", "")), typed
