"""Records that are no messages: status change, sending, confirmation, waiting state."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given

from fixloop.errors import ProtocolError
from fixloop.protocol import documents
from fixloop.protocol.log import flow_log, full_log, render_entry
from fixloop.protocol.rendering import render, render_whole
from fixloop.protocol.specialists import Role, Status, Transition
from tests.examples import at_most
from tests.fixtures.message_samples import COMPLETION, FIX_REQUEST, NOTHING_CHANGED, REPORT, SAMPLES, START
from tests.fixtures.script import fails, passes
from tests.fixtures.validation_stage import Stage
from tests.unit.hostile import HOSTILE
from tests.unit.test_rendering import blocks, check_golden, said_with, skeleton


def change(role: Role, after: Status = Status.PASS) -> Transition:
    return Transition(
        specialist="test-runner",
        before=Status.RE_CHECKING,
        after=after,
        role=role,
        reason="run 2 passed",
        at=START,
    )


@pytest.mark.proves("A53", "A86")
def test_a_status_change_is_rendered_as_its_golden_file() -> None:
    check_golden("status-change", documents.status_change(change(Role.SPECIALIST)))


@pytest.mark.proves("A53", "K19")
@pytest.mark.parametrize(
    ("role", "entity"),
    [
        (Role.ORCHESTRATOR, "Orchestrator"),
        (Role.SPECIALIST, "test-runner-specialist"),
        (Role.MAIN_AGENT, "Main Agent"),
    ],
)
def test_the_entity_of_a_status_change_is_who_set_it(role: Role, entity: str) -> None:
    assert f"**Entity**: {entity}\n" in documents.status_change(change(role))


@pytest.mark.proves("B26", "A86")
def test_the_sending_of_a_report_is_rendered_as_its_golden_file() -> None:
    check_golden("sending", documents.sending(REPORT, render_whole(REPORT)))


@pytest.mark.proves("B27")
def test_the_whole_report_is_sent_between_an_opening_and_a_closing_line() -> None:
    record = documents.sending(REPORT, render(REPORT))

    opening = "@feature-implementer-main: Validation failure detected during Test Execution validation.\n\n"
    closing = (
        "\n---\n\nPlease review and fix the above issues. Signal completion when ready for re-validation.\n"
    )
    assert f"{opening}{render(REPORT)}{closing}" in record


def test_only_a_failure_report_is_sent_with_a_record() -> None:
    with pytest.raises(ProtocolError, match="FIXREQ-101-1 is not a failure report"):
        documents.sending(FIX_REQUEST, "")


@pytest.mark.proves("B33", "B35", "A86")
def test_the_confirmation_of_a_fix_is_rendered_as_its_golden_file() -> None:
    check_golden("fix-confirmation", documents.confirmation(COMPLETION))


@pytest.mark.proves("B34", "A33")
def test_a_completion_that_is_not_ready_is_not_confirmed() -> None:
    ready, not_ready = (documents.confirmation(each) for each in (COMPLETION, NOTHING_CHANGED))

    assert ready.count("- [x]") == 3
    assert "- [ ] Ready for re-validation" in not_ready
    assert "**Next Action**: Trigger re-validation\n" in ready
    assert "**Next Action**: Await a completion that is ready\n" in not_ready


def test_only_a_completion_is_confirmed() -> None:
    with pytest.raises(ProtocolError, match="VFR-101-test-runner-1 is not a fix completion"):
        documents.confirmation(REPORT)


@dataclass
class Wait:
    """A workflow whose main agent is silent."""

    stage: Stage

    @classmethod
    def begun(cls) -> "Wait":
        return cls(Stage([fails("a"), passes()], answers=None).run())

    @property
    def record(self) -> str | None:
        return documents.waiting(self.stage.state, self.stage.clock)


@pytest.mark.proves("B28", "B29", "A86")
def test_the_waiting_state_is_rendered_as_its_golden_file() -> None:
    wait = Wait.begun()
    wait.stage.advance(512)

    assert wait.record is not None
    check_golden("waiting", wait.record)
    assert "**Time Elapsed**: 08:32\n**Timeout**: 30 minutes\n" in wait.record


@pytest.mark.proves("B28", "K34")
def test_the_elapsed_time_stops_while_the_engine_is_away() -> None:
    wait = Wait.begun()
    wait.stage.advance(300).away(50_000)

    assert wait.record is not None
    assert "**Time Elapsed**: 05:00\n" in wait.record


@pytest.mark.proves("B28")
def test_the_elapsed_time_is_that_since_the_last_report() -> None:
    wait = Wait(Stage([fails("a"), fails("b"), passes()], answers=None).run())
    wait.stage.advance(512).complete()
    wait.stage.run().advance(60)

    assert wait.record is not None
    assert "**Iteration**: 2 / 5\n" in wait.record
    assert "**Time Elapsed**: 01:00\n" in wait.record


@pytest.mark.proves("B28")
def test_there_is_no_waiting_state_once_the_fix_is_in_or_a_person_decides() -> None:
    answered, escalated = Wait.begun(), Wait.begun()
    answered.stage.complete()
    escalated.stage.advance(3600)

    assert answered.record is None
    assert escalated.stage.state.paused
    assert escalated.record is None


def records_with(word: str) -> Iterator[str]:
    """Every record that is made of other people's words, with `word` for all of them."""
    yield documents.status_change(change(Role.SPECIALIST).model_copy(update={"reason": word}))
    yield documents.confirmation(said_with(COMPLETION, word))
    report = said_with(REPORT, word)
    yield documents.sending(report, render(report))
    yield flow_log([said_with(each, word) for each in SAMPLES.values()], "test-runner")
    titled = REPORT.model_copy(update={"summary": word})
    yield full_log([titled], issue=101, feature=word, outcome=None)
    yield render_entry(titled)


@pytest.mark.heavy
@pytest.mark.proves("K41", "A86")
@at_most(25)
@given(HOSTILE.filter(bool))
def test_no_text_can_become_layout_of_a_record(word: str) -> None:
    for hostile, plain in zip(records_with(word), records_with("plain"), strict=True):
        assert skeleton(hostile) == skeleton(plain)
        assert blocks(hostile) == blocks(plain)
