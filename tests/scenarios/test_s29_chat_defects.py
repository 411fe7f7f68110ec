"""S29: one defect each, one error each, even among other defects."""

from pathlib import Path

import pytest

from fixloop.chat.channels import log_findings
from fixloop.chat.events import Adopted
from fixloop.chat.validation import title_findings
from fixloop.chat.vocabulary import Finding, Level, errors_of
from tests.fixtures.chat_stage import ARCHITECT, ENGINEER, NAME, Stage, body, message, meta

FIRST = ("001-to-engineer.md", message())
SECOND = ("002-to-architect.md", message("engineer", "architect", "002"))
SWAPPED = body(ENGINEER).replace("## OBSERVATIONS", "## X").replace("## STATUS", "## OBSERVATIONS")
SWAPPED = SWAPPED.replace("## X", "## STATUS")


def errors(tmp_path: Path, *files: tuple[str, str], **contract: str) -> list[Finding]:
    """The errors of a hand-made chat."""
    owner = {"owner": "architect" if len(files) % 2 == 0 else "engineer"}
    stage = Stage(tmp_path).put("meta.yaml", meta(**(owner | contract)))
    for name, text in files:
        stage.put(name, text)
    return errors_of(stage.findings())


def test_a_handwritten_chat_without_a_defect_has_no_finding(tmp_path: Path) -> None:
    stage = Stage(tmp_path).put("meta.yaml", meta()).put(*FIRST).put(*SECOND)

    assert stage.findings() == []


@pytest.mark.proves("E9")
def test_a_message_of_another_chat_is_one_error(tmp_path: Path) -> None:
    (found,) = errors(
        tmp_path, FIRST, ("002-to-architect.md", message("engineer", "architect", "002", chat="0006-ui-x"))
    )

    assert (found.rule, found.field) == ("front-matter", "chat")
    assert f"chat is '0006-ui-x', but the directory is '{NAME}'" in found.message


@pytest.mark.proves("S29", "E34", "E35", "E36")
@pytest.mark.parametrize(
    ("second", "rule", "line", "words"),
    [
        ("A plain text.\n", "front-matter", 1, "no front matter"),
        (message("engineer", "architect", "002", purpose="absent"), "front-matter", 6, "purpose is missing"),
        (message("engineer", "architect", "003"), "front-matter", 5, "seq is '003'"),
        (
            message("engineer", "architect", "002", header="-- TO ENGINEER:"),
            "header",
            10,
            "'-- TO ENGINEER:'",
        ),
        (message("engineer", "architect", "002", ts="yesterday"), "timestamp", 6, "ts is 'yesterday'"),
        (message("user", "architect", "002"), "front-matter", 2, "from is 'user'"),
        (message("engineer", "architect", "002", body=SWAPPED), "sections", 16, "comes after OBSERVATIONS"),
    ],
)
def test_each_defect_of_a_message_is_one_error(
    tmp_path: Path, second: str, rule: str, line: int, words: str
) -> None:
    found = errors(tmp_path, FIRST, ("002-to-architect.md", second))

    assert [(one.rule, one.file, one.line) for one in found] == [(rule, f"{NAME}/002-to-architect.md", line)]
    assert words in found[0].message


@pytest.mark.proves("S29", "E18", "E30", "E6")
@pytest.mark.parametrize(
    ("files", "rule", "words"),
    [
        (
            [FIRST, SECOND, ("004-to-architect.md", message("engineer", "architect", "004"))],
            "sequence",
            "there is no message 003",
        ),
        ([FIRST, SECOND, ("4-to-engineer.md", message(seq="004"))], "file-name", "'4-to-engineer.md'"),
        (
            [("001-to-architect.md", message("engineer", "architect"))],
            "first-message",
            "has to be 001-to-engineer.md",
        ),
        ([FIRST, SECOND, ("002-to-engineer.md", message(seq="002"))], "sequence", "used twice"),
        ([("001-to-engineer.md", message("twin"))], "first-message", "not from the twin"),
    ],
)
def test_each_defect_of_the_order_is_one_error(
    tmp_path: Path, files: list[tuple[str, str]], rule: str, words: str
) -> None:
    last = "engineer" if "to-engineer" in sorted(name for name, _ in files)[-1] else "architect"
    owner = "architect" if rule == "file-name" else last

    found = errors(tmp_path, *files, owner=owner)

    assert [one.rule for one in found] == [rule]
    assert words in found[0].message


@pytest.mark.proves("S29", "E39", "E4", "U5")
@pytest.mark.parametrize(
    ("field", "value", "line"),
    [("acceptance", "absent", 1), ("area", "zz", 3), ("branch", "feature/x", 7), ("owner", "none", 5)],
)
def test_each_defect_of_a_contract_is_one_error(tmp_path: Path, field: str, value: str, line: int) -> None:
    found = errors(tmp_path, FIRST, SECOND, **{field: value})

    assert [(one.rule, one.field, one.line) for one in found] == [("contract", field, line)]


@pytest.mark.proves("S29", "E40", "U6")
@pytest.mark.parametrize(
    ("title", "count"),
    [
        ("0005 [dx] gh-sync", 0),
        ("0005 [dx] gh-sync\n", 0),
        ("5 [dx] gh-sync", 1),
        ("0005 [zz] gh-sync", 1),
        ("0005 dx gh-sync", 1),
        ("0005 [dx] GH sync", 1),
        ("٠٠٠٥ [dx] gh-sync", 1),
        ("", 1),
    ],
)
def test_a_title_is_id_area_and_slug(title: str, count: int) -> None:
    assert len(title_findings(title)) == count


BLOCK = """\
architect/to_user: TO USER:
architect/to_user: STATUS: the plan is ready
architect/to_user: ACTION NEEDED: look at it
architect/to_user: CONTEXT: theory_api/agents/chats/0005-dx-gh-sync/
"""


@pytest.mark.proves("S29", "E42", "E43", "K32")
@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("engineer/agent: I am done\n", 1),
        ("engineer/tool: $ ls\ntwin/agent: hello\n", 2),
        ("twin/to_user: TO USER:\n", 1),
        ("architect/agent: hello\n", 1),
        ("engineer/shout: hello\n", 1),
    ],
)
def test_a_line_that_an_agent_may_not_print_is_one_error(log: str, line: int) -> None:
    (found,) = log_findings(log, "run.log")

    assert (found.rule, found.file, found.line, found.level) == ("output", "run.log", line, Level.ERROR)


@pytest.mark.proves("S29", "E20", "E44")
def test_a_block_for_the_user_without_one_of_its_lines_is_one_error() -> None:
    for head in ("STATUS", "ACTION NEEDED", "CONTEXT"):
        log = "\n".join(line for line in BLOCK.splitlines() if f" {head}:" not in line)

        (found,) = log_findings(log, "run.log")

        assert (found.field, found.line) == (f"{head}:", 1)


@pytest.mark.proves("S29", "E43", "K32")
def test_blocks_tools_errors_and_the_runner_s_own_lines_pass() -> None:
    log = f"starting worker 3\n{BLOCK}engineer/tool: $ pytest -q\nengineer/error: no such file\n\n{BLOCK}"

    assert log_findings(log, "run.log") == []


@pytest.mark.proves("S29", "E45", "E46")
def test_old_messages_are_warnings_and_a_new_bad_one_is_an_error(tmp_path: Path) -> None:
    stage = Stage(tmp_path).put("meta.yaml", meta())
    stage.put("001-to-engineer.md", "Hello.\n").put("002-to-architect.md", "Hello yourself.\n")
    stage.let(Adopted())

    assert [one.level for one in stage.findings()] == [Level.WARNING, Level.WARNING]

    stage.put("003-to-engineer.md", "Neither have I.\n")

    assert [one.file for one in errors_of(stage.findings())] == [f"{NAME}/003-to-engineer.md"]


@pytest.mark.proves("E45", "E46", "U9")
def test_a_chat_older_than_the_format_is_recognised_as_legacy(tmp_path: Path) -> None:
    stage = Stage(tmp_path).put("meta.yaml", meta())
    stage.put("001-to-engineer.md", "Hello.\n").put("002-to-architect.md", "Hello yourself.\n")

    assert [(one.rule, one.level) for one in stage.findings()] == [("legacy", Level.WARNING)] * 2

    stage.put("003-to-engineer.md", message(seq="003")).put("004-to-architect.md", "Still here.\n")

    assert [one.file for one in errors_of(stage.findings())] == [f"{NAME}/004-to-architect.md"]


@pytest.mark.proves("E46")
def test_in_a_chat_that_fixloop_opened_no_message_is_old(tmp_path: Path) -> None:
    stage = Stage(tmp_path).open().put("001-to-engineer.md", "Hello.\n")

    assert [one.rule for one in errors_of(stage.findings())] == ["front-matter"]


@pytest.mark.proves("S29", "E47", "K22")
def test_closing_migrates_old_messages_around_their_own_bytes(tmp_path: Path) -> None:
    old = {
        "001-to-engineer.md": b"\xef\xbb\xbfHello\r\n",
        "002-to-architect.md": b"-- TO ARCHITECT:\n\nna\xefve",
    }
    stage = Stage(tmp_path).put("meta.yaml", meta())
    for name, content in old.items():
        stage.put(name, content)
    stage.let(Adopted())
    stage.post(ARCHITECT, ENGINEER)
    new = stage.files()["003-to-engineer.md"]

    stage.close(status="Deferred")

    files = stage.files()
    assert all(files[name].endswith(content) and files[name] != content for name, content in old.items())
    assert b"\n-- TO ENGINEER:\n" in files["001-to-engineer.md"]
    assert files["002-to-architect.md"].count(b"-- TO ARCHITECT:") == 1
    assert files["003-to-engineer.md"] == new
    assert b"- 001-to-engineer.md\n- 002-to-architect.md\n" in files["SUMMARY.md"]
    assert errors_of(stage.findings()) == []
