"""Reading rendered messages: every type comes back equal, and an invalid message says what is wrong with it."""

from typing import Final

import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from fixloop.protocol.messages import Message
from fixloop.protocol.rendering import render, render_whole
from tests.examples import at_most
from tests.fixtures.message_samples import ESCALATION, FIX_REQUEST, REPORT, SAMPLES, STILL_FAILING
from tests.parsing import LIMIT_CHARACTERS, LIMIT_LINES, UnreadableMessage, parse
from tests.parsing.document import read_blocks
from tests.unit.hostile import BODIES, HOSTILE, MESSAGES, messages_of

#: Enough to meet each kind of hostile text in each field.
_EXAMPLES: Final = at_most(25)


def refusal(text: str) -> str:
    with pytest.raises(UnreadableMessage) as caught:
        parse(text)
    return str(caught.value)


@pytest.mark.proves("A22")
@pytest.mark.parametrize("name", SAMPLES)
def test_a_rendered_sample_of_each_type_reads_back_equal(name: str) -> None:
    assert parse(render_whole(SAMPLES[name])) == SAMPLES[name]


@pytest.mark.heavy
@pytest.mark.proves("A22", "B9")
@pytest.mark.parametrize("kind", BODIES)
@given(st.data())
@_EXAMPLES
def test_a_message_of_each_type_with_any_text_reads_back_equal(kind: str, data: st.DataObject) -> None:
    message = data.draw(MESSAGES[kind])

    assert parse(render_whole(message)) == message


@pytest.mark.heavy
@pytest.mark.proves("A22", "K9")
@given(messages_of("failure-report", MESSAGES["fix-request"]))
@_EXAMPLES
def test_a_message_reads_back_with_what_is_attached_to_it(message: Message) -> None:
    assert parse(render_whole(message)) == message


@pytest.mark.proves("A22", "K9")
def test_no_more_than_one_message_is_attached() -> None:
    text = render(FIX_REQUEST)

    assert "a third message" in refusal("\n---\n\n".join([text] * 3))
    with pytest.raises(ValidationError, match="nothing attached itself"):
        Message.model_validate({**REPORT.model_dump(), "attached": REPORT.model_dump()})


@pytest.mark.proves("A22")
def test_line_ends_of_other_systems_are_forgiven() -> None:
    text = render_whole(REPORT)

    for changed in (text.replace("\n", "\r\n"), "\ufeff" + text, text.rstrip("\n"), text + "\n\n"):
        assert parse(changed) == REPORT


@pytest.mark.proves("A21", "A22")
@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("## Validation Failure Report", "no message here"),
        ("**Message ID**: VFR-101-test-runner-1", 'lacks the field "Message ID"'),
        ("**From**: @validation-orchestrator", "sender"),
        ("### Failure Summary", 'lacks the section "Failure Summary"'),
        ("**Severity**: Critical", 'section "Failure Summary" (line 18) lacks the field "Severity"'),
        ("### Suggested Fixes", 'lacks the section "Suggested Fixes"'),
        ("- **Line**: 41", 'lacks the field "Line"'),
        ("**Sent by**: Validation Orchestrator (recursive-communicator skill)", "reads"),
    ],
)
def test_what_is_missing_is_named(line: str, named: str) -> None:
    text = render(REPORT)

    assert f"\n{line}\n" in f"\n{text}"
    assert named in refusal(f"\n{text}".replace(f"\n{line}\n", "\n", 1))


@pytest.mark.proves("A22")
def test_a_message_without_its_envelope_is_refused() -> None:
    whole = render(REPORT)

    assert "lacks its envelope" in refusal(whole[: whole.index("<!-- fixloop")])
    assert "lacks its envelope" in refusal(whole.replace('{"uid"', '{"uid'))


@pytest.mark.proves("A40", "B42")
@pytest.mark.parametrize(
    ("written", "forged"),
    [
        ("**Current Failures**: 2", "**Current Failures**: 3"),
        ("**Persistent Failures**: 1", "**Persistent Failures**: 2"),
        ("- Failures resolved: 1", "- Failures resolved: 0"),
        ("**Iteration**: 2 / 5", "**Iteration**: 3 / 5"),
    ],
)
def test_a_count_that_disagrees_with_its_list_is_refused(written: str, forged: str) -> None:
    text = render(STILL_FAILING)

    assert written in text
    assert forged in refusal(text.replace(written, forged, 1))


@pytest.mark.proves("A22", "K3")
def test_a_message_under_another_s_id_is_refused() -> None:
    text = render(FIX_REQUEST)

    assert "another iteration" in refusal(text.replace("FIXREQ-101-1", "FIXREQ-101-2"))
    assert "another issue" in refusal(text.replace("FIXREQ-101-1", "FIXREQ-102-1"))
    assert "another type" in refusal(text.replace("FIXREQ-101-1", "FIXDONE-101-1"))
    assert "no message id" in refusal(text.replace("FIXREQ-101-1", "FIXREQ 101"))
    assert "another specialist" in refusal(
        render(ESCALATION).replace("ESC-101-test-runner", "ESC-101-security")
    )


@given(
    st.one_of(
        st.text(), HOSTILE, st.sampled_from(sorted(SAMPLES)).map(lambda name: render(SAMPLES[name])[7:])
    )
)
def test_any_other_text_is_refused_without_another_error(text: str) -> None:
    assert refusal(text)


@given(st.sampled_from(sorted(SAMPLES)), st.integers(0, 60), HOSTILE)
@_EXAMPLES
def test_a_line_that_was_changed_is_refused_or_says_the_same(name: str, number: int, insertion: str) -> None:
    rows = render(SAMPLES[name]).split("\n")
    rows.insert(min(number, len(rows) - 1), insertion)

    try:
        found = render(parse("\n".join(rows)))
    except UnreadableMessage:
        return
    assert found == "\n".join(rows).replace("\r\n", "\n").rstrip("\n") + "\n"


@pytest.mark.proves("A22")
def test_the_size_of_what_is_read_is_bounded() -> None:
    assert f"the limit is {LIMIT_CHARACTERS}" in refusal("x" * (LIMIT_CHARACTERS + 1))
    assert f"the limit is {LIMIT_LINES}" in refusal("\n" * (LIMIT_LINES + 1))


@pytest.mark.proves("A22")
@pytest.mark.parametrize("mark", ["> ", "- ", "1. ", "  - "])
def test_deep_nesting_is_read_to_a_fixed_depth(mark: str) -> None:
    depth = 0
    found = read_blocks(mark * 20_000 + "x")
    while found and (items := getattr(found[0], "items", ())):
        found, depth = items[0].blocks, depth + 1

    assert depth <= 12
