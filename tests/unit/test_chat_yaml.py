"""YAML whose scalars are strings."""

import pytest
from hypothesis import given, strategies as st

from fixloop.chat import string_yaml
from fixloop.chat.directory import plan_text
from fixloop.chat.message import FileName, Front, front_text, lines_of, moment, read_message, rendered, stamp
from fixloop.chat.meta import read_meta, with_values
from fixloop.chat.string_yaml import YamlError, load, plain
from tests.fixtures.chat_stage import ARCHITECT, ENGINEER, NAME, PLAN, START, body, meta


@pytest.mark.proves("K18")
@pytest.mark.parametrize(
    "text", ["001", "007", "008", "009", "010", "012", "0x1F", "1_000", "0o17", "1e3", "08"]
)
def test_values_that_look_like_numbers_stay_text(text: str) -> None:
    assert plain(load(f"seq: {text}\n")) == {"seq": text}
    assert plain(load(f"[{text}]\n".join(("a: ", "")))) == {"a": [text]}


@pytest.mark.proves("K18")
@pytest.mark.parametrize(
    "text", ["2025-09-06T00:00:00Z", "yes", "null", "~", "0005", "1.10", "12:30:45", "off"]
)
def test_times_booleans_and_nulls_stay_text(text: str) -> None:
    assert plain(load(f"value: {text}\n# a remark\n")) == {"value": text}


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ("a: 1\nb: 2\na: 3\n", "the key 'a' stands here twice", 3),
        ("a: &x 1\nb: *x\n", "anchors, aliases", 1),
        ("a: &x 1\nb: &x 2\n", "anchors, aliases", 1),
        ("a: " + "[" * 30 + "]" * 30, "deep nesting", 1),
        ("a: " + "[ " * 2000, "deep nesting", 1),
        ("a: " + "[1]" * 30_000, "longer than 64 KiB", 1),
        ("- a\n", "no mapping", 1),
        ("just words\n", "no mapping", 1),
        ("a: b: c\n", "mapping values are not allowed here", 1),
        ("a: 1\n---\nb: 2\n", "another document", 2),
        ("a: [1\n", "expected ',' or ']'", 2),
        ("ok: 1\na: \x07\n", "a character that YAML does not allow", 2),
        ("? [a]\n: b\n", "a key has to be a word", 1),
        ("a: *nowhere\n", "found undefined alias", 1),
    ],
)
def test_ambiguous_yaml_is_refused_with_its_line(text: str, words: str, line: int) -> None:
    with pytest.raises(YamlError) as refused:
        load(text)

    assert words in str(refused.value)
    assert refused.value.line == line


def test_an_empty_document_is_an_empty_mapping() -> None:
    assert load("") == load("# only a remark\n") == {}


SIMPLE = st.text(alphabet="abz09 .:/+-_#\"'Té,[]{}&*!|>%@`~\\\t", max_size=20)
LINES = st.one_of(
    st.tuples(st.sampled_from(["a: ", "b: ", "ts: ", "  - "]), SIMPLE).map("".join),
    st.sampled_from(["c:", "  - item", "d:", '  - "quoted # item"']),
)


@given(st.lists(LINES, min_size=1, max_size=5))
def test_the_fast_reader_agrees_with_the_full_one(lines: list[str]) -> None:
    text = "\n".join([*lines, ""])
    quick = string_yaml._simple(text)

    if quick is not None:
        # A comment at the end is nothing to YAML, and too much for the fast reader.
        assert placed(load(f"{text}#\n")) == placed(quick)


def test_the_fast_reader_reads_what_fixloop_writes() -> None:
    assert string_yaml._simple(plan_text(PLAN, START)) is not None
    assert string_yaml._simple(front_text(Front(ARCHITECT, ENGINEER, NAME, 8, START, "On: and on"))[4:-4])


def placed(found: string_yaml.Mapping) -> list[object]:
    """Values with their lines, and texts with their places, too."""
    return [
        (key, entry.line, [(item.value, item.line, item.start, item.end) for item in entry.value])
        if isinstance(entry.value, list)
        else (key, entry)
        for key, entry in found.items()
    ]


@given(st.text(max_size=30).filter(lambda text: text.isprintable()))
def test_a_quoted_text_reads_back_as_it_was(text: str) -> None:
    assert plain(load(f"value: {string_yaml.quoted(text)}\n")) == {"value": text}


@pytest.mark.heavy
@pytest.mark.proves("E12", "E7")
@given(
    st.text(min_size=1, max_size=50).filter(lambda text: text.isprintable() and text.strip() == text),
    st.integers(1, 999),
)
def test_a_message_reads_back_as_it_was_written(purpose: str, seq: int) -> None:
    front = Front(ARCHITECT, ENGINEER, NAME, seq, START, purpose)

    found = read_message(rendered(front, body(ARCHITECT)), FileName(seq, ENGINEER), NAME, "file")

    assert found.findings == ()
    assert found.front == front
    assert "\n".join(found.body).strip("\n") == body(ARCHITECT)


@given(st.text(max_size=300))
def test_any_file_is_read_or_refused_without_another_error(text: str) -> None:
    for written in (text, f"---\n{text}\n---\n{text}", f"---\nfrom: architect\nseq: {text}\n---\n"):
        found = read_message(written, FileName(1, ENGINEER), NAME, "file")

        lines = len(lines_of(written))
        assert all(1 <= finding.line <= lines + 1 for finding in found.findings)
        assert (found.front is None) or written.startswith("---")


@pytest.mark.proves("E11", "E37")
@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2025-09-06T00:00:00Z", "2025-09-06T00:00:00Z"),
        ("2025-09-06T08:00:00+08:00", "2025-09-06T00:00:00Z"),
        ("2025-09-06T00:00:00.5Z", "2025-09-06T00:00:00Z"),
        ("20250906T000000Z", "2025-09-06T00:00:00Z"),
        ("2025-09-06T00:00", "2025-09-06T00:00:00Z"),
        ("2025-09-06", None),
        ("2025-09-06 00:00:00", None),
        ("2025-XX-XXTXX:XX:XXZ", None),
        ("2025-02-30T00:00:00Z", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_a_time_is_iso_8601_with_date_and_time(text: str, utc: str | None) -> None:
    found = moment(text)

    assert (found and stamp(found)) == utc


def test_front_matter_quotes_values_that_yaml_could_misread() -> None:
    text = front_text(Front(ARCHITECT, ENGINEER, NAME, 8, START, "On: and on"))

    assert text.splitlines()[4:7] == ["seq: 008", 'ts: "2025-09-06T00:00:00Z"', 'purpose: "On: and on"']


BITS = [
    "\0",
    "\r",
    "\n",
    "---\n",
    "- ",
    "{",
    "}",
    "[",
    "]",
    ": ",
    "#",
    "&a ",
    "*a",
    "!!int ",
    '"',
    "'",
    "\ufeff",
    "\t",
]
BITS += ["%YAML 1.2\n", "? ", "| ", "> ", "seq: 010", "<<: ", "~", "é", "\x85", "\u2028", "\x1b[31m", ""]
CUTS = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 10), st.sampled_from(BITS)), max_size=6)
CONTRACTS = st.sampled_from(
    [
        meta(),
        meta(gh="{sync_mode: none, labels: [a]}", notes="|\n  x\n  y"),
        meta(closed="2025-01-01T00:00 # then"),
    ]
)


@pytest.mark.heavy
@pytest.mark.proves("E31", "E39")
@given(CONTRACTS, CUTS)
def test_in_any_valid_contract_only_the_named_values_change(
    text: str, cuts: list[tuple[int, int, str]]
) -> None:
    for start, length, bit in cuts:
        text = text[:start] + bit + text[start + length :]
    found = read_meta(text)
    if found.meta is None:
        assert found.findings
        return
    values = {"owner": "twin", "state": "closed", "closed": "2025-09-06T00:00:00Z"}

    changed = read_meta(with_values(found, values)).meta

    assert changed is not None
    assert changed == found.meta.model_copy(update=values)
