"""Each agent's calls, their answers, and the hooks in its settings."""

import json
import tomllib
from pathlib import Path
from typing import Final

import pytest

from fixloop.outside.hook_dialects import (
    DIALECTS,
    is_installed,
    read_call,
    with_hooks,
    with_lines,
    without_hooks,
    without_lines,
    worded,
)

CALLS: Final = Path(__file__).with_name("hook_calls")
SOURCES: Final = tomllib.loads((CALLS / "sources.toml").read_text())
TOLD: Final = {
    "claude": {"decision": "block", "reason": "no"},
    "codex": {"decision": "block", "reason": "no"},
    "gemini": {"decision": "deny", "reason": "no"},
    "cursor": {"followup_message": "no"},
    "copilot": {"decision": "block", "reason": "no"},
    "vscode": {"hookSpecificOutput": {"hookEventName": "Stop", "decision": "block", "reason": "no"}},
    "qwen": {"decision": "block", "reason": "no"},
}
CODEX_KEYS: Final = {"continue", "decision", "reason", "stopReason", "suppressOutput", "systemMessage"}
"""Its schema accepts no other."""


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_a_call_of_each_agent_is_read(name: str) -> None:
    call = read_call((CALLS / f"{name}.json").read_bytes())

    assert call.session
    assert call.folder == "/home/me/shop"
    assert call.is_cut_off == name.endswith("aborted")


def test_every_dialect_has_a_call() -> None:
    assert {source["dialect"] for source in SOURCES.values()} == set(DIALECTS) == set(TOLD)


@pytest.mark.parametrize("name", DIALECTS)
def test_an_agent_is_answered_in_its_own_format(name: str) -> None:
    dialect = DIALECTS[name]

    assert worded(dialect.block, "no") == TOLD[name]
    assert worded(dialect.tell, "hello") in ({}, {"systemMessage": "hello"})
    if name == "codex":
        assert {*worded(dialect.block, "no"), *worded(dialect.tell, "hello")} <= CODEX_KEYS


def test_codex_gets_no_version_because_it_refuses_one() -> None:
    mine = {"version": 1, "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "make lint"}]}]}}

    assert with_hooks({}, "codex", "fixloop").keys() == {"hooks"}
    assert with_hooks(mine, "codex", "fixloop").keys() == {"hooks"}
    assert (
        with_hooks({}, "copilot", "fixloop")["version"] == with_hooks({}, "cursor", "fixloop")["version"] == 1
    )


@pytest.mark.parametrize("name", DIALECTS)
def test_a_check_ends_before_the_agent_stops_waiting_for_it(name: str) -> None:
    entry = worded(DIALECTS[name].entry, "fixloop")
    (command,) = entry.get("hooks", [entry])
    wait = command.get("timeout") or command["timeoutSec"]
    seconds = wait / 1000 if name in ("gemini", "qwen") else wait

    assert DIALECTS[name].seconds + 8 <= seconds


@pytest.mark.parametrize("sent", [b"", b"[]", b"nothing", b"\xff\xfe{}", b'"text"', b"null"])
def test_input_that_is_no_object_is_refused(sent: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_call(sent)


@pytest.mark.parametrize(
    "sent", [b"{}", b'{"session_id": 7, "cwd": null, "workspace_roots": [], "status": {}, "new": 1}']
)
def test_missing_fields_and_wrong_types_are_tolerated(sent: bytes) -> None:
    assert read_call(sent) == ("", "", False)


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("program", ["fixloop", "/home/my self/.venv/bin/fixloop"])
def test_hooks_are_installed_once_and_removed(name: str, program: str) -> None:
    others = {
        "model": "x",
        "hooks": {
            "enabled": True,
            DIALECTS[name].stops: [
                {"hooks": [{"type": "command", "command": "make lint"}]},
                {"command": "echo"},
            ],
            "PreToolUse": [],
        },
    }

    once = with_hooks(others, name, program)
    twice = with_hooks(once, name, "fixloop")

    assert is_installed(json.dumps(once))
    assert not is_installed(json.dumps(others))
    assert json.dumps(once).count(f" hook {name}") == json.dumps(twice).count(f" hook {name}") == 2
    assert once["hooks"][DIALECTS[name].stops][:2] == others["hooks"][DIALECTS[name].stops]  # type: ignore[index]
    left = without_hooks(twice)
    left.pop("version", None)
    assert left == others
    assert set(without_hooks(with_hooks({}, name, program))) <= {"version"}


def test_another_s_command_in_our_group_is_kept() -> None:
    settings = with_hooks({}, "claude", "fixloop")
    settings["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "say done"})

    assert without_hooks(settings) == {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}
    }


@pytest.mark.parametrize("text", ["", "# Shop\n", "# Shop\n\nText.\n", "no end", "a\n\n\n"])
def test_lines_are_added_to_a_page_once_and_removed(text: str) -> None:
    page = with_lines(text)

    assert page.startswith(text)
    assert with_lines(page) == page
    assert without_lines(page) == text
    assert without_lines(f"{page}more\n") == f"{text}more\n"
