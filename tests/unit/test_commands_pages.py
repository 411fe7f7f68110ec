"""The help pages: each exists, and docs/commands.md matches them."""

import re
from typing import Any

import pytest

from fixloop.servers.settings import Settings
from tests.unit.command_pages import PAGE, SETTINGS, commands, page


def test_the_documentation_matches_the_help_pages() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m tests.unit.command_pages`"


def test_every_setting_is_documented() -> None:
    assert set(SETTINGS) == set(Settings.model_fields)


@pytest.mark.parametrize("command", list(commands()), ids=lambda command: command.command_path)
def test_every_command_says_what_it_does_and_explains_each_argument(command: Any) -> None:
    text = command.get_help()

    assert re.search(r"Usage: fixloop .*\n\n  [A-Z].{10,}", text)
    unexplained = [
        line for line in text.splitlines() if re.match(r"  (-|[A-Z\[{])\S*( <\w+>| [A-Z]+)?$", line)
    ]
    assert unexplained == []


def test_every_command_of_the_design_is_there() -> None:
    names = {command.command_path.removeprefix("fixloop ") for command in commands()}

    assert names >= {
        *("run", "resume", "enqueue", "status", "watch", "inbox", "log", "decide", "ack", "fixed", "apply"),
        *("cancel", "worker", "flower", "read", "doctor", "init", "audit verify"),
    }
