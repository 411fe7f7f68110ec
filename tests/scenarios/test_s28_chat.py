"""S28: a chat from its contract to its decision, on a virtual clock, as the seed describes it."""

from pathlib import Path

import pytest

from fixloop.chat.directory import read_chat
from fixloop.chat.events import ChatRead, MessageWritten
from fixloop.chat.message import read_name
from fixloop.errors import RefusedError
from tests.fixtures.chat_stage import ARCHITECT, ENGINEER, NAME, START, TWIN, Stage, body

PROVEN = body(ENGINEER, results=["[pass] python -m pytest", "[fail] ruff check: one line too long"])


def messages(stage: Stage) -> dict[str, bytes]:
    return {name: content for name, content in stage.files().items() if read_name(name)}


def play(stage: Stage) -> list[tuple[str, str]]:
    """Ten messages in turn; each file with the owner after it."""
    told = []
    for number in range(1, 11):
        by, to = (ARCHITECT, ENGINEER) if number % 2 else (ENGINEER, ARCHITECT)
        text = PROVEN if by is ENGINEER else body(ARCHITECT)
        told.append((stage.post(by, to, f"Step {number}", text).file, stage.owner()))
    return told


@pytest.mark.proves("S28", "E5", "E27", "E31")
def test_twin_architect_and_engineer_work_through_a_chat_in_turn(tmp_path: Path) -> None:
    stage = Stage(tmp_path).open()

    told = play(stage)

    assert stage.path.name == NAME
    assert told[:3] == [
        ("001-to-engineer.md", "engineer"),
        ("002-to-architect.md", "architect"),
        ("003-to-engineer.md", "engineer"),
    ]
    assert told[7:] == [
        ("008-to-architect.md", "architect"),
        ("009-to-engineer.md", "engineer"),
        ("010-to-architect.md", "architect"),
    ]


@pytest.mark.proves("S28", "K18", "E10")
def test_numbers_eight_to_ten_are_read_as_decimal(tmp_path: Path) -> None:
    stage = Stage(tmp_path).open()

    play(stage)

    fronts = [posted.message and posted.message.front for posted in read_chat(stage.path).messages]
    assert [front and front.seq for front in fronts] == list(range(1, 11))
    assert b"\nseq: 010\n" in stage.files()["010-to-architect.md"]


@pytest.mark.proves("S28", "E29", "E48", "G12")
def test_closing_adds_two_documents_and_touches_no_message(tmp_path: Path) -> None:
    stage = Stage(tmp_path).open()
    play(stage)
    before = messages(stage)

    stage.close()

    meta = read_chat(stage.path).meta
    assert messages(stage) == before
    assert {"SUMMARY.md", "DECISION.md"} <= set(stage.files())
    assert meta is not None
    assert (meta.state, meta.owner) == ("closed", "architect")
    assert stage.findings() == []


@pytest.mark.proves("S28", "E48")
def test_nothing_is_posted_after_the_end(tmp_path: Path) -> None:
    stage = Stage(tmp_path).open()
    play(stage)
    stage.close()
    before = stage.files()

    with pytest.raises(RefusedError, match="is closed"):
        stage.let(MessageWritten(ENGINEER, ARCHITECT, "One more", PROVEN))
    with pytest.raises(RefusedError, match="is closed"):
        stage.close(TWIN)

    assert stage.files() == before


@pytest.mark.proves("S28", "E11", "K14")
def test_every_time_is_the_clock_s_in_iso_8601_utc(tmp_path: Path) -> None:
    stage = Stage(tmp_path).open()

    stage.let(ChatRead(ARCHITECT))
    stage.let(MessageWritten(ARCHITECT, ENGINEER, "Work", body(ARCHITECT)))

    assert START.isoformat() == "2025-09-06T00:00:00+00:00"
    assert b'\nts: "2025-09-06T00:02:00Z"\n' in stage.files()["001-to-engineer.md"]
