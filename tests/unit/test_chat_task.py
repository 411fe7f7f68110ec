"""The validator as a task: the same findings as the command's, in the log."""

import logging
from pathlib import Path

import pytest

from tests.unit.chat_stage import NAME, Stage, message, meta
from workers.app import app
from workers.chats import examine


@pytest.mark.proves("E33", "R2")
def test_the_task_looks_at_what_the_command_looks_at(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Stage(tmp_path).put("meta.yaml", meta(area="zz")).put("001-to-engineer.md", message(ts="soon"))

    with caplog.at_level(logging.WARNING, "fixloop.chat"):
        answer = examine(path=str(tmp_path), title="0005 [dx] gh-sync")

    assert answer == "1 chat, 1 message: 2 errors, 0 warnings"
    assert [record.message.partition(": ")[0] for record in caplog.records] == [
        f"{tmp_path}/{NAME}/001-to-engineer.md:6",
        f"{tmp_path}/{NAME}/meta.yaml:3",
    ]
    assert {"fixloop.chat.validate", "fixloop.chat.examine"} <= set(app.tasks)


def test_a_path_that_is_no_tree_of_chats_is_said_and_no_failure_of_the_task(tmp_path: Path) -> None:
    assert examine(path=str(tmp_path / "absent")).endswith("name a chat, or a directory with chats")
