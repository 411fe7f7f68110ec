"""S29 by `fixloop chat validate` as a user runs it, on a tree of chats that each have one defect."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.chat_defects import ERRORS, LOG, TITLE, WARNED, make_chats

pytestmark = pytest.mark.slow


@pytest.mark.proves("S29", "E33", "E38", "E40")
def test_s29_each_defect_of_a_tree_of_chats_is_one_error_and_nothing_else_is(tmp_path: Path) -> None:
    make_chats(tmp_path / "chats")
    (tmp_path / "run.log").write_text(LOG)
    words = ["chat", "validate", "chats", "--title", TITLE, "--log", "run.log", "--format", "json"]

    ended = subprocess.run(
        [sys.executable, "-m", "fixloop.cli", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (1, "")
    findings = json.loads(ended.stdout)["findings"]
    found = Counter((each["level"], _place(each["file"], each["line"])) for each in findings)
    wrong = [*ERRORS, "pull-request", "run.log:7", "run.log:8"]
    assert found == {("error", place): 1 for place in wrong} | {("warning", place): 2 for place in WARNED}


def _place(file: str, line: int | None) -> str:
    """The folder of a chat, else file and line."""
    if file.startswith("chats/"):
        return file.split("/")[1]
    return f"{file}:{line}" if line else file
