"""How much of a tool's text is kept (K41)."""

import pytest
from hypothesis import given, strategies as st

from fixloop.protocol.failures import Failure
from fixloop.protocol.limits import (
    FAILURE_BYTES,
    FULL_FAILURES,
    LINE_BYTES,
    NAME_BYTES,
    clean,
    cut,
    short_name,
)
from fixloop.reports import bound


def size(failure: Failure) -> int:
    return len(failure.message.encode()) + len(failure.context.encode())


@pytest.mark.proves("K41")
def test_fifty_failures_are_kept_in_full_and_the_others_as_one_line_each() -> None:
    text = "first line\n" + "x" * 5000
    failures = [Failure(name=f"t{n}", message=text, context="c", suggestion="s") for n in range(120)]

    kept = bound(failures, range(50))

    assert [failure.name for failure in kept] == [failure.name for failure in failures]
    assert [failure.message for failure in kept[:FULL_FAILURES]] == [text] * 50
    assert {failure.message for failure in kept[FULL_FAILURES:]} == {"first line"}
    assert {failure.context for failure in kept[FULL_FAILURES:]} == {""}


@pytest.mark.proves("K41")
def test_a_failure_is_shortened_to_eight_kilobytes_keeping_both_ends() -> None:
    (kept,) = bound([Failure(name="t", message="start" + "ü" * 100_000 + "end", context="y" * 100_000)], {0})

    assert size(kept) <= FAILURE_BYTES
    assert kept.message.startswith("start")
    assert kept.message.endswith("end")
    assert "bytes cut]" in kept.message
    assert "bytes cut]" in kept.context


@pytest.mark.proves("K41")
@given(st.text(), st.integers(60, 400))
def test_an_excerpt_never_breaks_a_character_and_says_what_is_missing(text: str, limit_bytes: int) -> None:
    text = clean(text) * 20

    kept = cut(text, limit_bytes)

    assert len(kept.encode()) <= limit_bytes
    if kept != text:
        head, _, rest = kept.partition("… [")
        gone, _, tail = rest.partition(" bytes cut]")
        tail = tail.removeprefix(" … ")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert len(head.encode()) + int(gone) + len(tail.encode()) == len(text.encode())


@pytest.mark.proves("K41")
@given(st.lists(st.text(), max_size=60))
def test_bounding_keeps_every_failure_and_every_key(messages: list[str]) -> None:
    failures = [Failure(name=f"t{n}", message=clean(text) * 100) for n, text in enumerate(messages)]

    kept = bound(failures, range(50))

    assert [failure.key for failure in kept] == [failure.key for failure in failures]
    assert all(size(failure) <= FAILURE_BYTES for failure in kept)
    assert all(len(failure.message.encode()) <= LINE_BYTES for failure in kept[FULL_FAILURES:])


@pytest.mark.proves("K7")
def test_two_long_names_stay_distinct() -> None:
    first, second = short_name("x" * 900 + "a"), short_name("x" * 900 + "b")

    assert first != second
    assert len(first.encode()) <= NAME_BYTES
    assert short_name("test_x[a\n b]") == "test_x[a b]"


@given(st.text(st.characters()))
def test_cleaned_text_can_be_stored_and_shown(text: str) -> None:
    shown = clean(text)

    assert shown.encode().decode() == shown
    assert not [letter for letter in shown if ord(letter) < 32 and letter not in "\n\t"]


def test_terminal_escapes_are_removed() -> None:
    assert clean("\x1b[31mred\x1b[0m\r\n\x1b]0;title\x07done\x1b") == "red\ndone"
