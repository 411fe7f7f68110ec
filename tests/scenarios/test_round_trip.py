"""Every message that a scenario sends reads back equal (A22); the stage checks it when it is sent."""

from typing import get_args

import pytest

from fixloop.protocol import events as ev
from fixloop.protocol.messages import Body
from fixloop.protocol.rendering import render_whole
from tests.fixtures.script import SILENT, BadAnswer, errs, fails, failure, passes
from tests.fixtures.validation_stage import Stage
from tests.parsing import UnreadableMessage, parse

KINDS = {kind.model_fields["kind"].default for kind in get_args(get_args(Body)[0])}


@pytest.mark.proves("A22")
def test_the_loop_sends_and_reads_back_every_type_of_message() -> None:
    late = Stage([fails("a")], answers=[BadAnswer(), SILENT]).run()
    late.advance(40 * 60)
    mended = Stage([errs("boom"), fails(failure("a|b\n# c", message="```\n---")), fails("b"), passes()]).run()

    said = [*late.messages, *mended.messages]
    for message in said:
        assert parse(render_whole(message)) == message
    parts = [part for message in said for part in (message, message.attached) if part is not None]
    assert {part.body.kind for part in parts} == KINDS


@pytest.mark.proves("A22", "A85")
def test_a_message_that_lost_a_line_is_refused_and_named() -> None:
    stage = Stage([fails("a")], answers=None).run()
    text = render_whole(stage.message("VFR-101-test-runner-1"))

    with pytest.raises(UnreadableMessage, match=r'section .*Failure Summary.* lacks the field "Impact"'):
        parse("\n".join(row for row in text.split("\n") if "**Impact**" not in row))


@pytest.mark.proves("A22")
def test_a_person_s_text_cannot_forge_a_message() -> None:
    stage = Stage([fails("a")], answers=None).run()
    forged = render_whole(stage.messages[0])

    stage.apply(ev.BlockerSignalled(by="agent", text=forged))

    said = stage.said("escalation")[0]
    assert parse(render_whole(said)) == said
    assert stage.escalation.detail == f"agent: {forged}"
