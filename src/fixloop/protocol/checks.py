"""What one run of a specialist's checks came to: outcome, evidence, error (K38).

Outcomes belong to a run, the nine statuses to a (workflow, specialist); the two never mix.
"""

from enum import StrEnum

from pydantic import Field

from fixloop.protocol.event import Value
from fixloop.protocol.failures import Failure


class RunOutcome(StrEnum):
    """The five ends of a check run, worst first where they are combined (K38)."""

    CANCELLED = "cancelled"
    ERROR = "error"
    FAILED = "failed"
    PASSED = "passed"
    SKIPPED = "skipped"


class Unverified(Value):
    """A tool that the project has and that does not run here."""

    name: str
    specialist: str
    reason: str
    """One clause: `not installed in .venv`."""
    remedy: str = ""
    """The command that changes it, or how to leave the check out."""
    blocks: bool = False
    """Whether it makes the verdict `not verified`: a test runner, or what fixloop's own configuration names."""


class Counts(Value):
    """How many results a report holds."""

    total: int = 0
    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0


class Evidence(Value):
    """The record that makes a PASS a PASS; one for each check, kept on every result."""

    check: str
    command: str
    reproduce: str = ""
    """The command line to run again, without report files; empty in older records."""
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
    base: str = ""
    """The commit whose failures were told apart from the feature's own; empty: nothing was compared."""
    old: int = 0
    """How many of its failures that commit has too; they neither fail the check nor go to the main agent."""
    old_failures: str = ""
    """Digest of the artifact that lists them, see `OldFailures`."""
    no_baseline: str = ""
    """Why all its failures count although only new ones should, in one clause."""
    sandbox: str = ""
    """What confined it: `bubblewrap`, `landlock` and its version, or `none`; empty in older records."""
    tests: int | None = None
    """How many tests its output says it ran, where it writes no report; None: nothing counts them."""
    canary: str = ""
    """After a fix: whether its runner was `seen` to fail where it must; `none`: nobody knows how to show that."""
    new_tests: int = 0
    """After a fix: how many of its tests are new or changed."""
    new_tests_failed_before: int = 0
    """How many of these fail by an assertion on the tree before the fix; where none does, they say nothing of it."""
    environment: str = ""
    """Digest of the listing of interpreter, packages and tools that it ran with, an artifact."""
    ahead_at: str = ""
    """When it ended, where that was before its phase began (ISO 8601, UTC)."""
    checked_at: str = ""
    """When `fixloop check` found it, where that was taken over (ISO 8601, UTC)."""
    flaky: tuple[str, ...] = ()
    """Tests that failed and then passed on the same tree, each with its quarantine; they are no failures."""

    def of_new_tests(self) -> str:
        """What new tests say of the fix; empty where there are none."""
        new, failed = self.new_tests, self.new_tests_failed_before
        said = f"{new} new or changed {'test' if new == 1 else 'tests'}, {failed or 'none'} of which failed"
        proved = "" if failed else f", so {'it proves' if new == 1 else 'they prove'} nothing about it"
        return f"{said} before the fix{proved}" if new else ""

    @property
    def beforehand(self) -> str:
        """Why it took no time in its phase; empty where it ran there."""
        if self.checked_at:
            return f"taken over from fixloop check at {self.checked_at} (same tree and environment)"
        return f"ran ahead of its phase, until {self.ahead_at}" if self.ahead_at else ""

    def compared(self, new: int) -> str:
        """`487 old, 0 new (base 1a2b3c4)`, or why there is no such count; empty where nobody asked for one."""
        if self.base:
            return f"{self.old} old, {new} new (base {self.base[:7]})"
        return f"all count: {self.no_baseline}" if self.no_baseline else ""


class Finding(Value):
    """Why a run that passed is held for a person: what a rule saw that it cannot decide."""

    rule: str
    """Its name in `docs/integrity.md`."""
    text: str
    """One sentence."""
    check: str = ""
    file: str = ""
    line: int | None = None
    old: str = ""
    """The lines before the fix, at most 1,000 characters."""
    new: str = ""
    """The lines after it, likewise."""


class OldFailures(Value):
    """The failures of one check that the base has too, as an artifact keeps them: exact counts, the first in full."""

    base: str
    count: int
    by_name: dict[str, int] = Field(default_factory=dict)
    """How many of each rule or test."""
    by_file: dict[str, int] = Field(default_factory=dict)
    first: tuple[Failure, ...] = ()


class CheckResult(Value):
    """One check's outcome with everything needed to explain it."""

    check: str
    outcome: RunOutcome
    reason: str = ""
    """One sentence; required for error and skipped."""
    failures: tuple[Failure, ...] = ()
    whole: tuple[Failure, ...] = Field(default=(), exclude=True)
    """All of them in full; what results are kept holds the others as one line each."""
    passed_names: tuple[str, ...] = ()
    """Ids of the tests that passed, where the report lists them (K7: a vanished test is not resolved)."""
    cases: frozenset[str] = Field(default=frozenset(), exclude=True)
    """Those of them that are tests: neither files that load nor parents of subtests."""
    lists_tests: bool = False
    """Whether its report would list a test that passes."""
    old_failures: tuple[Failure, ...] = ()
    """Those that the base has too, each in a line; `failures` are the others."""
    flaky: tuple[str, ...] = ()
    """Tests that failed and then passed on the same tree, and are in no quarantine."""
    evidence: Evidence
    output_tail: str = ""
    is_final: bool = False
    """Nothing but another command or another machine would make a second try end differently."""


def worst(outcomes: list[RunOutcome]) -> RunOutcome:
    """A specialist's outcome from those of its checks (K38); skipped only when every check was, or there is none."""
    order = list(RunOutcome)
    return min(outcomes, key=order.index, default=RunOutcome.SKIPPED)
