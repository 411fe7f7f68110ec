"""What one run of a specialist's checks came to: outcome, evidence, error (K38).

Outcomes belong to a run, the nine statuses to a (workflow, specialist); the two never mix.
"""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from fixloop.protocol.failures import Failure

__all__ = ["CheckResult", "Counts", "Evidence", "RunOutcome", "worst"]


class RunOutcome(StrEnum):
    """The five ends of a check run, worst first where they are combined (K38)."""

    CANCELLED = "cancelled"
    ERROR = "error"
    FAILED = "failed"
    PASSED = "passed"
    SKIPPED = "skipped"


class Counts(BaseModel):
    """How many results a report holds."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    total: int = 0
    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0


class Evidence(BaseModel):
    """The record that makes a PASS a PASS; one for each check, kept on every result."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    check: str
    command: str
    interpreter: str = ""
    exit_code: int | None = None
    tree: str = ""
    """The hash of the tree the check ran on, the same before and after it."""
    report_digest: str = ""
    """sha256 of the report file, or of the output where there is no report."""
    counts: Counts = Counts()
    coverage_percent: float | None = None
    coverage_gate: float | None = None
    duration_seconds: float = 0.0


class CheckResult(BaseModel):
    """One check's outcome with everything needed to explain it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    check: str
    outcome: RunOutcome
    reason: str = ""
    """One sentence; required for error and skipped."""
    failures: tuple[Failure, ...] = ()
    passed_names: tuple[str, ...] = ()
    """Ids of the tests that passed, where the report lists them (K7: a vanished test is not resolved)."""
    evidence: Evidence
    output_tail: str = ""


def worst(outcomes: list[RunOutcome]) -> RunOutcome:
    """
    A specialist's outcome from those of its checks: cancelled, error, failed, passed (K38).

    Returns:
        SKIPPED only when every check was skipped (or there is none).
    """
    order = list(RunOutcome)
    return min(outcomes, key=order.index, default=RunOutcome.SKIPPED)
