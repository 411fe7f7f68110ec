"""One complete message of each type, and a way to make lines of a log by hand."""

from datetime import UTC, datetime, timedelta
from typing import Final

from fixloop.protocol.failures import Comparison, Failure, Severity
from fixloop.protocol.messages import (
    MAIN_AGENT,
    ORCHESTRATOR,
    USER,
    Attempt,
    Body,
    Decision,
    ErrorNotification,
    ErrorType,
    Escalation,
    FailureDetected,
    FailureReport,
    FixCompletion,
    FixItem,
    FixRequest,
    HistoryRow,
    Message,
    PersistentFailure,
    Priority,
    ProtocolViolation,
    Reason,
    RevalidationResult,
    RevalidationTrigger,
    Success,
    TimeoutReminder,
)
from fixloop.protocol.statuses import Status

START: Final = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
SPECIALIST: Final = "@test-runner-specialist"
_PATHS: Final = {
    "failure-detected": (SPECIALIST, ORCHESTRATOR),
    "fix-completion": (MAIN_AGENT, ORCHESTRATOR),
    "revalidation-trigger": (ORCHESTRATOR, SPECIALIST),
    "revalidation-result": (SPECIALIST, ORCHESTRATOR),
}

_SUMMARIES: Final = {
    "failure-detected": "Test Execution: 2 failures",
    "failure-report": "2 failures in run 1/5",
    "fix-request": "Fix 2 failures of Test Execution",
    "fix-completion": "The order of the calls was wrong (2 files)",
    "revalidation-trigger": "Run 2/5 of Test Execution",
    "revalidation-result": "Run 2/5 is over",
    "success": "Test Execution passed; next: Code Quality",
    "escalation": "Timeout exceeded: main-agent-fix ran for 35:01",
    "timeout-reminder": "main-agent-fix is late",
    "error-notification": "Specialist Failure: pytest could not start",
    "protocol-violation": 'The answer does not fit: missing section "Files Modified"',
}


def message(
    message_id: str,
    body: Body,
    *,
    iteration: int = 1,
    number: int = 1,
    seconds: float = 0,
    issue: int = 101,
    specialist: str = "test-runner",
    recipient: str = "",
    priority: Priority = Priority.HIGH,
    statuses: tuple[Status, Status] = (Status.FAIL, Status.AWAITING_FIX),
    attached: Message | None = None,
) -> Message:
    """A message on its usual way, `seconds` after START."""
    sender, usual = _PATHS.get(body.kind, (ORCHESTRATOR, MAIN_AGENT))
    handle = f"@{specialist}-specialist"
    return Message(
        uid=f"uid-{message_id}",
        message_id=message_id,
        sender=sender.replace(SPECIALIST, handle),
        recipient=(recipient or usual).replace(SPECIALIST, handle),
        at=START + timedelta(seconds=seconds),
        priority=priority,
        issue=issue,
        specialist=specialist,
        iteration=iteration,
        max_iterations=5,
        number=number,
        summary=_SUMMARIES[body.kind],
        status_before=statuses[0],
        status_after=statuses[1],
        body=body,
        attached=attached,
    )


FAILURES: Final = (
    Failure(
        name="test_validation_coordinator.py::test_sequential_invocation",
        file="tests/test_validation_coordinator.py",
        line=41,
        error_type="AssertionError",
        message="assert [1, 3] == [1, 2, 3]\n  At index 1 diff: 3 != 2\n```\n## not a heading\n```",
        check="pytest",
        severity=Severity.CRITICAL,
        context="captured log:\nWARNING step 2 skipped",
        suggestion="Invoke the second specialist before the third",
        frame="src/coordinator.py:7",
        source="  6 def run(steps):\n> 7     return [steps[0], steps[2]]",
        rerun="python -m pytest tests/test_validation_coordinator.py::test_sequential_invocation",
        id="F1",
        alike=3,
        others=(
            "F2 test_validation_coordinator.py::test_a[1]",
            "F3 test_validation_coordinator.py::test_a[2]",
        ),
    ),
    Failure(name="coverage", error_type="below gate", measure="73.2", id="F4"),
)
FIX_REQUEST: Final = message(
    "FIXREQ-101-1",
    FixRequest(
        items=(
            FixItem(
                name="test_validation_coordinator.py::test_sequential_invocation",
                file="tests/test_validation_coordinator.py",
                line=41,
                priority=Severity.CRITICAL,
            ),
            FixItem(name="coverage"),
        ),
        goal="Make 7 failing tests of Test Execution pass",
        further=3,
        commands=("python -m pytest tests",),
        tried=(
            Attempt(
                iteration=1,
                fixes=("swapped the calls",),
                said="I believe that the order is the problem.\n```",
                diff="-    a()\n+    b()",
                resolved=2,
                left=3,
                new=("tests/test_b.py::test_b",),
                new_count=1,
            ),
        ),
        older=2,
        approach=(
            "Begin with what is critical: test_sequential_invocation",
            "Test the branches of __init__.py",
        ),
        expected="All tests pass, coverage ≥80%",
        remaining_iterations=4,
    ),
)
REPORT: Final = message(
    "VFR-101-test-runner-1",
    FailureReport(
        feature="Validation coordinator",
        phase="Test Execution",
        specialist_handle=SPECIALIST,
        failure_type="Test Failures",
        severity=Severity.CRITICAL,
        next_phase="Code Quality",
        failures=FAILURES,
        further=3,
        coverage="73.2% (target: ≥80%)",
        fix_limit_seconds=1800,
        marks=("tests/conftest.py was changed by the last fix",),
    ),
    number=2,
    attached=FIX_REQUEST,
)
DETECTED: Final = message(
    "DETECT-101-test-runner-1",
    FailureDetected(
        phase="Test Execution",
        statement="2 failures",
        details=("test_validation_coordinator.py::test_sequential_invocation - AssertionError", "coverage"),
        coverage="73.2% (target: ≥80%)",
    ),
    statuses=(Status.IN_PROGRESS, Status.FAIL),
)
COMPLETION: Final = message(
    "FIXDONE-101-1",
    FixCompletion(
        specialist="test-runner",
        summary="The order of the calls was wrong.\n\nBoth branches are tested now.",
        fixes=("Swapped the two calls", "Added a test\nfor the second branch"),
        files=("src/validation_coordinator.py", "src/__init__.py"),
        duration_seconds=512,
        marks=("tests/conftest.py",),
        unchanged=("src/coordinator.py",),
        unnamed=("src/__init__.py",),
    ),
    number=3,
    seconds=512,
    statuses=(Status.FIXING, Status.FIXING),
)
NOTHING_CHANGED: Final = message(
    "FIXDONE-101-1",
    FixCompletion(specialist="test-runner", fixes=(), files=(), ready=False),
)
TRIGGER: Final = message(
    "REVAL-101-test-runner-2",
    RevalidationTrigger(
        phase="Test Execution",
        previous_failures=(
            "test_validation_coordinator.py::test_sequential_invocation"
            " (tests/test_validation_coordinator.py:41) - AssertionError",
            "coverage - below gate",
        ),
        fixes=("Swapped the two calls", "Added a test"),
    ),
    iteration=2,
    number=4,
    seconds=513,
)
STILL_FAILING: Final = message(
    "REVALRES-101-test-runner-2",
    RevalidationResult(
        passed=False,
        failures=("coverage - 79.9% is below 80%", "test_new - KeyError: 'x'"),
        failure_count=2,
        comparison=Comparison(resolved=("test_sequential",), persisting=("coverage",), new=("test_new",)),
        history=(2, 2),
        likely_cause="the fix after run 1: Swapped the two calls",
        fix_seconds=512,
        coverage="79.9% (target: ≥80%)",
        evidence=("pytest: exit code 1, 41 tests, tree 1f2e3d",),
        marks=("tests/conftest.py",),
    ),
    iteration=2,
    statuses=(Status.RE_CHECKING, Status.FAIL),
)
PASSED: Final = message(
    "REVALRES-101-test-runner-2",
    RevalidationResult(
        passed=True,
        comparison=Comparison(resolved=("test_sequential", "coverage")),
        history=(2, 0),
        fix_seconds=512,
        next_phase="Code Quality",
        coverage="87.3% (target: ≥80%)",
        evidence=("pytest: exit code 0, 42 tests, tree 4a5b6c",),
    ),
    iteration=2,
    number=5,
    seconds=600,
    statuses=(Status.RE_CHECKING, Status.PASS),
)
FIRST_PASS: Final = message(
    "REVALRES-101-test-runner-1",
    RevalidationResult(passed=True, history=(0,), next_phase="Code Quality"),
    statuses=(Status.IN_PROGRESS, Status.PASS),
)
SUCCESS: Final = message(
    "SUCCESS-101-test-runner-2",
    Success(
        phase="Test Execution",
        iterations=2,
        history=(2, 0),
        total_seconds=1455,
        next_phase="Code Quality",
        phases_done=3,
        phases_total=5,
        marks=("tests/conftest.py",),
    ),
    iteration=2,
    number=6,
    seconds=601,
    priority=Priority.MEDIUM,
    statuses=(Status.PASS, Status.COMPLETED),
)
ESCALATION: Final = message(
    "ESC-101-test-runner-20260301T103501Z",
    Escalation(
        feature="Validation coordinator",
        phase="Test Execution",
        reason=Reason.TIMEOUT,
        detail="main-agent-fix ran for 35:01",
        flags=("unresponsive",),
        iterations=2,
        total_seconds=4101,
        history=(
            HistoryRow(iteration=1, failures=2, fixes="Swapped the calls | added a test"),
            HistoryRow(iteration=2, failures=1, fixes="none (limit reached)"),
        ),
        pattern="1 of 2 failures stood in every run",
        persistent=(
            PersistentFailure(
                name="coverage",
                file="src/validation_coordinator.py",
                line=7,
                error="79.9% is below 80%",
                iterations=(1, 2),
                fixes=("Iteration 1: Added a test",),
                why="the error branch is never run",
            ),
        ),
        persistent_count=4,
        recommended=Decision.EXTEND,
        rationale="the work was not finished in time, which says nothing against it",
    ),
    iteration=2,
    recipient=USER,
    priority=Priority.CRITICAL,
    statuses=(Status.FIXING, Status.ESCALATED),
)
BROKEN_SPECIALIST: Final = message(
    "ESC-101-test-runner-20260301T100102Z",
    Escalation(
        feature="Validation coordinator",
        phase="Test Execution",
        reason=Reason.SPECIALIST_ERROR,
        iterations=1,
        total_seconds=62,
    ),
    priority=Priority.CRITICAL,
    statuses=(Status.IN_PROGRESS, Status.ESCALATED),
)
REMINDER: Final = message(
    "TIMEOUT-101-main-agent-fix-20260301T103001Z",
    TimeoutReminder(
        operation="main-agent-fix",
        elapsed_seconds=1801,
        threshold_seconds=1800,
        window_seconds=300,
        status=Status.FIXING,
    ),
)
ERROR: Final = message(
    "ERR-101-specialist-failure-20260301T100102Z",
    ErrorNotification(
        error_type=ErrorType.SPECIALIST_FAILURE,
        operation="specialist-validation",
        agent=SPECIALIST,
        regarding="REVAL-101-test-runner-2",
        context="recheck of test-runner, run 2",
        error="pytest could not start: No module named pytest",
        stack_trace='Traceback (most recent call last):\n  File "run.py", line 1',
        recovery=("Ran the check again",),
        recovered=False,
    ),
)
VIOLATION: Final = message(
    "PVN-101-feature-implementer-main-20260301T101000Z",
    ProtocolViolation(
        offending="FIXDONE-101-3",
        violations=('missing section "Files Modified"', "id FIXDONE-101-3 while FIXREQ-101-1 is open"),
        expected="## Fix Completion\n\n**Message ID**: FIXDONE-101-1",
    ),
)
SAMPLES: Final = {
    "failure-detected": DETECTED,
    "failure-report": REPORT,
    "fix-request": FIX_REQUEST,
    "fix-completion": COMPLETION,
    "fix-completion-nothing-changed": NOTHING_CHANGED,
    "revalidation-trigger": TRIGGER,
    "revalidation-result-fail": STILL_FAILING,
    "revalidation-result-pass": PASSED,
    "validation-result": FIRST_PASS,
    "success": SUCCESS,
    "escalation": ESCALATION,
    "escalation-specialist-error": BROKEN_SPECIALIST,
    "timeout-reminder": REMINDER,
    "error-notification": ERROR,
    "protocol-violation": VIOLATION,
}
