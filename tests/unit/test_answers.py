"""Reading an agent's Fix Completion: it is accepted or refused, and nothing else can happen."""

import json
import pickle
import re
from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import example, given, strategies as st

from fixloop.protocol.answers import (
    LIMIT_BYTES,
    LIMIT_LINES,
    Answer,
    AnsweredAlready,
    InvalidAnswer,
    decode_answer,
    parse_answer,
)
from fixloop.protocol.messages import FixCompletion
from fixloop.protocol.rendering import render, render_answer_format
from tests.examples import at_most
from tests.fixtures.message_samples import COMPLETION, message

ANSWER: Final = """\
## Fix Completion

**Message ID**: FIXDONE-101-1

### Completion Summary
Fixes completed for feature #101, iteration 1.

### Fixes Applied
1. Swapped `a\\.b` and c
2. Added a test
   - for the second branch

### Files Modified
- `src/a.py` (both calls)
- src/__init__.py

### Ready for Re-validation
Yes - please re-run test-runner.

---

**Sent by**: Feature Implementer Main Agent
"""
AS_JSON: Final = {
    "message_id": "FIXDONE-101-1",
    "summary": "two fixes",
    "fixes": ["Swapped the calls"],
    "files": ["src/a.py"],
    "ready": True,
}


def parse(text: str) -> Answer:
    return parse_answer(text, issue=101, iteration=1, specialist="test-runner")


def violations(text: str) -> tuple[str, ...]:
    with pytest.raises(InvalidAnswer) as caught:
        parse(text)
    return caught.value.violations


def read_or_refused(text: str) -> bool:
    """True when `text` is a completion, or is refused with reasons."""
    try:
        return isinstance(parse(text), Answer)
    except InvalidAnswer as error:
        return bool(error.violations)


@pytest.mark.proves("A32", "A33")
def test_the_protocol_s_own_layout_is_read() -> None:
    answer = parse(ANSWER)

    assert answer.summary == ""
    assert answer.fixes == ("Swapped `a\\.b` and c", "Added a test\n- for the second branch")
    assert answer.files == ("src/a.py", "src/__init__.py")
    assert answer.ready


def test_the_format_offered_to_agents_is_itself_an_answer() -> None:
    assert parse(render_answer_format(101, 1, "test-runner")).ready


def test_bold_sections_without_blank_lines_are_read() -> None:
    text = """Message ID: FIXDONE-101-1
**Completion Summary**
The order was wrong.
**2. Fixes Applied:**
- Swapped the calls
- Added a test
**Files Modified**: none
**Ready for Re-validation**: Yes
**Sent by**: me"""

    answer = parse(text)

    assert (answer.summary, answer.fixes, answer.files) == (
        "The order was wrong.",
        ("Swapped the calls", "Added a test"),
        (),
    )


def test_plain_sections_are_read_if_no_other_form_is_used() -> None:
    text = """Message ID: `FIXDONE-101-1`
Completion Summary: done
Fixes Applied:
Swapped the calls.
Files Modified: src/a.py
src/b.py
Ready for re-validation: yes"""

    answer = parse(text)

    assert answer.fixes == ("Swapped the calls.",)
    assert answer.files == ("src/a.py", "src/b.py")


@pytest.mark.parametrize("mark", ["```markdown\n{}```\n", "\ufeff{}", "~~~\n{}\n~~~", "{}\n"])
def test_an_answer_in_one_fence_is_unwrapped(mark: str) -> None:
    assert parse(mark.format(ANSWER)) == parse(ANSWER)


def test_a_section_heading_inside_a_fence_is_text() -> None:
    hidden = ANSWER.replace("### Files Modified", "```\n### Files Modified") + "\n```"

    assert 'missing section "Files Modified"' in violations(hidden)


def test_line_ends_of_other_systems_are_read() -> None:
    assert parse(ANSWER.replace("\n", "\r\n")) == parse(ANSWER)


@pytest.mark.proves("K35")
def test_nothing_changed_is_a_valid_answer() -> None:
    text = ANSWER.replace("- `src/a.py` (both calls)\n- src/__init__.py", "none")

    assert parse(text).files == ()


@pytest.mark.proves("K35", "A71", "S11")
def test_a_missing_section_is_named() -> None:
    assert violations(ANSWER.replace("Files Modified", "Changes")) == ('missing section "Files Modified"',)


def test_an_empty_section_is_not_none() -> None:
    text = ANSWER.replace("- `src/a.py` (both calls)\n- src/__init__.py", "")

    assert violations(text) == (
        'line 13: section "Files Modified" is empty; list the entries, or write none',
    )


def test_a_section_written_twice_is_refused() -> None:
    assert violations(ANSWER + "\n### Files Modified\nnone\n") == (
        'section "Files Modified" appears 2 times (lines 13, 24); write it once',
    )


@pytest.mark.proves("A8", "S11")
def test_an_answer_to_another_request_is_refused() -> None:
    assert violations(ANSWER.replace("FIXDONE-101-1", "FIXDONE-101-3")) == (
        "line 3: id FIXDONE-101-3 while FIXREQ-101-1 is open; it is FIXDONE-101-1",
    )


def test_an_answer_without_an_id_is_refused() -> None:
    assert violations(ANSWER.replace("**Message ID**: FIXDONE-101-1", "")) == (
        'missing field "Message ID"; it is FIXDONE-101-1',
    )


@pytest.mark.proves("A33", "G8")
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("No - not yet ready to re-run test-runner.", "not yet ready to re-run test-runner."),
        ("**No**: the database is down", "the database is down"),
        ("no", ""),
        ("No because I have no key", "because I have no key"),
        ("Not yet.", ""),
    ],
)
def test_an_answer_that_is_not_ready_says_why(words: str, reason: str) -> None:
    answer = parse(ANSWER.replace("Yes - please re-run test-runner.", words))

    assert not answer.ready
    assert answer.reason == reason


@pytest.mark.proves("A33")
@pytest.mark.parametrize(
    "words",
    ["Yes", "**Yes**", "yes, please re-run test-runner", "- [x] Yes", "✅ Yes", "True", "Ready", "Ready."],
)
def test_a_yes_is_read_in_many_forms(words: str) -> None:
    assert parse(ANSWER.replace("Yes - please re-run test-runner.", words)).ready


@pytest.mark.proves("A33", "A71")
@pytest.mark.parametrize("words", ["maybe", "No further failures", "[ ] Yes", "I think so", "almost ready"])
def test_an_answer_that_is_neither_yes_nor_no_is_refused(words: str) -> None:
    assert violations(ANSWER.replace("Yes - please re-run test-runner.", words)) == (
        f'line 17: "Ready for Re-validation" says {words if words == "maybe" else repr(words)}, neither yes nor no',
    )


@pytest.mark.proves("R8")
def test_an_answer_to_an_earlier_request_is_a_repetition() -> None:
    with pytest.raises(AnsweredAlready, match="FIXDONE-101-1 while FIXREQ-101-2 is open"):
        parse_answer(ANSWER, issue=101, iteration=2, specialist="test-runner")


@pytest.mark.proves("A71")
def test_all_violations_are_reported_together_with_their_places() -> None:
    text = """Message ID: FIXDONE-7-1
## Fixes Applied

## Files Modified
none
## Ready for Re-validation
later, for security"""

    assert violations(text) == (
        "line 1: id FIXDONE-7-1 while FIXREQ-101-1 is open; it is FIXDONE-101-1",
        'missing section "Completion Summary"',
        'line 2: section "Fixes Applied" is empty; list the entries, or write none',
        "line 6: \"Ready for Re-validation\" says 'later, for security', neither yes nor no",
        'line 6: "Ready for Re-validation" names security, but test-runner is to run again',
    )


#: Harmless changes of agents to the layout.
_HARMLESS: Final[dict[str, Callable[[str], str]]] = {
    "other heading levels": lambda text: text.replace("### ", "# "),
    "deep headings": lambda text: text.replace("### ", "###### "),
    "bold headings": lambda text: re.sub(r"^### (.*)$", r"### **\1**:", text, flags=re.M),
    "bold labels": lambda text: re.sub(r"^### (.*)$", r"**\1**", text, flags=re.M),
    "bold labels with a colon inside": lambda text: re.sub(r"^### (.*)$", r"**\1:**", text, flags=re.M),
    "labels in a list": lambda text: re.sub(r"^### (.*)$", r"- **\1**:", text, flags=re.M),
    "plain labels": lambda text: re.sub(r"^### (.*)$", r"\1:", text, flags=re.M),
    "bare titles": lambda text: re.sub(r"^### (.*)$", r"\1", text, flags=re.M),
    "underlined titles": lambda text: re.sub(r"^### (.*)$", r"\1\n-----", text, flags=re.M),
    "doubly underlined titles": lambda text: re.sub(r"^### (.*)$", r"\1\n=====", text, flags=re.M),
    "numbered headings": lambda text: text.replace("### Fixes", "### 2. Fixes"),
    "shouting": lambda text: re.sub(r"^### (.*)$", lambda found: found[0].upper(), text, flags=re.M),
    "stars for bullets": lambda text: re.sub(r"^- ", "* ", text, flags=re.M),
    "brackets for numbers": lambda text: re.sub(r"^(\d)\. ", r"\1) ", text, flags=re.M),
    "a greeting": lambda text: f"Sure! Here is what I did.\n\n{text}",
    "another section": lambda text: text.replace("### Files", "### Tests Run\n- all\n\n### Files"),
    "another system's line ends": lambda text: text.replace("\n", "\r\n"),
    "a byte order mark": lambda text: f"\ufeff{text}",
    "a fence": lambda text: f"```markdown\n{text}```\n",
    "a fence after a greeting": lambda text: f"Here it is:\n\n~~~\n{text}~~~\nBye.\n",
    "no blank lines": lambda text: re.sub(r"\n+", "\n", text),
    "trailing spaces": lambda text: text.replace("\n", "  \n"),
    "a hyphen in the label": lambda text: text.replace("**Message ID**", "Message-ID"),
}


@pytest.mark.proves("A32", "A71")
@pytest.mark.parametrize("name", _HARMLESS)
def test_harmless_deviations_are_accepted(name: str) -> None:
    said, as_told = parse(_HARMLESS[name](ANSWER)), parse(ANSWER)

    assert [fix.replace("  \n", "\n") for fix in said.fixes] == list(as_told.fixes)
    assert (said.files, said.ready) == (as_told.files, True)


@pytest.mark.proves("A32")
@pytest.mark.parametrize(
    "wrap", ["{}", "```json\n{}\n```", "Here it is:\n\n```\n{}\n```\nDone.", "\ufeff {}\r\n"]
)
def test_json_is_recognised_bare_and_in_a_fence(wrap: str) -> None:
    assert parse(wrap.format(json.dumps(AS_JSON, indent=1))) == parse(json.dumps(AS_JSON))


@pytest.mark.proves("A32")
def test_json_may_use_the_titles_of_the_sections() -> None:
    titled = {
        "Message ID": "FIXDONE-101-1",
        "Completion Summary": "two fixes",
        "Fixes Applied": ["Swapped the calls"],
        "Files Modified": ["src/a.py"],
        "Ready for Re-validation": "Yes - please re-run test-runner.",
        "Confidence": 0.9,
    }

    assert parse(json.dumps(titled)) == parse(json.dumps(AS_JSON))


@pytest.mark.proves("A33")
def test_one_line_is_enough_to_decline() -> None:
    found = parse("\nBLOCKED: the service it calls\nhas no test account\n")

    assert not found.ready
    assert found.blocker == "not ready: the service it calls\nhas no test account"
    with pytest.raises(InvalidAnswer, match="missing section"):
        parse("BLOCKED:\n")


@pytest.mark.proves("A33", "G8")
def test_json_that_is_not_ready_says_why() -> None:
    for change in ({"ready": False, "reason": "no key"}, {"ready": "No - no key"}):
        answer = parse(json.dumps(AS_JSON | change))
        assert (answer.ready, answer.reason) == (False, "no key")


def test_two_answers_in_one_are_refused() -> None:
    assert violations(f"```\n{ANSWER}```\n\n```\n{ANSWER}```\n") == (
        "it has 2 answers, in the fences at lines 2, 27; write one",
    )


@pytest.mark.proves("A71")
@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"\x89PNG\r\n\x1a\n", "it is not UTF-8 text: 0x89 at byte 0"),
        (b"## Fix\xff", "it is not UTF-8 text: 0xff at byte 6"),
        (b"\xff\xfea", "it is not UTF-16 text: 0x61 at byte 2"),
        (b"x" * (LIMIT_BYTES + 1), "it has more than 1000000 bytes, the limit; shorten it"),
    ],
)
def test_undecodable_bytes_are_an_invalid_answer(raw: bytes, said: str) -> None:
    with pytest.raises(InvalidAnswer) as caught:
        decode_answer(raw)
    assert caught.value.violations == (said,)


def test_a_shell_s_utf_16_is_read() -> None:
    assert parse(decode_answer(ANSWER.encode("utf-16"))) == parse(ANSWER)


@pytest.mark.proves("A33")
def test_an_answer_for_another_specialist_is_refused() -> None:
    assert violations(ANSWER.replace("re-run test-runner", "re-run unit-test-specialist")) == (
        'line 17: "Ready for Re-validation" names unit-test, but test-runner is to run again',
    )


def test_an_empty_answer_names_everything_that_is_missing() -> None:
    found = violations("")

    assert [violation.split(";")[0] for violation in found] == [
        'missing field "Message ID"',
        'missing section "Completion Summary"',
        'missing section "Fixes Applied"',
        'missing section "Files Modified"',
        'missing section "Ready for Re-validation"',
    ]


def test_json_says_the_same_as_markdown() -> None:
    answer = parse(json.dumps(AS_JSON))

    assert answer == Answer("two fixes", ("Swapped the calls",), ("src/a.py",))


@pytest.mark.parametrize(
    ("change", "violation"),
    [
        ({"message_id": "FIXDONE-7-1"}, "id FIXDONE-7-1 while FIXREQ-101-1 is open; it is FIXDONE-101-1"),
        ({"files": "src/a.py"}, "field files: Input should be a valid list"),
        ({"fixes": ["a", " "]}, "field fixes.1 is blank"),
        ({"specialist": "security"}, 'field "specialist" is security; it is test-runner'),
    ],
)
def test_json_of_the_wrong_shape_is_refused(change: dict[str, object], violation: str) -> None:
    assert violations(json.dumps(AS_JSON | change)) == (violation,)


def test_json_without_files_is_refused_and_with_none_is_not() -> None:
    without = {name: value for name, value in AS_JSON.items() if name != "files"}

    assert violations(json.dumps(without | {"filez": []})) == ("missing field files",)
    assert parse(json.dumps(without | {"files": "none"})).files == ()


@pytest.mark.parametrize("text", ["{", "{" * 5000, '{"a":' * 100_000, '{"message_id": "\\ud800"}', "{\x00}"])
def test_broken_json_is_one_violation(text: str) -> None:
    (violation,) = violations(text)

    assert violation.startswith("it is not valid JSON: ")


def test_many_violations_are_counted_and_not_listed() -> None:
    found = violations(json.dumps(AS_JSON | {"fixes": [0] * 1000}))

    assert len(found) == 21
    assert found[-1] == "980 more of the kind"


def test_an_answer_that_is_too_long_is_refused_unread() -> None:
    assert "1000001 bytes, the limit is 1000000" in violations("x" * (LIMIT_BYTES + 1))[0]
    assert "20001 lines, the limit is 20000" in violations("\n" * (LIMIT_LINES + 1))[0]


def test_the_error_is_one_sentence_and_survives_pickling() -> None:
    error = InvalidAnswer('missing section "Files Modified"', "not ready")
    again = pickle.loads(pickle.dumps(error))

    assert str(again) == (
        'the answer is not a valid Fix Completion: missing section "Files Modified"; not ready'
    )
    assert again.violations == error.violations


#: The parts of a text that tries to become layout.
_BLOCKS: Final = [
    "#",
    "### Files Modified",
    "---",
    "===",
    "```",
    "~~~",
    "- ",
    "1. ",
    "2) a",
    "> ",
    "    code",
    "[a]: b",
    "none",
    "__",
    "***",
]
_INLINE: Final = [
    "\\",
    "`a`",
    "&#10;",
    "&amp;",
    "<b>",
    "|",
    "_",
    "*",
    "**Marks**:",
    "**Files-Modified**:x",
    "\x00",
    "\x1b",
    "\u2028",
]
_FIELDS: Final = (
    "**Iteration**: 1 / 5",
    "Files Modified: x",
    "Message ID: X",
    "Fixes completed for feature #101, iteration 1.",
)
_SPACES: Final = ("\n", "\n\n", "\r", " ", "\t", "\u00a0", "\ufeff")
_PIECES: Final = st.one_of(
    st.text(max_size=20), *(st.sampled_from(pieces) for pieces in (_BLOCKS, _INLINE, _FIELDS, _SPACES))
)
_HOSTILE: Final = st.lists(_PIECES, max_size=8).map("".join)
_ENTRIES: Final = st.lists(_HOSTILE.filter(lambda entry: bool(entry.strip())), max_size=12).map(tuple)


@pytest.mark.heavy
@pytest.mark.proves("A22", "A85")
@at_most(40)
@given(summary=_HOSTILE, fixes=_ENTRIES, files=_ENTRIES, marks=_ENTRIES)
@example(
    summary="\n a \n\n\n b\n\n", fixes=("a\n\n\nb\n", " none", "none", "None"), files=("none",), marks=()
)
@example(summary="`", fixes=("a\\\n", "\\"), files=("`a`", "a b.py", "-"), marks=("### Files Modified",))
def test_a_rendered_completion_with_any_text_is_read_back(
    summary: str, fixes: tuple[str, ...], files: tuple[str, ...], marks: tuple[str, ...]
) -> None:
    body = FixCompletion(specialist="test-runner", summary=summary, fixes=fixes, files=files, marks=marks)

    answer = parse(render(message("FIXDONE-101-1", body)))

    assert (answer.summary, answer.fixes, answer.files) == (summary, fixes, files)


@given(st.one_of(st.text(), _HOSTILE, st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape"))))
@example("\ud800")
@example("```\n")
@example("{\ud800")
def test_arbitrary_text_is_refused_without_another_error(text: str) -> None:
    assert violations(text)


@pytest.mark.heavy
@given(st.lists(st.sampled_from(ANSWER.splitlines(keepends=True)), max_size=30).map("".join), _HOSTILE)
def test_a_garbled_answer_is_read_or_refused(garbled: str, insertion: str) -> None:
    for text in (garbled, garbled + insertion + ANSWER, ANSWER + insertion + garbled):
        assert read_or_refused(text)


@given(
    st.recursive(st.one_of(st.none(), st.booleans(), st.text()), lambda inner: st.lists(inner, max_size=3))
)
def test_arbitrary_json_is_refused_without_another_error(value: object) -> None:
    assert violations(json.dumps(AS_JSON | {"fixes": {"a": value}}))


def test_the_sample_completion_is_read_back() -> None:
    assert isinstance(COMPLETION.body, FixCompletion)

    answer = parse(render(COMPLETION))

    assert (answer.summary, answer.fixes) == (COMPLETION.body.summary, COMPLETION.body.fixes)
