"""The program's output and exit code if a call is wrong or a server is away."""

import os
from pathlib import Path

import pytest
import typer

from fixloop.cli import main
from fixloop.commands.program import app
from fixloop.errors import ExitCode
from tests.fixtures.command_stage import said

COMMANDS = typer.main.get_command(app)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_an_unknown_command_is_one_sentence_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    told = said(capsys, "stauts")

    assert told.code == ExitCode.USAGE
    assert told.err == "fixloop: no such command 'stauts'; did you mean 'status'?\n"
    assert told.out == ""


@pytest.mark.parametrize("words", [["cancel", "47", "--reason", "a\udcff"], ["log", "\ud83d"]])
def test_an_argument_that_is_not_text_is_one_sentence(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    told = said(capsys, *words)

    assert (told.code, told.out) == (ExitCode.USAGE, "")
    assert told.err.endswith("is not UTF-8; write it as text\n")
    assert told.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["status", "--jsn"], "no such option: --jsn"),
        (["watch"], "missing argument 'ISSUE'; see `fixloop watch --help`"),
        (["read", "report.xml", "--as", "html"], "'html' is not one of 'junit', 'sarif', 'coverage'"),
        (["read", "report.xml"], "missing option '--as'"),
        (["worker", "-c", "0"], "should be greater than or equal to 1"),
        (["audit"], "missing command"),
        (["init", "nowhere"], "nowhere is not a folder"),
        (["log", "1", "--format", "html"], "'html' is not one of"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = said(capsys, *words)

    assert told.code == ExitCode.USAGE
    assert sentence in told.err
    assert told.err.count("\n") == 1
    assert told.err.startswith("fixloop: ")


def test_no_command_shows_the_help_and_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    told = said(capsys)

    assert told.code == ExitCode.USAGE
    assert "Commands:" in told.out


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    told = said(capsys, "--version")

    assert told.code == ExitCode.DONE
    assert told.out.startswith("fixloop ")


def test_a_redis_that_is_away_is_one_sentence_and_exit_code_4(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIXLOOP_STATE_URL", "redis://me:secret@localhost:1/0")

    told = said(capsys, "status")

    assert told.code == ExitCode.AWAY
    assert told.err.startswith("fixloop: cannot reach Redis at redis://localhost:1/0: connection refused")
    assert told.err.count("\n") == 1
    assert "secret" not in told.err


def test_a_wrong_setting_is_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIXLOOP_STATE_URL", "http://localhost")

    told = said(capsys, "inbox")

    assert told.code == ExitCode.USAGE
    assert "FIXLOOP_STATE_URL" in told.err


@pytest.mark.parametrize("words", ["status", "inbox", "status 47", "log 47", "watch 47", "audit verify"])
def test_commands_without_a_workflow_say_so_and_create_nothing(
    words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    told = said(capsys, *words.split())

    assert told.code == (ExitCode.DONE if words in ("status", "inbox") else ExitCode.USAGE)
    assert "no workflow here yet" in told.err
    assert list(tmp_path.iterdir()) == []


def test_a_removed_directory_is_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()

    told = said(capsys, "status")

    assert told.code == ExitCode.USAGE
    assert "no longer exists" in told.err


def test_ctrl_c_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fixloop.commands.doctor.examine", interrupted)

    assert main(["doctor"]) == ExitCode.INTERRUPTED
