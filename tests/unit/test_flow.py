"""The flow log of one specialist's loop: the seed's reference run, and every other line that a loop can have."""

import pytest

from fixloop.errors import ProtocolError
from fixloop.protocol.log import flow_log
from fixloop.protocol.messages import Message
from tests.fixtures.message_samples import FIX_REQUEST
from tests.fixtures.script import SILENT, BadAnswer, Fix, errs, fails, passes
from tests.fixtures.validation_stage import Stage
from tests.unit.test_rendering import check_golden


def one_retry() -> list[Message]:
    """The reference run of the seed: one failure, a fix of 08:32, a pass."""
    run = Stage([fails("a", "b"), passes()], answers=[Fix(takes_seconds=512)], issue=47).run()
    return run.messages


@pytest.mark.proves("B53", "B55", "B56", "A86")
def test_the_reference_run_is_rendered_as_its_golden_file() -> None:
    flow = flow_log(one_retry(), "test-runner")

    check_golden("flow-log", flow)
    assert "**Entry ID**: LOG-47-test-runner-2-20260302T090832Z\n" in flow
    assert "- Duration: 08:32\n" in flow
    totals = (
        "**Total Messages**: 6\n**Total Iterations**: 2\n**Total Duration**: 00:08:32\n**Outcome**: Success\n"
    )
    assert flow.endswith(totals)


@pytest.mark.proves("B54")
def test_the_three_participants_are_named_with_their_handles() -> None:
    flow = flow_log(one_retry(), "test-runner")

    assert "- Validation Orchestrator (@validation-orchestrator)\n" in flow
    assert "- Test Runner Specialist (@test-runner-specialist)\n" in flow
    assert "- Main Agent (@feature-implementer-main)\n" in flow


@pytest.mark.proves("B53")
def test_a_flow_has_one_specialist() -> None:
    stage = Stage({"unit-test": [passes()], "test-runner": [fails("a"), passes()]}).run()

    assert "**Total Messages**: 2\n" in flow_log(stage.messages, "unit-test")
    assert "✅ All checks passed" in flow_log(stage.messages, "unit-test")
    assert "**Total Messages**: 6\n" in flow_log(stage.messages, "test-runner")


@pytest.mark.proves("B55", "B16")
def test_reminders_errors_notices_and_escalations_are_part_of_the_flow() -> None:
    late = Stage([fails("a")], answers=[SILENT], fixer="command").run().advance(3600).messages
    broken = Stage([errs(), errs()]).run().messages
    garbled = Stage([fails("a"), passes()], answers=[BadAnswer(), Fix()], fixer="command").run().messages

    assert "Orchestrator → Main Agent: Timeout reminder\n- Operation: main-agent-fix\n" in flow_log(
        late, "test-runner"
    )
    assert "Orchestrator → User: Escalation\n" in flow_log(late, "test-runner")
    assert "- Error: Specialist Failure\n- Recovered: No\n" in flow_log(broken, "test-runner")
    assert "- Violations: section Files Modified is missing\n" in flow_log(garbled, "test-runner")
    assert flow_log(broken, "test-runner").endswith("**Outcome**: Escalated (awaiting decision)\n")


@pytest.mark.proves("B55")
def test_a_failing_result_counts_remaining_failures_and_shortens_long_lists() -> None:
    stage = Stage([fails("a", "b", "c", "d"), fails("a")], answers=None).run()
    stage.complete()
    stage.run()

    flow = flow_log(stage.messages, "test-runner")
    assert "- Status: ❌ 1 failure remains\n- Iteration: 2/5\n" in flow
    assert "; and 1 more\n" in flow
    assert flow.endswith("**Outcome**: In progress\n")


def test_a_separate_fix_request_has_a_line() -> None:
    flow = flow_log([FIX_REQUEST], "test-runner")

    assert "Orchestrator → Main Agent: Fix request sent (Iteration 1/5)\n- Request ID: FIXREQ-101-1\n" in flow


def test_a_specialist_without_a_message_has_no_flow() -> None:
    with pytest.raises(ProtocolError, match="security has no line in this log"):
        flow_log(one_retry(), "security")
