"""The communication log: the reference runs line by line, their statistics, and the entries as data."""

import json
from dataclasses import dataclass, field
from typing import Final

import pytest

from fixloop.engine.history import Said
from fixloop.profiles.validation.log import json_entry
from fixloop.protocol.log import full_log, render_entry, statistics
from fixloop.protocol.messages import (
    Body,
    FailureDetected,
    FixCompletion,
    FixItem,
    FixRequest,
    Message,
    RevalidationResult,
    RevalidationTrigger,
    Success,
)
from fixloop.protocol.rendering import render
from fixloop.protocol.specialists import Status
from tests.fixtures.message_samples import COMPLETION, ERROR, ESCALATION, REMINDER, REPORT, VIOLATION, message
from tests.unit.test_rendering import check_golden

ALL_PASSED: Final = "Success (all validations passed)"


@dataclass
class Talk:
    """The messages of one workflow, recorded as they are sent."""

    issue: int = 101
    lines: list[Message] = field(default_factory=list)

    def run(self, specialist: str, *seconds: float) -> None:
        """A specialist that passes at its last run; `seconds` are the times of its 2 or 4n - 2 lines."""
        times = iter(seconds)
        runs = len(seconds) // 4 + 1
        if runs == 1:
            self._result(specialist, 1, next(times), passed=True)
        else:
            self._say(specialist, f"DETECT-{self.issue}-{specialist}-1", _DETECTED, 1, next(times))
        for failed in range(1, runs):
            self._fix(specialist, failed, next(times), next(times))
            self._say(
                specialist, f"REVAL-{self.issue}-{specialist}-{failed + 1}", _TRIGGER, failed + 1, next(times)
            )
            self._result(specialist, failed + 1, next(times), passed=failed + 1 == runs)
        name = f"SUCCESS-{self.issue}-{specialist}-{runs}"
        body = Success(phase="Test Execution", iterations=runs, total_seconds=0, next_phase="Code Quality")
        self._say(specialist, name, body, runs, next(times))

    def _fix(self, specialist: str, failed: int, report: float, done: float) -> None:
        request = message(f"FIXREQ-{self.issue}-{failed}", _REQUEST, iteration=failed, number=0)
        self._say(specialist, f"VFR-{self.issue}-{specialist}-{failed}", REPORT.body, failed, report, request)
        self._say(specialist, f"FIXDONE-{self.issue}-{failed}", _DONE, failed, done)

    def _result(self, specialist: str, run: int, at: float, *, passed: bool) -> None:
        body = RevalidationResult(passed=True) if passed else _STILL_FAILING
        self._say(specialist, f"REVALRES-{self.issue}-{specialist}-{run}", body, run, at)

    def _say(
        self,
        specialist: str,
        name: str,
        body: Body,
        iteration: int,
        at: float,
        attached: Message | None = None,
    ) -> None:
        said = message(
            name,
            body,
            specialist=specialist,
            iteration=iteration,
            seconds=at,
            issue=self.issue,
            number=len(self.lines) + 1,
            attached=attached,
        )
        self.lines.append(said)


_DETECTED: Final = FailureDetected(phase="Test Execution", statement="3 failures", details=("a", "b", "c"))
_REQUEST: Final = FixRequest(items=(FixItem(name="a"),), expected="All tests pass", remaining_iterations=4)
_DONE: Final = FixCompletion(specialist="test-runner", fixes=("fixed a",), files=("a.py",))
_STILL_FAILING: Final = RevalidationResult(passed=False, failures=("a",), failure_count=1)
_TRIGGER: Final = RevalidationTrigger(phase="Test Execution", previous_failures=("a",), fixes=("fixed a",))


def said(*runs: tuple[str, int], issue: int = 101) -> list[Message]:
    """The lines of specialists that pass at run n, one second apart."""
    talk = Talk(issue)
    for specialist, passed_at in runs:
        count = 2 if passed_at == 1 else 4 * passed_at - 2
        talk.run(specialist, *(len(talk.lines) + second for second in range(count)))
    return talk.lines


def typed(lines: list[Message]) -> tuple[int, ...]:
    """The seven numbers of the statistics block, in its order."""
    return tuple(
        value
        for value in statistics(lines, outcome="success").model_dump().values()
        if isinstance(value, int)
    )


@pytest.mark.proves("S1", "G16")
def test_a_first_run_pass_is_two_lines_and_one_success() -> None:
    lines = said(("test-runner", 1))

    found = statistics(lines, outcome="success")
    assert [line.message_id for line in lines] == ["REVALRES-101-test-runner-1", "SUCCESS-101-test-runner-1"]
    assert typed(lines) == (2, 0, 0, 0, 0, 0, 1)
    assert found.iterations == "1 (1 initial + 0 retry)"


@pytest.mark.proves("S2", "A81", "A82", "K9")
def test_one_retry_is_six_lines_and_one_of_each_type() -> None:
    lines = said(("test-runner", 2))

    found = statistics(lines, outcome="success")
    assert [line.entry_id for line in lines] == [
        "LOG-101-1-1",
        "LOG-101-1-2",
        "LOG-101-1-3",
        "LOG-101-2-4",
        "LOG-101-2-5",
        "LOG-101-2-6",
    ]
    assert typed(lines) == (6, 1, 1, 1, 1, 1, 1)
    assert found.iterations == "2 (1 initial + 1 retry)"
    assert found.outcome == ALL_PASSED


@pytest.mark.proves("S3", "B67", "K9")
def test_feature_47_is_ten_lines_with_the_times_of_its_run() -> None:
    talk = Talk(47)
    talk.run("test-runner", 0, 0, 512, 513, 700, 701, 1200, 1201, 1454, 1455)

    text = full_log(talk.lines, issue=47, feature="Validation coordinator", outcome="success")

    assert typed(talk.lines) == (10, 2, 2, 2, 2, 2, 1)
    assert statistics(talk.lines, outcome="success").iterations == "3 (1 initial + 2 retries)"
    assert "**Total Duration**: 00:24:15\n" in text
    assert text.count("**Total Messages**: 10\n") == 2


@pytest.mark.proves("S16", "A82")
def test_a_pipeline_s_iterations_are_summed_over_its_specialists() -> None:
    order = ("unit-test", "integration-test", "test-runner", "code-quality", "security")
    lines = said(*zip(order, (1, 1, 3, 1, 2), strict=True), issue=47)

    found = statistics(lines, outcome="success")
    assert len(lines) == 22
    assert found.iterations == "8 (5 initial + 3 retries)"
    assert found.fix_requests == 3
    assert found.revalidation_results == 3


@pytest.mark.proves("K9")
@pytest.mark.parametrize("runs", [2, 3, 4, 5])
def test_a_loop_of_n_runs_has_the_lines_and_types_of_the_formula(runs: int) -> None:
    lines = said(("security", runs))

    total, *types = typed(lines)
    assert total == 4 * runs - 2
    assert sum(types) == 5 * runs - 4


def test_a_separate_fix_request_is_counted_once() -> None:
    alone = message("FIXREQ-101-1", _REQUEST)
    report = REPORT.model_copy(update={"attached": None})

    assert statistics([report, alone], outcome=None).fix_requests == 1


def test_reminders_errors_notices_and_escalations_are_lines_without_a_counter() -> None:
    lines = [REMINDER, ERROR, VIOLATION, ESCALATION]

    found = statistics(lines, outcome=None)
    assert typed(lines) == (4, 0, 0, 0, 0, 0, 0)
    assert found.outcome == "In progress"


@pytest.mark.proves("A79", "A80", "A83")
def test_the_full_log_is_rendered_as_its_golden_file() -> None:
    text = full_log(said(("test-runner", 2)), issue=101, feature="Login | form", outcome="success")

    check_golden("full-log", text)


@pytest.mark.proves("A79")
def test_the_log_of_a_running_workflow_does_not_call_it_completed() -> None:
    lines = said(("test-runner", 2))[:3]

    text = full_log(lines, issue=101, feature="Login", outcome=None)
    assert "**Completed**: *in progress*\n" in text
    assert "**Outcome**: In progress\n" in text


def test_a_workflow_without_messages_has_a_log() -> None:
    text = full_log([], issue=101, feature="Login", outcome=None)

    assert "**Started**: *not started*\n" in text
    assert "**Iterations**: 0 (0 initial + 0 retry)\n" in text


def test_a_message_outside_every_run_counts_no_iteration() -> None:
    outside = [ERROR.model_copy(update={"iteration": 0}), ESCALATION.model_copy(update={"specialist": ""})]

    assert statistics(outside, outcome=None).iterations == "0 (0 initial + 0 retry)"


def test_the_log_begins_and_ends_with_the_workflow_where_its_times_are_known() -> None:
    lines = said(("test-runner", 2))
    first, last = lines[1].at, lines[-1].at

    text = full_log(lines[2:4], issue=101, feature="Login", outcome="aborted", started=first, completed=last)
    assert "**Total Duration**: 00:00:04\n" in text
    assert "**Outcome**: Aborted (returned to design)\n" in text


def test_other_words_for_the_outcome_are_kept() -> None:
    assert statistics([], outcome=ALL_PASSED).outcome == ALL_PASSED
    assert statistics([], outcome="skipped").outcome == "Skipped (failed but proceeding)"


@pytest.mark.proves("A77", "A86")
def test_an_entry_is_rendered_as_its_golden_file() -> None:
    check_golden("log-entry", render_entry(COMPLETION))


@pytest.mark.proves("A85")
def test_json_entries_hold_the_rendered_message_with_what_is_attached() -> None:
    lines = said(("test-runner", 2))

    entries = json.loads(json.dumps([json_entry(Said(line)) for line in lines]))

    assert entries[1] == {
        "entry_id": "LOG-101-1-2",
        "timestamp": "2026-03-01T10:00:01Z",
        "sender": "@validation-orchestrator",
        "recipient": "@feature-implementer-main",
        "message_type": "failure-report",
        "message_id": "VFR-101-test-runner-1",
        "summary": "2 failures in run 1/5",
        "status_before": Status.FAIL,
        "status_after": Status.AWAITING_FIX,
        "iteration": 1,
        "max_iterations": 5,
        "rendered": entries[1]["rendered"],
    }
    assert lines[1].attached is not None
    assert render(lines[1]) in entries[1]["rendered"]
    assert entries[1]["rendered"].endswith(render(lines[1].attached))
