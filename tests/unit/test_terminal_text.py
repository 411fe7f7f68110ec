"""Control and invisible characters are shown as escapes; ordinary text is unchanged."""

import json
from typing import Any, Final

import pytest
from hypothesis import given, strategies as st

from fixloop.commands.screen import note, print_json, print_lines, say
from fixloop.machine.terminal_text import HIDDEN, json_visible, on_one_line, visible

ANY: Final = st.text(st.characters())
CATEGORIES: Final = ("Cc", "Cf", "Cs", "Zl", "Zp")


@given(ANY)
def test_shown_text_has_nothing_hidden_and_keeps_its_lines(text: str) -> None:
    shown = visible(text)

    assert HIDDEN.search(shown) is None
    assert visible(shown) == shown
    assert shown.count("\n") == text.count("\n")
    assert "\n" not in on_one_line(text)


@given(st.recursive(ANY, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY, inner, max_size=3)))
def test_json_keeps_its_meaning_and_has_nothing_hidden(document: Any) -> None:
    shown = json_visible(json.dumps(document, ensure_ascii=False, indent=2))

    assert HIDDEN.search(shown) is None
    assert json.loads(shown) == document


@pytest.mark.parametrize(
    "text",
    ["👩‍👩‍👧 and ❤️‍🔥 and 1️⃣", "می‌خواهم", "क्‍ष", "שלום עולם", "Zoë, naïve, 漢字, ½ → ✓", "line\n\tindented"],
)
def test_ordinary_text_is_kept(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u202eb", "a\\u202eb"),
        ("pass\u200bword", "pass\\u200bword"),
        ("a\u200db", "a\\u200db"),
        ("漢\ufe01\ufe02", "漢\ufe01\\ufe02"),
        ("x\U000e0041", "x\\U000e0041"),
        ("\x1b[2J\r\x9b", "\\x1b[2J\\r\\x9b"),
        ("a\r\nb", "a\nb"),
    ],
)
def test_hidden_and_control_characters_become_escapes(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_line_break_forges_no_row_anywhere(capsys: pytest.CaptureFixture[str]) -> None:
    print_lines("#1 name\n#2 forged", "#3 next")
    note("issue 1: name\r\nfixloop: all has passed")
    say("no workflow\nfixloop: all has passed")
    print_json({"name": "a\n\u2066b"})

    told = capsys.readouterr()
    assert told.out.splitlines()[:2] == ["#1 name\\n#2 forged", "#3 next"]
    assert told.err.splitlines() == [
        "issue 1: name\\nfixloop: all has passed",
        "fixloop: no workflow\\nfixloop: all has passed",
    ]
    assert "\\u2066b" in told.out
