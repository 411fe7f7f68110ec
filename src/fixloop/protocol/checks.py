"""The results of one run of a specialist's checks: outcome, evidence, error (K38).

An outcome belongs to a run, one of the nine statuses to a (workflow, specialist); they are never mixed.
"""

from enum import StrEnum

from pydantic import Field

from fixloop.protocol.event import Value
from fixloop.protocol.failures import Failure


class RunOutcome(StrEnum):
    """The five outcomes of a check run, worst first for combining (K38)."""

    CANCELLED = "cancelled"
    ERROR = "error"
    FAILED = "failed"
    PASSED = "passed"
    SKIPPED = "skipped"


class Unverified(Value):
    """A tool that the project uses and that does not run here."""

    name: str
    specialist: str
    reason: str
    """One clause, such as `not installed in .venv`."""
    remedy: str = ""
    """The command that fixes it, or how to leave the check out."""
    blocks: bool = False
    """Whether it makes the verdict `not verified`: a test runner, or a check that fixloop's own configuration names."""


class Counts(Value):
    """The number of results in a report."""

    total: int = 0
    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0


class Evidence(Value):
    """The record that justifies a PASS; one per check, kept with every result."""

    check: str
    command: str
    reproduce: str = ""
    """The command line to repeat it, without report files; empty in older records."""
    interpreter: str = ""
    exit_code: int | None = None
    tree: str = ""
    """The hash of the tree the check ran on, identical before and after it."""
    report_digest: str = ""
    """sha256 of the report file, or of the output if there is no report."""
    counts: Counts = Counts()
    coverage_percent: float | None = None
    coverage_gate: float | None = None
    duration_seconds: float = 0.0
    base: str = ""
    """The commit whose failures are separated from the feature's own; empty: no comparison."""
    old: int = 0
    """The number of failures that this commit has too; they neither fail the check nor go to the main agent."""
    old_failures: str = ""
    """Digest of the artifact that lists them, see `OldFailures`."""
    no_baseline: str = ""
    """Why all failures count although only new ones should, in one clause."""
    sandbox: str = ""
    """The sandbox it ran in: `bubblewrap`, `landlock` and its version, or `none`; empty in older records."""
    tests: int | None = None
    """The number of tests according to the output, if there is no report; None: unknown."""
    canary: str = ""
    """After a fix: `seen` if its runner was shown to fail when it must; `none` if there is no way to show that."""
    new_tests: int = 0
    """After a fix: the number of new or changed tests."""
    new_tests_failed_before: int = 0
    """How many of these fail by an assertion on the tree before the fix; if none, they prove nothing about it."""
    literals_of_tests: tuple[str, ...] = ()
    """After a fix: literals of the failed tests that are new in the product, each with its place."""
    environment: str = ""
    """Digest of the artifact that lists the interpreter, packages and tools it ran with."""
    ahead_at: str = ""
    """When it ended, if that was before its phase began (ISO 8601, UTC)."""
    checked_at: str = ""
    """When `fixloop check` produced it, if it was taken over from there (ISO 8601, UTC)."""
    flaky: tuple[str, ...] = ()
    """Tests that failed and then passed on the same tree, each with its quarantine; they are not failures."""

    def of_new_tests(self) -> str:
        """What new tests show about the fix; empty if there are none."""
        new, failed = self.new_tests, self.new_tests_failed_before
        said = f"{new} new or changed {'test' if new == 1 else 'tests'}, {failed or 'none'} of which failed"
        proved = "" if failed else f", so {'it proves' if new == 1 else 'they prove'} nothing about it"
        return f"{said} before the fix{proved}" if new else ""

    @property
    def beforehand(self) -> str:
        """Why it took no time in its phase; empty if it ran there."""
        if self.checked_at:
            return f"taken over from fixloop check at {self.checked_at} (same tree and environment)"
        return f"ran ahead of its phase, until {self.ahead_at}" if self.ahead_at else ""

    def compared(self, new: int) -> str:
        """`487 old, 0 new (base 1a2b3c4)`, or why there is no such count; empty if none was requested."""
        if self.base:
            return f"{self.old} old, {new} new (base {self.base[:7]})"
        return f"all count: {self.no_baseline}" if self.no_baseline else ""


class Finding(Value):
    """Why a run that passed is held for a person: an observation that a rule cannot judge."""

    rule: str
    """The rule's name in `docs/integrity.md`."""
    text: str
    """One sentence."""
    check: str = ""
    file: str = ""
    line: int | None = None
    old: str = ""
    """The lines before the fix, at most 1,000 characters."""
    new: str = ""
    """The lines after the fix, likewise."""


class OldFailures(Value):
    """The failures of one check that the base has too, as an artifact: exact counts, and the first ones in full."""

    base: str
    count: int
    by_name: dict[str, int] = Field(default_factory=dict)
    """The number of failures of each rule or test."""
    by_file: dict[str, int] = Field(default_factory=dict)
    first: tuple[Failure, ...] = ()


class CheckResult(Value):
    """One check's outcome, with everything needed to explain it."""

    check: str
    outcome: RunOutcome
    reason: str = ""
    """One sentence; required for error and skipped."""
    failures: tuple[Failure, ...] = ()
    whole: tuple[Failure, ...] = Field(default=(), exclude=True)
    """All failures in full; in stored results, those beyond the first are one line each."""
    passed_names: tuple[str, ...] = ()
    """Ids of the passed tests, if the report lists them (K7: a vanished test is not resolved)."""
    cases: frozenset[str] = Field(default=frozenset(), exclude=True)
    """Those passed names that are tests, not files that load or parents of subtests."""
    lists_tests: bool = False
    """Whether its report would list a passing test."""
    old_failures: tuple[Failure, ...] = ()
    """Failures that the base has too, one line each; `failures` are the others."""
    flaky: tuple[str, ...] = ()
    """Tests that failed and then passed on the same tree, and are not in quarantine."""
    evidence: Evidence
    output_tail: str = ""
    is_final: bool = False
    """A second try would end the same, unless the command or the machine changes."""


def worst(outcomes: list[RunOutcome]) -> RunOutcome:
    """A specialist's outcome from those of its checks (K38); skipped only if all of them are, or there are none."""
    return min(outcomes, key=list(RunOutcome).index, default=RunOutcome.SKIPPED)
