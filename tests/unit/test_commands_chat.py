"""`fixloop chat`: its usage, output and exit codes."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fixloop.chat.vocabulary import Role
from tests.fixtures.chat_stage import ARCHITECT, ENGINEER, NAME, body, message, meta
from tests.fixtures.command_stage import Said, said

pytestmark = pytest.mark.heavy

CHATS = "theory_api/agents/chats"
NEW = (
    *("chat", "new", "dx", "gh-sync", "--id", "0005", "--title", "Synchronise", "--scope", "agents"),
    *("--acceptance", "make test", "--acceptance", "make lint", "--output", "a command"),
)


class Shell:
    """Runs commands in an empty directory."""

    def __init__(self, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def type(self, *words: str, stdin: str | bytes = "") -> Said:
        content = stdin.encode() if isinstance(stdin, str) else stdin
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        return said(self._capsys, *words)

    def post(self, role: Role, *words: str, number: str = "5") -> Said:
        self.type("chat", "read", number, "--as", role)
        return self.type("chat", "post", number, "--as", role, "--purpose", "Work", *words, stdin=body(role))


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Shell:
    monkeypatch.chdir(tmp_path)
    return Shell(capsys, monkeypatch)


@pytest.mark.proves("S28", "E2", "E33", "E48")
def test_a_chat_from_new_to_close(shell: Shell) -> None:
    assert shell.type(*NEW).out == f"{CHATS}/{NAME}\n"
    assert shell.post(ARCHITECT).out == f"{CHATS}/{NAME}/001-to-engineer.md\n"
    posted = shell.post(ENGINEER, "--result", "1=pass", "--result", "2=fail: one line", "--json")
    assert posted.document == {"file": f"{CHATS}/{NAME}/002-to-architect.md", "seq": 2, "owner": "architect"}
    shown = shell.type("chat", "read", NAME, "--json").document
    assert (shown["owner"], shown["next_seq"], [row["from"] for row in shown["messages"]]) == (
        *("architect", 3),
        ["architect", "engineer"],
    )
    Path("end.md").write_text("All done.\n")

    closed = shell.type(
        "chat", "close", "0005", "--as", "architect", "--summary", "end.md", "--decision", "end.md"
    )

    assert (closed.code, closed.out) == (0, f"{CHATS}/{NAME}\n")
    assert shell.type("chat", "validate").out == "1 chat, 2 messages: 0 errors, 0 warnings\n"
    late = shell.post(ENGINEER)
    assert (late.code, late.out) == (2, "")
    assert "is closed; open a new chat" in late.err


@pytest.mark.proves("E22")
def test_read_shows_contract_and_latest_message_or_all(shell: Shell) -> None:
    shell.type(*NEW)
    shell.post(ARCHITECT)
    shell.post(ENGINEER)

    latest, everything = shell.type("chat", "read", "5").out, shell.type("chat", "read", "5", "--all").out

    assert 'title: "Synchronise"' in latest
    assert "-- TO ARCHITECT:" in latest
    assert "-- TO ENGINEER:" not in latest
    assert "-- TO ENGINEER:" in everything


@pytest.mark.proves("E38", "E39")
def test_validate_prints_every_problem_and_exits_one(shell: Shell) -> None:
    chat = Path(CHATS) / NAME
    chat.mkdir(parents=True)
    (chat / "meta.yaml").write_text(meta(area="zz", owner="engineer"))
    (chat / "001-to-engineer.md").write_text(message(ts="yesterday"))

    text = shell.type("chat", "validate", CHATS, "--title", "5 [dx] gh-sync")

    assert text.code == 1
    assert [line.partition(": ")[0] for line in text.out.splitlines()] == [
        "pull-request",
        f"{CHATS}/{NAME}/001-to-engineer.md:6",
        f"{CHATS}/{NAME}/meta.yaml:3",
        "1 chat, 1 message",
    ]


@pytest.mark.proves("E38")
def test_validate_prints_json_and_sarif(shell: Shell) -> None:
    found = shell.type("chat", "validate", "--title", "gh-sync", "--format", "json")
    sarif = shell.type("chat", "validate", "--title", "gh-sync", "--format", "sarif").document

    assert (found.code, found.document["findings"][0]["rule"]) == (1, "pull-request")
    assert [result["level"] for result in sarif["runs"][0]["results"]] == ["error"]


@pytest.mark.proves("E42")
def test_validate_checks_logs(shell: Shell) -> None:
    Path("run.log").write_text("engineer/agent: done\nengineer/tool: $ ls\n")

    found = shell.type("chat", "validate", "--log", "run.log")

    assert (found.code, found.out.splitlines()[0].partition(": ")[0]) == (1, "run.log:1")
    assert shell.type("chat", "validate", "--log", "absent.log").code == 1


@pytest.mark.proves("E20")
def test_only_the_architect_may_address_the_user(shell: Shell) -> None:
    shell.type(*NEW)
    words = ("chat", "to-user", "5", "--status", "all green", "--action", "merge")

    block = shell.type(*words)

    assert block.out == (f"TO USER:\nSTATUS: all green\nACTION NEEDED: merge\nCONTEXT: {CHATS}/{NAME}/\n")
    assert shell.type(*words, "--as", "engineer").code == 2


@pytest.mark.proves("E20", "K27")
def test_a_chat_s_question_to_a_person_is_in_the_inbox_until_the_next_message(shell: Shell) -> None:
    shell.type(*NEW)
    for _ in range(2):
        shell.type("chat", "to-user", "5", "--status", "all green", "--action", "merge")

    (item,) = shell.type("inbox", "--json").document["items"]
    text = shell.type("inbox").out
    shell.post(ARCHITECT)
    after = shell.type("inbox", "--json").document["items"]

    assert (item["profile"], item["name"], item["waits_for"], item["issue"]) == ("chat", NAME, "user", None)
    assert item["detail"] == f"STATUS: all green; ACTION NEEDED: merge; CONTEXT: {CHATS}/{NAME}/"
    assert item["commands"] == [f"fixloop chat read {NAME}"]
    assert f"chat {NAME} waits for you since" in text
    assert after == []


@pytest.mark.proves("E45")
def test_adopt_marks_old_messages(shell: Shell) -> None:
    shell.type(*NEW)
    (Path(CHATS) / NAME / "001-to-engineer.md").write_text("Hello.\n")

    assert shell.type("chat", "validate").code == 1
    adopted = shell.type("chat", "adopt", "5")
    assert adopted.err == f"fixloop: adopted in {CHATS}/{NAME} as older than the protocol: 1\n"
    assert shell.type("chat", "validate").code == 0


@pytest.mark.proves("E48")
def test_closing_a_chat_with_errors_says_so(shell: Shell) -> None:
    shell.type(*NEW)
    (Path(CHATS) / NAME / "4-to-engineer.md").write_text("Hello.\n")
    Path("end.md").write_text("Later.\n")
    words = ("--status", "Deferred", "--summary", "end.md", "--decision", "end.md")

    closed = shell.type("chat", "close", "5", "--as", "twin", *words)

    assert closed.code == 0
    assert closed.err == (
        f"fixloop: it is closed with errors (1); `fixloop chat validate {CHATS}/{NAME}` lists them\n"
    )


@pytest.mark.proves("E14")
def test_the_twin_s_own_contract_is_taken_from_stdin(shell: Shell) -> None:
    made = shell.type("chat", "new", "--meta", "-", stdin=meta())
    again = shell.type("chat", "new", "--meta", "-", stdin=meta())

    assert made.out == f"{CHATS}/{NAME}\n"
    assert (again.code, again.err) == (2, f"fixloop: number 0005 is taken by {NAME}\n")


@pytest.mark.proves("E19")
def test_the_branch_is_that_of_the_checkout_around_the_chat(shell: Shell) -> None:
    subprocess.run(["git", "init", "-q", "-b", "main"], check=True)
    shell.type(*NEW)

    refused = shell.post(ARCHITECT)

    assert refused.code == 2
    assert "the branch is 'main', but meta.yaml names 'feat/dx-gh-sync-0005'" in refused.err
    subprocess.run(["git", "symbolic-ref", "HEAD", "refs/heads/feat/dx-gh-sync-0005"], check=True)
    assert shell.post(ARCHITECT).code == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("read", "7"), "there is no chat 7"),
        (("read", "absent/0007-dx-x"), "is not a directory"),
        (("post", "5", "--as", "user", "--purpose", "x"), "'user' is not one of"),
        (
            ("post", "5", "--as", "architect", "--purpose", "x", "--file", "absent"),
            "absent: error: it cannot be read",
        ),
        (("post", "5", "--as", "architect", "--purpose", "x", "--result", "3=pass"), "N is 1 to 2"),
        (("post", "5", "--as", "architect", "--purpose", "x", "--result", "1=maybe"), "N=pass or N=fail"),
        (("validate", "absent"), "is no directory"),
        (("validate", "--format", "xml"), "'xml' is not one of"),
        (("to-user", "5", "--status", "a\nb", "--action", "c"), "one line of text"),
        (("new", "dx", "Big Words", "--title", "abc"), "slug is 'Big Words'"),
    ],
)
def test_wrong_usage_of_chat_is_one_sentence_and_exit_code_2(
    shell: Shell, words: tuple[str, ...], told: str
) -> None:
    shell.type(*NEW)

    found = shell.type("chat", *words)

    assert found.code == 2
    assert told in found.err
    assert "Traceback" not in found.err


def test_a_body_that_is_not_text_is_refused(shell: Shell) -> None:
    shell.type(*NEW)
    shell.type("chat", "read", "5", "--as", "architect")

    found = shell.type("chat", "post", "5", "--as", "architect", "--purpose", "x", stdin=b"\xff\xfe")

    assert (found.code, found.err) == (2, "fixloop: stdin is not UTF-8: byte 0xff at 0\n")


def test_chats_of_the_project_are_found_from_below_it(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.type(*NEW)
    below = Path(CHATS).parent
    monkeypatch.chdir(below)

    assert json.loads(shell.type("chat", "read", "5", "--json").out)["chat"] == NAME
    assert shell.type("chat", "validate").code == 0
