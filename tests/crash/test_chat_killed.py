"""
A process that dies while it writes to a chat, before each thing it does to the file system in turn.

The child counts what Python tells it of its own calls and ends itself without a word; nothing in fixloop takes part.
"""

import os
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fixloop.chat.directory import apply, read_chat
from fixloop.chat.events import Adopted, ChatClosed, ChatEvent, MessageWritten
from fixloop.chat.message import read_name
from fixloop.chat.rules import examine
from fixloop.chat.vocabulary import errors_of
from fixloop.errors import RefusedError
from tests.fixtures.chat_stage import ARCHITECT, ENGINEER, Stage, body, meta

DIED, DONE = 77, 0
CALLS = ("os.link", "os.rename", "os.remove", "os.chmod")
MANY = 60

pytestmark = [
    pytest.mark.slow,
    # The child does only what is tested, and takes no lock that a thread of pytest could hold.
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def dying_at(call: int, action: Callable[[], object]) -> int:
    """`action` in a child that dies before its `call`th change of a file; the child's exit code."""
    child = os.fork()
    if child == 0:
        try:
            _die_at(call)
            action()
        finally:
            os._exit(DONE)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _die_at(call: int) -> None:
    left = call

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        writes = (
            event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        )
        if event in CALLS or writes:
            left -= 1
            if left < 0:
                os._exit(DIED)

    sys.addaudithook(count)


def played(stage: Stage, event: ChatEvent) -> int:
    """`event` happens in a child that dies at every point in turn, each time once more; how often it died."""
    for call in range(MANY):
        if dying_at(call, lambda: apply(stage.path, event, stage.now + timedelta(minutes=1))) == DONE:
            return call
        seen = read_chat(stage.path)
        halves = [
            posted.file for posted in seen.messages if posted.message is None or posted.message.front is None
        ]
        assert [file for file in halves if not seen.journal.adopted] == []
    raise AssertionError(f"it still changes files after {MANY} calls")


@pytest.mark.proves("S30", "R8", "E32")
def test_a_post_killed_anywhere_and_sent_again_is_posted_once(tmp_path: Path) -> None:
    stage = Stage(tmp_path).open()
    stage.post(ARCHITECT, ENGINEER)
    stage.post(ENGINEER, ARCHITECT)
    event = MessageWritten(ARCHITECT, ENGINEER, "Work", body(ARCHITECT), seq=3)

    died = played(stage, event)

    assert died > 4
    assert sorted(name for name in stage.files() if read_name(name)) == [
        *("001-to-engineer.md", "002-to-architect.md", "003-to-engineer.md")
    ]
    assert stage.owner() == "engineer"
    assert stage.findings() == []
    assert not any(name.startswith(".writing") for name in stage.files())


@pytest.mark.proves("S30", "E29", "E31")
@pytest.mark.parametrize("call", range(12))
def test_a_post_killed_at_one_point_is_repaired_by_the_next_message(tmp_path: Path, call: int) -> None:
    stage = Stage(tmp_path).open()
    stage.post(ARCHITECT, ENGINEER)
    event = MessageWritten(ARCHITECT, ENGINEER, "Again", body(ARCHITECT))

    dying_at(call, lambda: apply(stage.path, event, stage.now))
    there = {name: content for name, content in stage.files().items() if read_name(name)}
    stage.post(ENGINEER, ARCHITECT)

    assert {name: stage.files()[name] for name in there} == there
    assert stage.findings() == []


@pytest.mark.proves("S30", "K22", "E47", "E48")
def test_a_close_killed_anywhere_and_repeated_closes_once(tmp_path: Path) -> None:
    stage = Stage(tmp_path).put("meta.yaml", meta())
    stage.put("001-to-engineer.md", "Hello.\n").put("002-to-architect.md", "Hello.\n")
    stage.let(Adopted())
    event = ChatClosed(ARCHITECT, "Deferred", "All done.", "Later.")

    died = played(stage, event)

    files = stage.files()
    assert died > 8
    assert errors_of(examine(read_chat(stage.path))) == []
    assert files["SUMMARY.md"].count(b"## Migrated messages") == 1
    assert files["001-to-engineer.md"].count(b"---\n") == 2
    assert files[".journal.jsonl"].count(b'"did": "closed"') == 1
    with pytest.raises(RefusedError, match="is closed"):
        stage.let(event)
