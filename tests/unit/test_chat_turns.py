"""Roles as commands: their prompts, and what their answers mean."""

from pathlib import Path

import pytest

from fixloop.chat.directory import read_chat
from fixloop.chat.events import ChatClosed, ChatRead, MessageWritten, UserAsked
from fixloop.chat.turns import prompt, understood
from fixloop.errors import UsageError
from tests.fixtures.chat_stage import ARCHITECT, ENGINEER, NAME, TWIN, Stage, body


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path).open()
    stage.post(ARCHITECT, ENGINEER, "Begin")
    return stage


@pytest.mark.proves("E22", "E26")
def test_a_prompt_has_contract_latest_message_and_rules(stage: Stage) -> None:
    text = prompt(read_chat(stage.path), ENGINEER, "the body lacks PLAN")

    assert text.startswith(f"You are the engineer of chat {NAME}. Write message 002-to-architect.md.\n")
    assert "Your last answer was refused: the body lacks PLAN\n" in text
    assert 'acceptance:\n  - "python -m pytest"\n' in text
    assert "-- TO ENGINEER:" in text
    assert "STATUS, OBSERVATIONS, ANALYSIS, GATES, PLAN, CHANGESETS, DOCS, SMOKE, RISKS, ASKS" in text


def test_an_answer_is_a_message_for_the_next_number(stage: Stage) -> None:
    chat = read_chat(stage.path)

    plain = understood(body(ENGINEER), ENGINEER, chat)
    named = understood(f"---\npurpose: 'Say: all'\nto: twin\n---\n{body(ENGINEER)}", ENGINEER, chat)

    assert plain == MessageWritten(ENGINEER, ARCHITECT, "status of the engineer", body(ENGINEER), seq=2)
    assert isinstance(named, MessageWritten)
    assert (named.purpose, named.to, named.seq) == ("Say: all", TWIN, 2)


def test_an_answer_may_close_the_chat(stage: Stage) -> None:
    answer = "---\nclose: Deferred\n---\nAll done.\n\n## Decision\n\nLater.\n"

    assert understood(answer, ARCHITECT, read_chat(stage.path)) == ChatClosed(
        ARCHITECT, "Deferred", "All done.", "Later."
    )


@pytest.mark.proves("E20", "E25")
def test_only_the_architect_may_ask_a_person(stage: Stage) -> None:
    chat, text = (
        read_chat(stage.path),
        "TO USER:\nSTATUS: stuck\nACTION NEEDED: help\nCONTEXT: chats/0005-dx-gh-sync/",
    )

    assert understood(f"\n{text}\n", ARCHITECT, chat) == UserAsked(text)
    with pytest.raises(UsageError, match="engineer prints nothing"):
        understood(text, ENGINEER, chat)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("---\nto: user\n---\nx", "to is 'user'"),
        ("---\nseq: 3\n---\nx", "'seq' is no text that an answer may have"),
        ("---\nto: [twin]\n---\nx", "'to' is no text"),
        ("---\nto: twin\n", "does not end"),
        ("---\nto: a: b\n---\n", "mapping values are not allowed here (line 2)"),
        ("---\nclose: Completed\n---\nDone.\n", "a line `# DECISION`"),
    ],
)
def test_an_answer_with_an_unknown_action_is_refused(stage: Stage, answer: str, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        understood(answer, ARCHITECT, read_chat(stage.path))

    assert words in str(refused.value)


def test_an_empty_answer_is_refused_as_a_message_is(stage: Stage) -> None:
    stage.let(ChatRead(ENGINEER))
    turn = understood("\n", ENGINEER, read_chat(stage.path))

    assert isinstance(turn, MessageWritten)
    with pytest.raises(UsageError, match="purpose is ''"):
        stage.let(turn)
