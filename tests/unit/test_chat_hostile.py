"""Chats written by others, in directories with other files: findings, never a traceback and never a wait."""

import os
from pathlib import Path
from typing import Final

import pytest

from fixloop.chat.conversation import JOURNAL, entry
from fixloop.chat.events import Adopted
from fixloop.chat.tree import MAX_BYTES, read_source
from fixloop.chat.validation import examine_all
from fixloop.chat.vocabulary import Level, errors_of
from fixloop.errors import UsageError
from tests.fixtures.chat_stage import ARCHITECT, ENGINEER, NAME, START, Stage, message, meta

SECOND: Final = "002-to-architect.md"
ANSWER: Final = message("engineer", "architect", "002")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A valid chat with its first message; each test makes the second."""
    return Stage(tmp_path / "chats").put("meta.yaml", meta()).put("001-to-engineer.md", message())


@pytest.mark.proves("E41")
@pytest.mark.parametrize(
    "content",
    [
        ANSWER.encode(),
        ANSWER.replace("\n", "\r\n").encode(),
        ANSWER.replace("\n", "\r").encode(),
        b"\xef\xbb\xbf" + ANSWER.encode(),
        b"\n\n" + ANSWER.encode(),
        ANSWER.replace("\n---\n", "\n...\n", 1).encode(),
        ANSWER.replace("seq: 002", "seq: '002'")
        .replace("purpose: Work", "purpose: >-\n  two\n  lines")
        .encode(),
        ANSWER.replace("-- TO ARCHITECT:\n", "\n\n-- TO ARCHITECT:   \n").encode(),
        ANSWER.replace("## STATUS", "**STATUS**:")
        .replace("## PLAN", "PLAN: a")
        .replace("## ASKS", "### Asks")
        .encode(),
        ANSWER.replace("## PLAN", "```\nRISKS\n~~~\nASKS\n```\n## PLAN").encode(),
    ],
)
def test_every_common_way_to_write_a_chat_file_is_understood(stage: Stage, content: bytes) -> None:
    assert stage.put(SECOND, content).findings() == []


@pytest.mark.proves("E34", "E38")
@pytest.mark.parametrize(
    ("content", "rule", "line", "words"),
    [
        (ANSWER.encode("utf-16"), "encoding", 1, "UTF-16"),
        (ANSWER.replace("Work", "na\u00efve").encode("latin-1"), "encoding", 7, "byte 0xef is not UTF-8"),
        (ANSWER.encode() + b"\0", "encoding", 51, "NUL"),
        (b"", "front-matter", 1, "no front matter"),
        (b"---\n", "front-matter", 1, "does not end"),
        (b"---\n" + b"from: engineer\n" * 200, "front-matter", 1, "does not end"),
        (ANSWER.replace("to: ", "to ", 1).encode(), "front-matter", 4, "cannot be read"),
        (ANSWER.replace("seq:", "from: twin\nseq:").encode(), "front-matter", 5, "'from' stands here twice"),
        (ANSWER.replace("Work", "It: works").encode(), "front-matter", 7, "mapping values are not allowed"),
        (ANSWER.replace("purpose: Work", "purpose:").encode(), "front-matter", 7, "purpose is empty"),
        (ANSWER.replace("purpose:", "subject: x\npurpose:").encode(), "front-matter", 7, "subject is no key"),
        (
            ANSWER.replace(NAME, "0006-dx-gh-sync").encode(),
            "front-matter",
            4,
            "the directory is '0005-dx-gh-sync'",
        ),
        (ANSWER.replace("to: architect", "to: engineer").encode(), "front-matter", 2, "from and to are both"),
        (ANSWER.replace("seq: 002", "seq: two").encode(), "front-matter", 5, "seq is 'two'"),
        (ANSWER.replace("seq: 002", "seq: [2]").encode(), "front-matter", 5, "seq is \"['2']\""),
        (ANSWER.replace("-- TO ARCHITECT:", "").encode(), "header", 12, "the header line is missing"),
        (ANSWER.replace("-- TO ARCHITECT:", "-- to architect:").encode(), "header", 10, "'-- to architect:'"),
        (b"x" * (MAX_BYTES + 1), "file", 0, "larger than 1024 KiB"),
    ],
)
def test_every_defect_is_named_with_its_line(
    stage: Stage, content: bytes, rule: str, line: int, words: str
) -> None:
    found = errors_of(stage.put(SECOND, content).findings())

    assert (found[0].rule, found[0].line, found[0].file) == (rule, line, f"{NAME}/{SECOND}")
    assert words in found[0].message


def test_links_pipes_and_directories_are_findings_and_nothing_is_read_through_them(stage: Stage) -> None:
    secret = stage.parent / "secret.md"
    secret.write_text(ANSWER)
    (stage.path / SECOND).symlink_to(secret)
    os.mkfifo(stage.path / "003-to-engineer.md")
    (stage.path / "004-to-architect.md").mkdir()
    (stage.path / "SUMMARY.md").symlink_to(stage.path)

    found = {one.file.partition("/")[2]: one.message for one in errors_of(stage.findings())}

    assert found == {
        SECOND: "it is a symbolic link, not a file of its own",
        "003-to-engineer.md": "it is a pipe, not a file of its own",
        "004-to-architect.md": "it is a directory, not a file of its own",
        "SUMMARY.md": "it is a symbolic link, not a file of its own",
    }


def test_a_name_too_long_for_a_file_is_a_finding_and_no_error(tmp_path: Path) -> None:
    source = read_source(tmp_path / ("x" * 300), "x")

    assert [one.message for one in source.findings] == ["it cannot be read: file name too long"]


@pytest.mark.proves("E38")
def test_every_problem_is_reported_not_only_the_first(stage: Stage) -> None:
    stage.put("meta.yaml", meta(area="zz", title="x", outputs="[]", surplus="1", state="done"))
    stage.put("002-to-architect.md", message("engineer", "architect", "7", ts="soon", purpose="absent"))
    stage.put("005-to-engineer.md", message("engineer", "engineer", "005", header="-- TO TWIN:"))

    found = errors_of(stage.findings())

    assert {one.field for one in found if one.rule == "contract"} == {
        "area",
        "title",
        "outputs",
        "surplus",
        "state",
    }
    assert [one.rule for one in found if one.file.endswith(SECOND)] == [
        "front-matter",
        "front-matter",
        "timestamp",
    ]
    assert {one.rule for one in found if one.file.endswith("005-to-engineer.md")} == {
        *("front-matter", "header", "sequence")
    }


@pytest.mark.proves("E29")
def test_a_posted_message_that_was_edited_or_removed_is_found(tmp_path: Path) -> None:
    stage = Stage(tmp_path).open()
    stage.post(ARCHITECT, ENGINEER)
    path = stage.path / "001-to-engineer.md"
    whole = path.read_bytes()

    path.write_bytes(whole.replace(b"\n", b"\r\n"))
    assert stage.findings() == []
    path.write_bytes(whole.replace(b"plan of", b"scheme of"))
    edited = [(one.rule, one.message) for one in stage.findings()]
    path.unlink()
    gone = [(one.rule, one.message) for one in stage.findings()]

    assert edited == [("edited", "it was edited after it was posted; write a new message")]
    assert gone == [("edited", "it was posted, and is gone")]


@pytest.mark.proves("E45")
def test_an_adopted_message_that_was_edited_is_an_error(stage: Stage) -> None:
    stage.put("001-to-engineer.md", "Hello.\n").let(Adopted())
    stage.put("001-to-engineer.md", "Hallo.\n")

    assert [(one.rule, one.level) for one in stage.findings()] == [("edited", Level.ERROR)]


@pytest.mark.proves("U9")
def test_old_messages_can_be_listed_by_number_instead(stage: Stage) -> None:
    stage.put(JOURNAL, entry("opened", START)).put("001-to-engineer.md", "Hello.\n").put(SECOND, "Hello.\n")

    assert [one.level for one in stage.findings(legacy_until=1)] == [Level.WARNING, Level.ERROR]


def test_other_files_are_ignored_and_other_markdown_is_a_warning(stage: Stage) -> None:
    stage.put("picture.png", b"\x89PNG").put("NOTES.md", "mine").put(".hidden.md", "mine")

    assert [(one.file, one.level) for one in stage.findings()] == [
        (f"{NAME}/NOTES.md", Level.WARNING),
        (f"{NAME}/meta.yaml", Level.ERROR),
    ]


@pytest.mark.proves("E2", "E41", "E33")
def test_each_chat_of_a_tree_is_checked_once_and_other_directories_are_not(stage: Stage) -> None:
    stage.put("meta.yaml", meta(owner="engineer"))
    other = Stage(stage.parent / "deep" / "er")
    other.path = other.parent / "not-a-name"
    other.put("001-to-engineer.md", message())
    (stage.parent / "playbook").mkdir()
    (stage.parent / "playbook" / "meta.yaml").write_text("galaxy: true\n")
    (stage.parent / "around").symlink_to(stage.parent)

    examined = examine_all([stage.parent, stage.path])

    assert (examined.chats, examined.messages) == (2, 2)
    assert {one.rule for one in examined.findings if "not-a-name" in one.file} == {
        "directory",
        "contract",
        "front-matter",
    }


def test_a_link_to_a_chat_is_a_finding_and_not_followed(stage: Stage) -> None:
    (stage.parent / "0006-dx-other").symlink_to(stage.path)
    stage.put("meta.yaml", meta(owner="engineer"))

    examined = examine_all([stage.parent])

    assert examined.chats == 1
    assert [(one.rule, Path(one.file).name) for one in examined.findings] == [("file", "0006-dx-other")]


def test_a_tree_without_a_chat_has_not_passed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no chat in"):
        examine_all([tmp_path])
    with pytest.raises(UsageError, match="no directory"):
        examine_all([tmp_path / "absent"])


def test_a_chat_without_files_or_with_a_broken_contract_is_reported(tmp_path: Path) -> None:
    empty = Stage(tmp_path / "a")
    empty.path.mkdir(parents=True)
    broken = Stage(tmp_path / "b").put("meta.yaml", "id: [\n")
    foreign = Stage(tmp_path / "c").put("meta.yaml", b"\xff\xfe\x00")

    assert [one.message for one in empty.findings()] == [
        "there is no meta.yaml; the twin writes it before any message"
    ]
    assert [(one.rule, one.line) for one in broken.findings()] == [("contract", 2)]
    assert [one.rule for one in foreign.findings()] == ["encoding"]


@pytest.mark.proves("E31")
def test_an_owner_other_than_the_last_message_s_recipient_is_an_error(stage: Stage) -> None:
    (found,) = stage.put("meta.yaml", meta(owner="twin")).findings()

    assert (found.rule, found.line, found.value) == ("owner", 5, "twin")


@pytest.mark.proves("E48")
def test_a_closed_chat_without_its_documents_is_an_error(stage: Stage) -> None:
    stage.put("meta.yaml", meta(owner="engineer", state="closed", closed="'2025-09-07T00:00:00Z'"))

    assert [one.message for one in errors_of(stage.findings())] == [
        "the chat is closed without SUMMARY.md",
        "the chat is closed without DECISION.md",
    ]
