"""The result of a validation loop that worked for others: as PHASE_RESULT, as documents, as a review."""

import json
from typing import Any

import pytest

from fixloop.engine.verdicts import go_on
from fixloop.profiles.cycle.agent_output import phase_answer, phase_documents
from fixloop.profiles.cycle.phase_result import read_result
from fixloop.profiles.cycle.records import ResultStatus
from fixloop.profiles.handoff.agent_output import review_answer
from fixloop.profiles.handoff.returns import Returned, check_return, read_return
from fixloop.protocol.checks import Unverified
from fixloop.protocol.events import DecisionMade, RunFinished
from fixloop.protocol.messages import Decision
from fixloop.protocol.state import State
from tests.fixtures.command_stage import Agents
from tests.fixtures.store_world import MemoryWorld

PARENT = "0a1b2c3d-47-1.vas.1.1"
CYCLE_ID = "cycle-v1-x"
JUDGES: dict[str, Any] = {"fixer": "outside", "max_iterations": 1, "parent": PARENT}
BOTH = ("unit-test", "security")


def ended(script: str, *, specialists: tuple[str, ...] = BOTH, **further: Any) -> State:
    """A loop at its end; if it judges for others, failures are left to them."""
    agents = Agents(MemoryWorld().store)
    workflow = agents.start(name=script, specialists=specialists, **further)
    state = agents.run(workflow)
    while (decision := go_on(state)) is not None:
        agents.apply(workflow, DecisionMade(decision=decision))
        state = agents.run(workflow)
    return state


@pytest.mark.proves("R14")
def test_a_loop_without_a_fixer_judges_every_phase_once_and_never_escalates() -> None:
    state = ended("unit-test: ab; security: c", **JUDGES)

    assert state.ended
    assert [len(entry.runs) for entry in state.specialists if entry.applicable] == [1, 1]


@pytest.mark.parametrize("further", [{"parent": ""}, {"fixer": "command"}, {"agent": "coder"}])
def test_a_loop_with_a_fixer_or_without_a_parent_escalates_to_a_person(further: dict[str, Any]) -> None:
    state = ended("unit-test: ab", **JUDGES | further)

    assert not state.ended
    assert go_on(state) is None


def test_a_phase_that_could_not_be_judged_waits_for_a_person() -> None:
    agents = Agents(MemoryWorld().store)
    workflow = agents.start(script="-", **JUDGES)
    error: dict[str, Any] = {
        "specialist": "test-runner",
        "iteration": 1,
        "attempt": 9,
        "outcome": "error",
        "tree": "tree-0",
    }

    state = agents.apply(workflow, RunFinished(step="validate", error="no such tool", **error))

    assert state.paused
    assert go_on(state) is None
    agents.apply(workflow, DecisionMade(decision=Decision.SKIP))
    let_pass = read_result(phase_answer(agents.run(workflow), "vas", CYCLE_ID))
    assert let_pass.status is ResultStatus.SUCCESS
    assert json.loads(review_answer(agents.run(workflow)))["status"] == "approved"


@pytest.mark.proves("C33", "C53")
def test_a_failed_loop_is_a_failed_phase_with_every_failure_as_a_blocker() -> None:
    result = read_result(phase_answer(ended("unit-test: ab; security: c", **JUDGES), "vas", CYCLE_ID))

    assert (result.phase, result.status) == ("vas", ResultStatus.FAILED)
    assert [issue.split(" (")[0] for issue in result.issues] == [
        *("blocker: unit-test: a", "blocker: unit-test: b", "blocker: security: c")
    ]
    assert result.summary == "failed: 0 of 2 specialists passed on the final tree"
    assert result.field("test_results") == "unit-test failed with 2 in run 1; security failed with 1 in run 1"


@pytest.mark.proves("C12", "C33")
def test_a_passed_loop_is_a_success_with_the_documents_of_vas() -> None:
    state = ended("unit-test: a -", fixer="command", parent=PARENT)

    result, files = (read_result(phase_answer(state, "vas", CYCLE_ID)), phase_documents(state, "vas"))

    assert (result.status, result.issues) == (ResultStatus.SUCCESS, ())
    assert [path.rpartition("/")[2] for path in result.files_written] == list(files)
    assert list(files) == ["validation.md", "summary.md", "test-results.json"]
    told = json.loads(files["test-results.json"])
    assert told["verdict"] == "passed"
    assert [(one["name"], one["runs"], one["passed"]) for one in told["specialists"]] == [
        *(("unit-test", 2, True), ("security", 1, True))
    ]


def test_a_skipped_phase_is_a_success_with_known_issues() -> None:
    agents = Agents(MemoryWorld().store)
    workflow = agents.start(script="a", parent=PARENT)
    agents.run(workflow)
    agents.apply(workflow, DecisionMade(decision=Decision.SKIP))

    state = agents.run(workflow)

    result = read_result(phase_answer(state, "vas", CYCLE_ID))
    assert result.status is ResultStatus.SUCCESS
    assert [issue[:20] for issue in result.issues] == ["major: test-runner: "]
    assert json.loads(review_answer(state))["status"] == "approved"


@pytest.mark.proves("D54", "D56")
def test_a_failed_loop_is_a_review_that_needs_fixes() -> None:
    said = Returned.model_validate(read_return(review_answer(ended("unit-test: ab", **JUDGES))))

    check_return("reviewer", said)
    assert (said.status, said.issue_count) == ("needs_fixes", 2)
    assert isinstance(said.issues, tuple)
    assert said.issues[0]["description"].startswith("a (test_scripted.py:1) - AssertionError")


@pytest.mark.proves("D54")
def test_a_passed_loop_is_a_review_that_approves() -> None:
    said = Returned.model_validate(read_return(review_answer(ended("-", parent=PARENT))))

    check_return("reviewer", said)
    assert (said.status, said.issue_count) == ("approved", 0)


def test_an_answer_lists_at_most_fifty_issues() -> None:
    state = ended("unit-test: 80; security: 20", **JUDGES)

    issues = read_result(phase_answer(state, "vas", CYCLE_ID)).issues
    assert len(issues) == 51
    assert issues[-1] == "blocker: 50 more failures"
    assert len(json.loads(review_answer(state))["issues"]) == 50


def test_a_loop_without_its_test_runner_is_no_success_and_names_what_is_missing() -> None:
    missing = Unverified(
        name="pytest",
        specialist="test-runner",
        reason="not installed",
        remedy="pip install pytest",
        blocks=True,
    )
    state = ended("unit-test: -", specialists=("unit-test",), unverified=(missing,), **JUDGES)

    result = read_result(phase_answer(state, "vas", CYCLE_ID))
    review = Returned.model_validate(read_return(review_answer(state)))

    assert result.status is ResultStatus.FAILED
    assert result.issues == (
        "blocker: test-runner: pytest does not run here: not installed; pip install pytest",
    )
    assert result.summary == "not verified: 1 of 1 specialist passed on the final tree"
    check_return("reviewer", review)
    assert json.loads(review_answer(state))["issues"][0]["description"].startswith("pytest does not run here")
