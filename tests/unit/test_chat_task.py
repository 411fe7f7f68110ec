"""The validator as a task: the same findings as the command's, in the log."""

import logging
from pathlib import Path
from typing import Any

import pytest

from fixloop.chat.events import ChatRead
from tests.fixtures.chat_stage import ARCHITECT, NAME, Stage, body, message, meta
from workers.app import app
from workers.chats import examine, write


@pytest.mark.proves("E33", "R2")
def test_the_task_validates_what_the_command_validates(
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


def test_a_path_without_chats_is_reported_without_failing_the_task(tmp_path: Path) -> None:
    assert examine(path=str(tmp_path / "absent")).endswith("name a chat, or a directory with chats")


@pytest.mark.proves("R2", "R8", "E32")
def test_a_post_is_a_task_and_a_duplicate_message_posts_once(tmp_path: Path) -> None:
    stage = Stage(tmp_path).open()
    stage.let(ChatRead(ARCHITECT))
    said = {
        "path": str(stage.path),
        "by": "architect",
        "to": "engineer",
        "purpose": "Work",
        "body": body(ARCHITECT),
        "seq": 1,
    }

    answers = [write(**said) for _ in range(2)]

    assert answers == ["001-to-engineer.md"] * 2
    assert [name for name in stage.files() if name[0].isdigit()] == ["001-to-engineer.md"]
    assert {"fixloop.chat.post", "fixloop.chat.write"} <= set(app.tasks)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"by": "user"}, "by is 'user': input should be"),
        ({"seq": 7}, "would skip 001"),
        ({"path": "/absent"}, "/absent is not a directory"),
        ({"seq": "1"}, "seq is '1': input should be a valid integer"),
    ],
)
def test_an_impossible_post_is_reported_without_failing_the_task(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, other: dict[str, Any], words: str
) -> None:
    stage = Stage(tmp_path).open()
    stage.let(ChatRead(ARCHITECT))
    said = {"path": str(stage.path), "by": "architect", "to": "engineer", "purpose": "Work", "seq": 1}

    answer = write(**said | {"body": body(ARCHITECT)} | other)

    assert words in answer
    assert answer in caplog.text
    assert not [name for name in stage.files() if name[0].isdigit()]
