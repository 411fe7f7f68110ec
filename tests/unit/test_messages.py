"""Incomplete messages, which are refused before delivery (A21)."""

from typing import Any

import pytest
from pydantic import ValidationError

from fixloop.protocol.messages import Message
from fixloop.protocol.outcome import Draft
from tests.fixtures.message_samples import FIX_REQUEST, PASSED, REMINDER, SAMPLES, STILL_FAILING, SUCCESS
from tests.fixtures.script import fails
from tests.fixtures.validation_stage import Stage


def changed(message: Message, **body: Any) -> dict[str, Any]:
    """`message` as data with other facts in its body."""
    data = message.model_dump(mode="json")
    return data | {"body": data["body"] | body}


@pytest.mark.proves("A21", "A15")
@pytest.mark.parametrize("name", SAMPLES)
def test_a_message_without_a_header_field_is_refused(name: str) -> None:
    data = SAMPLES[name].model_dump(mode="json")

    for field in ("message_id", "sender", "recipient", "at", "priority"):
        for incomplete in ({key: data[key] for key in data if key != field}, data | {field: ""}):
            with pytest.raises(ValidationError, match=field):
                Message.model_validate(incomplete)


@pytest.mark.proves("A21", "A7")
@pytest.mark.parametrize(
    ("name", "section", "empty"),
    [
        ("failure-detected", "details", []),
        ("failure-report", "failures", []),
        ("failure-report", "phase", ""),
        ("fix-request", "items", []),
        ("fix-request", "expected", ""),
        ("fix-completion", "specialist", ""),
        ("revalidation-trigger", "phase", ""),
        ("revalidation-result-fail", "failures", []),
        ("success", "next_phase", ""),
        ("escalation", "phase", ""),
        ("timeout-reminder", "operation", ""),
        ("error-notification", "error", ""),
        ("error-notification", "recovery", []),
        ("protocol-violation", "violations", []),
    ],
)
def test_a_message_with_an_empty_required_section_is_refused(name: str, section: str, empty: Any) -> None:
    with pytest.raises(ValidationError):
        Message.model_validate(changed(SAMPLES[name], **{section: empty}))


@pytest.mark.proves("A39", "A40")
def test_a_pass_has_no_failures_and_a_fail_lists_its_own() -> None:
    with pytest.raises(ValidationError, match="a PASS has no failures"):
        Message.model_validate(changed(PASSED, failures=["a"]))
    with pytest.raises(ValidationError, match="a FAIL lists its failures"):
        Message.model_validate(changed(STILL_FAILING, failures=[]))


@pytest.mark.proves("A21")
def test_an_incomplete_message_is_never_sent() -> None:
    stage = Stage([fails("a")], answers=None).run()
    draft = Draft(stage.state, stage.now)

    with pytest.raises(ValidationError, match="message_id"):
        draft.say(SUCCESS.body, "", summary="x", recipient="@feature-implementer-main")

    assert draft.outcome().messages == ()
    assert draft.state.lines == stage.state.lines


@pytest.mark.proves("A22", "G5")
def test_durations_are_stored_as_shown() -> None:
    late = changed(REMINDER, elapsed_seconds=1800.2, threshold_seconds=1800.0, window_seconds=299.9999)
    done = changed(SAMPLES["fix-completion"], duration_seconds=512.9)

    body = Message.model_validate(late).body.model_dump()
    assert (body["elapsed_seconds"], body["threshold_seconds"], body["window_seconds"]) == (1801, 1800, 300)
    assert Message.model_validate(done).body.model_dump()["duration_seconds"] == 512


def test_an_older_fix_request_of_sentences_still_loads() -> None:
    data = changed(FIX_REQUEST, items=["a (tests/test_a.py:1): a broke"])

    body = Message.model_validate(data).body.model_dump()
    assert body["items"][0]["name"] == "a (tests/test_a.py:1): a broke"
