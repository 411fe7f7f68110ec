"""Damage to each file of a chat in twelve ways: it is named by `chat validate`, and all others are seen."""

import os
import random
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from fixloop.chat.conversation import JOURNAL
from fixloop.chat.directory import Plan, read_chat
from fixloop.chat.events import UserAsked
from fixloop.chat.rules import examine
from fixloop.chat.tree import CHATS
from tests.attacks.sizes import size
from tests.fixtures.chat_stage import ARCHITECT, ENGINEER, NAME, PLAN, Stage
from tests.fixtures.command_stage import said

Capsys = pytest.CaptureFixture[str]
OTHER_PLAN: Final = PLAN._replace(id="0006", slug="other")
OTHER: Final = "0006-dx-other"
FILES: Final = ("meta.yaml", "001-to-engineer.md", "002-to-architect.md", JOURNAL)
WAYS: Final[dict[str, Callable[[Path], object]]] = {
    "deleted": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "flipped": lambda path: path.write_bytes(flipped(path.read_bytes())),
    "no text": lambda path: path.write_bytes(b"\xff\xfe\x00garbled"),
    "nested lists": lambda path: path.write_bytes(b'{"did": ' + b"[" * 100_000),
    "nested maps": lambda path: path.write_bytes(b"---\n" + b"a: {" * 50_000 + b"\n---\n"),
    "a huge number": lambda path: path.write_bytes(b"id: " + b"9" * 5000 + b"\n"),
    "too large": lambda path: path.write_bytes(b"x" * 5_000_000),
    "a folder": lambda path: replaced(path, Path.mkdir),
    "a pipe": lambda path: replaced(path, os.mkfifo),
    "a link": lambda path: replaced(path, lambda path: path.symlink_to("/dev/zero")),
}
CASES: Final = random.Random(13).sample(sorted(product(FILES, WAYS)), size(8, len(FILES) * len(WAYS)))


def replaced(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 128]) + content[middle + 1 :]


def asked(folder: Path, plan: Plan) -> Stage:
    """A chat that waits for a person."""
    stage = Stage(folder).open(plan)
    stage.post(ARCHITECT, ENGINEER)
    stage.post(ENGINEER, ARCHITECT)
    stage.let(
        UserAsked(f"TO USER:\nSTATUS: stuck\nACTION NEEDED: choose\nCONTEXT: {CHATS}/{stage.path.name}")
    )
    return stage


@pytest.mark.proves("E41")
@pytest.mark.parametrize(("file", "way"), CASES)
def test_damage_to_one_chat_does_not_affect_the_others(
    file: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    damaged, other = asked(tmp_path / CHATS, PLAN), asked(tmp_path / CHATS, OTHER_PLAN)
    assert {file.name for file in damaged.path.iterdir()} >= set(FILES)

    WAYS[way](damaged.path / file)
    waiting = said(capsys, "inbox", "--json")
    checked = said(capsys, "chat", "validate", "--format", "json")
    read = said(capsys, "chat", "read", NAME)

    assert OTHER in [item["name"] for item in waiting.document["items"]]
    assert (waiting.code, examine(read_chat(other.path))) == (0, [])
    assert {"Traceback", "RecursionError"}.isdisjoint(f"{checked}{read}".split())
    assert checked.document
    if file != JOURNAL:
        assert (checked.code, NAME in checked.out) == (1, True)
