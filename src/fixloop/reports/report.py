"""What one report file says, whatever format it came in.

Owns the value every reader returns and the one exception a reader raises inside this package.
"""

from pydantic import BaseModel, ConfigDict

from fixloop.errors import UsageError
from fixloop.protocol.checks import Counts, RunOutcome
from fixloop.protocol.failures import Failure


class Unusable(UsageError):
    """A file is no report that could prove anything; `read_report` turns this into the outcome `error`."""


class Report(BaseModel):
    """One report file's verdict with what it lists; counts are exact, texts not yet bounded."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    outcome: RunOutcome
    """PASSED, FAILED or ERROR."""
    reason: str
    """One sentence."""
    counts: Counts = Counts()
    failures: tuple[Failure, ...] = ()
    warnings: tuple[Failure, ...] = ()
    """Findings that fail only where the tool's exit code says so, as with `--max-warnings`."""
    passed_names: tuple[str, ...] = ()
    coverage_percent: float | None = None
    findings: int = 0
    """How many results could explain a non-zero exit code, also those that do not fail (K38)."""
    digest: str = ""
    """sha256 of the file, hex; empty when it could not be read."""


def as_json(report: Report) -> dict[str, object]:
    """The document `fixloop read --json` prints."""
    return {
        "outcome": report.outcome.value,
        "reason": report.reason,
        "counts": report.counts.model_dump(),
        "failures": [
            failure.model_dump(include={"name", "file", "line", "error_type", "message"})
            for failure in report.failures
        ],
    }
