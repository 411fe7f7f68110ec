"""`fixloop chat run`: roles that are commands, here of a shell."""

import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fixloop.chat.channels import log_findings
from fixloop.chat.directory import read_chat
from tests.fixtures.chat_stage import ARCHITECT, ENGINEER, NAME, PLAN, Stage, body
from tests.fixtures.command_stage import Said, said
from tests.fixtures.processes import running
from tests.proofs import ROOT

Run = Callable[..., Said]

pytestmark = pytest.mark.slow


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.chdir(tmp_path)
    Path("architect.md").write_text(f"---\npurpose: Go on\n---\n{body(ARCHITECT)}\n")
    results = ["[pass] python -m pytest", "[pass] ruff check"]
    Path("engineer.md").write_text(body(ENGINEER, results=results))
    Path("end.md").write_text("---\nclose: Completed\n---\nAll done.\n# DECISION\nShip it.\n")
    return Stage(Path("chats")).open()


@pytest.fixture
def run(stage: Stage, capsys: Any) -> Run:
    def type_(*, architect: str = "", engineer: str = "", further: tuple[str, ...] = ()) -> Said:
        roles = {"--architect": architect, "--engineer": engineer}
        words = [word for option, text in roles.items() if text for word in (option, f"sh -c '{text}'")]
        return said(capsys, "chat", "run", NAME, "--chats", "chats", *words, *further)

    return type_


ENDS = 'test "$FIXLOOP_SEQ" -lt 005 && cat architect.md || cat end.md'


@pytest.mark.proves("S28", "E1", "E28")
def test_commands_answer_in_turn_until_the_chat_is_closed(stage: Stage, run: Run) -> None:
    found = run(architect=ENDS, engineer="cat engineer.md")

    files = [f"00{number}-to-{role}.md" for number, role in enumerate(("engineer", "architect") * 2, 1)]
    assert (found.code, found.err) == (0, f"fixloop: chats/{NAME} is closed\n")
    assert found.out.split() == [f"chats/{NAME}/{file}" for file in files]
    assert stage.findings() == []
    assert stage.files()["DECISION.md"].endswith(b"\nShip it.\n")


@pytest.mark.proves("S28", "E24")
def test_the_example_s_agents_work_through_ten_messages_and_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    project = shutil.copytree(ROOT / "examples" / "gh-sync", tmp_path / "gh-sync")
    monkeypatch.chdir(project)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    criteria = ("python -m unittest -q", "python gh_sync.py chats --dry-run")
    stage = Stage(Path("chats")).open(PLAN._replace(acceptance=criteria))

    found = said(
        capsys,
        *("chat", "run", NAME, "--chats", "chats", "--log", "log"),
        *("--architect", f"{sys.executable} agents/architect.py"),
        *("--engineer", f"{sys.executable} agents/engineer.py"),
    )

    assert (found.code, len(found.out.split())) == (0, 10)
    assert stage.findings() == []
    verdicts = re.findall(rb"^- \[(pass|fail)\]", b"".join(stage.files().values()), re.MULTILINE)
    assert verdicts[0] == b"fail"
    assert b"- [pass] python gh_sync.py chats --dry-run (declared by" in stage.files()["SUMMARY.md"]
    assert log_findings(Path("log").read_text(), "log") == []


def test_a_chat_continues_from_its_files(stage: Stage, run: Run) -> None:
    first = run(architect=ENDS, engineer="cat engineer.md", further=("--messages", "1"))
    second = run(architect=ENDS, engineer="cat engineer.md")

    assert first.out.split() == [f"chats/{NAME}/001-to-engineer.md"]
    assert len(second.out.split()) == 3


def test_a_role_without_a_command_is_waited_for(stage: Stage, run: Run) -> None:
    found = run(architect=ENDS)

    assert (found.code, len(stage.files())) == (3, 3)
    assert (
        found.err == f"fixloop: it is the turn of engineer: `fixloop chat read chats/{NAME} --as engineer`\n"
    )


@pytest.mark.proves("E20", "E43")
def test_the_architect_s_question_to_a_person_is_printed_and_waited_for(stage: Stage, run: Run) -> None:
    block = f"TO USER:\\nSTATUS: stuck\\nACTION NEEDED: help\\nCONTEXT: chats/{NAME}/\\n"

    found = run(architect=f'printf "{block}"')

    assert (found.code, found.out) == (3, block.replace("\\n", "\n"))
    assert read_chat(stage.path).next_seq == 1


def test_a_command_that_fails_is_run_three_times_and_no_more(stage: Stage, run: Run) -> None:
    found = run(architect="echo again >&2; echo x >> runs; exit 7")

    assert found.code == 1
    assert "the command of architect exited 7: again" in found.err
    assert Path("runs").read_text() == "x\n" * 3


def test_an_invalid_answer_is_requested_once_more_with_the_reason(stage: Stage, run: Run) -> None:
    mended = run(
        architect='grep -q "refused: the body lacks STATUS" && cat architect.md || echo none',
        further=("--messages", "1"),
    )
    spoilt = run(engineer="echo x >> runs; echo none")

    assert mended.code == 0
    assert spoilt.code == 1
    assert "engineer gave no answer that fits: the body lacks STATUS" in spoilt.err
    assert Path("runs").read_text() == "x\n" * 2


RIVAL = """\
import sys
from datetime import UTC, datetime
from pathlib import Path

from fixloop.chat.directory import apply
from fixloop.chat.events import ChatClosed, ChatRead, MessageWritten
from fixloop.chat.vocabulary import Role

chat, now = Path("chats/0005-dx-gh-sync"), datetime.now(UTC)
if sys.argv[1] == "close":
    apply(chat, ChatClosed(Role.ARCHITECT, "Completed", "Done.", "Ship it."), now)
else:
    apply(chat, ChatRead(Role.ENGINEER), now)
    body = Path("engineer.md").read_text()
    apply(chat, MessageWritten(Role.ENGINEER, Role.ARCHITECT, "Work", body), now)
"""


@pytest.mark.proves("E29")
def test_a_chat_closed_by_another_meanwhile_stays_closed(stage: Stage, run: Run) -> None:
    Path("rival.py").write_text(RIVAL)
    run(architect="cat architect.md", engineer="cat engineer.md", further=("--messages", "2"))

    found = run(architect=f"echo x >> runs; {sys.executable} rival.py close && cat end.md")

    assert (found.code, found.err) == (0, f"fixloop: chats/{NAME} is closed\n")
    assert Path("runs").read_text() == "x\n"


@pytest.mark.proves("E27", "E32")
def test_a_role_is_not_asked_again_when_another_answered_for_it(stage: Stage, run: Run) -> None:
    Path("rival.py").write_text(RIVAL)
    stage.post(ARCHITECT, ENGINEER)

    found = run(engineer=f"echo x >> runs; {sys.executable} rival.py post; echo none")

    assert found.code == 3
    assert Path("runs").read_text() == "x\n"
    assert [name for name in stage.files() if name.startswith("00")] == [
        *("001-to-engineer.md", "002-to-architect.md")
    ]


@pytest.mark.proves("E15", "E42", "K32")
def test_other_output_of_commands_is_logged_by_role(stage: Stage, run: Run) -> None:
    run(
        architect="echo thinking >&2; cat architect.md",
        engineer="echo broken >&2; exit 1",
        further=("--log", "log"),
    )

    log = Path("log").read_text()
    assert log.splitlines() == ["architect/tool: thinking", *["engineer/error: broken"] * 3]
    assert log_findings(log, "log") == []


def test_a_command_is_given_chat_role_number_and_branch(
    stage: Stage, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FIXLOOP_KEEP")
    monkeypatch.delenv("FIXLOOP_SANDBOX_WRITABLE")
    run(architect="env | grep ^FIXLOOP_ | sort > told; cat architect.md", further=("--messages", "1"))

    assert Path("told").read_text().splitlines() == [
        "FIXLOOP_BRANCH=feat/dx-gh-sync-0005",
        f"FIXLOOP_CHAT={Path('chats').resolve() / NAME}",
        "FIXLOOP_ROLE=architect",
        "FIXLOOP_SEQ=001",
    ]


def test_a_command_that_takes_too_long_is_ended_with_all_it_started(stage: Stage, run: Run) -> None:
    # On a busy machine a shell may need a second to write its line.
    slow = f'echo x >> ran; sh -c "sleep 60; true" {Path.cwd()} & wait'

    found = run(architect=slow, further=("--timeout-minutes", "0.01"))

    assert found.code == 1
    assert "the command of architect timed out: it said nothing" in found.err
    assert Path("ran").read_text() == "x\n" * 3
    assert running(Path.cwd()) == []


@pytest.mark.parametrize("command", ["/no/such/program", "'unended"])
def test_an_invalid_command_is_reported_in_one_sentence(stage: Stage, capsys: Any, command: str) -> None:
    found = said(capsys, "chat", "run", NAME, "--chats", "chats", "--architect", command)

    assert found.code == 2
    assert "Traceback" not in found.err
    assert sys.executable not in found.err


def test_a_blank_command_counts_as_no_command(stage: Stage, capsys: Any) -> None:
    found = said(capsys, "chat", "run", NAME, "--chats", "chats", "--architect", "  ")

    assert found.code == 3
    assert "architect" in found.err
