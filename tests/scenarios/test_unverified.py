"""Checks that were found and cannot run here: nothing passes without its test runner."""

from typing import Any

import pytest

from fixloop.errors import UsageError
from fixloop.protocol import events as ev
from fixloop.protocol.checks import Unverified
from fixloop.protocol.messages import Decision
from fixloop.protocol.state import WorkflowOutcome
from tests.fixtures.script import fails, passes
from tests.fixtures.validation_stage import Stage
from tests.scenarios.report import report_on

PYTEST = Unverified(
    name="pytest",
    specialist="test-runner",
    reason="not installed in .venv",
    remedy=".venv/bin/pip install pytest",
    blocks=True,
)
RUFF = Unverified(name="ruff", specialist="code-quality", reason="not installed in .venv")


def stage(*unverified: Unverified, **further: Any) -> Stage:
    return Stage({"security": [passes()]}, unverified=unverified, **further).run()


def test_without_its_test_runner_a_workflow_does_not_pass() -> None:
    found = stage(PYTEST, RUFF).state

    assert (found.outcome, found.verdict) == (WorkflowOutcome.UNVERIFIED, "not_verified")
    assert found.escalation is None


def test_a_missing_check_that_does_not_block_allows_a_pass() -> None:
    found = stage(RUFF).state

    assert (found.verdict, found.unverified) == ("passed", (RUFF,))


def test_a_skipped_phase_does_not_verify_a_check_that_did_not_run() -> None:
    stage = Stage({"security": [fails("a")]}, unverified=(PYTEST,), max_iterations=1).run()

    stage.decide(Decision.SKIP)

    assert stage.state.verdict == "not_verified"


def test_a_workflow_in_which_nothing_can_run_ends_at_once() -> None:
    found = Stage({}, unverified=(PYTEST,))

    assert found.state.verdict == "not_verified"
    assert (found.messages, found.pending) == ([], [])
    assert found.notes == ["nothing ran: pytest"]


def test_a_workflow_without_any_check_cannot_start() -> None:
    with pytest.raises(UsageError, match="nothing to check"):
        Stage({})


def test_an_unverified_result_is_not_pushed_automatically() -> None:
    found = stage(PYTEST, push=True)

    assert found.state.push_error == "it is not verified"
    assert [ticket.step for ticket in found.executed] == ["validate"]


def test_a_manual_fix_that_adds_the_runner_verifies_the_workflow() -> None:
    stage = Stage({"security": [fails("a"), passes()]}, unverified=(PYTEST,), max_iterations=1).run()
    stage.decide(Decision.MANUAL_FIX)

    stage.apply(
        ev.ManualFixDone(
            tip="commit-9", tree="tree-9", configuration="changed", specialists=("security", "test-runner")
        )
    )
    stage.run()

    assert (stage.state.verdict, stage.state.unverified) == ("passed", ())


def test_the_report_says_what_ran_and_what_did_not() -> None:
    only, none = report_on(stage(PYTEST)), report_on(Stage({}, unverified=(PYTEST,)))

    assert (only.standing.value, only.verdict) == ("not verified", "not_verified")
    assert only.sentence == (
        "Every specialist that ran passed on the final tree; not verified here: pytest (not installed in .venv)."
    )
    assert none.sentence == "Nothing could run here: pytest (not installed in .venv)."
