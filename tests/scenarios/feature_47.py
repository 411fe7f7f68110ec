"""The worked example of the protocol with its numbers: 3 → 1 → 0 failures, first fix 08:32, in all 24:15 (B65-B67)."""

from tests.fixtures.script import Fix, fails, failure, passes
from tests.fixtures.validation_stage import Stage

FAILURES = (
    failure(
        "tests/test_validation_coordinator.py::test_sequential_invocation",
        file="tests/test_validation_coordinator.py",
        line=41,
        message="expected 5 calls, got 4",
    ),
    failure(
        "tests/test_validation_coordinator.py::test_failure_tracking",
        file="tests/test_validation_coordinator.py",
        line=77,
        error_type="KeyError",
        message="'failures'",
    ),
    failure(
        "tests/test_validation_coordinator.py::test_workflow_completion",
        file="tests/test_validation_coordinator.py",
        line=102,
        error_type="AttributeError",
        message="no attribute 'complete'",
    ),
)
FIRST_FIX = Fix(
    summary="The coordinator lost a specialist and the failures it had counted.",
    fixes=(
        "Invoke every specialist once, in the order of the phases",
        "Give the workflow the `complete` that its callers use",
    ),
    files=("src/validation_coordinator.py",),
    takes_seconds=512.0,
)
SECOND_FIX = Fix(
    summary="Failures are counted from the first one on.",
    fixes=("Start the record of failures before the first specialist runs",),
    files=("src/validation_coordinator.py", "tests/test_validation_coordinator.py"),
    takes_seconds=700.0,
)


def play_feature_47() -> Stage:
    """Run the example to Code Quality and beyond."""
    first = fails(*FAILURES, coverage="73.2% (target: ≥80%)")
    second = fails(FAILURES[1], coverage="79.0% (target: ≥80%)", takes_seconds=100.0)
    third = passes(coverage="87.3% (target: ≥80%)", takes_seconds=143.0)
    runs = {"test-runner": [first, second, third], "code-quality": []}
    stage = Stage(runs, answers=[FIRST_FIX, SECOND_FIX], issue=47, name="Validation coordinator")
    return stage.run()
