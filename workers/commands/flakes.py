"""Tests that fail and pass on the same tree: failed tests are rerun before an agent is asked for a fix (issue 15).

The failed tests run alone first, which is quick. If one passes, the whole check runs in a fresh workspace: a test that
fails there again depends on other tests and is not flaky.
"""

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from typing import Final

from fixloop.configuration.model import Check
from fixloop.protocol.checks import RunOutcome
from workers.commands.check_run import Ran, Run, run_check
from workers.commands.pytest_runs import Rerun, named, plain_run
from workers.workspaces.ground import Ground, Site

RULE: Final = "flaky"
MOST_TESTS: Final = 20
MOST_SECONDS: Final = 10.0
"""The longest check that is rerun as a whole at once, if its tests cannot be run singly."""

OF_CI: Final = "it fails with CI=1 alone, which fixloop sets and a shell here does not"


def told_flaky(
    ran: Ran, check: Check, ground: Ground, site: Site, run: Run, known: Collection[str], rerun: Rerun | None
) -> Ran | None:
    """The check without flaky failures and those caused only by CI=1, which its evidence names; passed if no others
    remain. None if the result is no longer wanted. `rerun`: for single tests, if possible."""
    result, settings = ran.result, site.configuration.integrity
    tests = list(dict.fromkeys(failure.name for failure in result.failures))
    is_new = 0 < len(tests) <= MOST_TESTS and not set(tests).issubset(known)
    if not is_new or not result.lists_tests or not {RULE, "all"}.isdisjoint(settings.off):
        return ran
    seconds = result.evidence.duration_seconds
    plain = plain_run(tests)
    # Only if quick, and in this order: files that one run leaves may let the next one pass.
    more = [plain | {"name": "by hand", "unseen": ["CI"]}, plain | {"name": "again"}]
    runs = [plain, *(more if seconds <= 3 * MOST_SECONDS and "CI" not in os.environ else ())]
    alone = rerun.played(runs, seconds) if rerun else {}
    of_ci = named(alone, "by hand", "passed") & named(alone, "again", "failed") - {*known}
    cases: Collection[str] = of_ci
    if named(alone, "plain", "passed") or not (alone or seconds > MOST_SECONDS):
        with replace(site, name=f"{site.name}.again").ground(ground.workspace.commit) as fresh:
            again = None if fresh.problem else run_check(check, fresh, result.evidence.tree, run)
        if again is None and not fresh.problem:
            return None
        cases = of_ci | (again.result.cases if again else set())
    flaky = [name for name in tests if name in cases]
    failures = tuple(failure for failure in result.failures if failure.name not in flaky)
    if not flaky:
        return ran
    entries, today = settings.quarantine, datetime.now(UTC).date()
    kept = {name: OF_CI if name in of_ci else quarantine_of(name, entries, today) for name in flaky}
    shown = tuple(f"{name} ({why})" if why else name for name, why in kept.items())
    evidence = result.evidence.model_copy(update={"flaky": shown})
    fields = {
        "outcome": RunOutcome.FAILED if failures else RunOutcome.PASSED,
        "reason": evidence.compared(len(failures)),
        "failures": failures,
        "passed_names": (*result.passed_names, *flaky),
        "cases": result.cases | set(flaky),
        "flaky": tuple(name for name, why in kept.items() if not why),
        "evidence": evidence,
    }
    return ran._replace(result=result.model_copy(update=fields))


def quarantine_of(test: str, entries: Sequence[str], today: date) -> str:
    """The owner and end of a test's quarantine, from an entry `TEST OWNER DATE`; empty if it has none or it is over."""
    for pattern, owner, until in (entry.rsplit(None, 2) for entry in entries):
        is_meant = pattern in (test, test.partition("[")[0]) or fnmatchcase(test, pattern)
        if is_meant and today <= date.fromisoformat(until):
            return f"in quarantine until {until}, {owner}"
    return ""
