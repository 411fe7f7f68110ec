"""The judge of new tests: how many of them failed before the fix, and whether a coverage gate is met only with tests
that cannot fail.

Only for pytest. If the tests cannot be run, nothing is found.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Final

from fixloop.configuration.model import Check
from fixloop.integrity.new_tests import emptied, new_or_changed, seems_to_check, without
from fixloop.integrity.paths import Kind, kind_of
from fixloop.protocol.checks import CheckResult, Finding, RunOutcome
from fixloop.repository.tree import commit_tree, tracked_in_tree, tree_with
from workers.commands.apart import DATED
from workers.commands.check_run import run_check
from workers.commands.claim import Claim
from workers.commands.pytest_runs import is_pytest, named, plain_run, played

RULE: Final = "proves-nothing"
LEAST_SECONDS: Final = 5.0
MOST_SECONDS: Final = 60.0
LISTED: Final = 10


def new_tests(claim: Claim) -> Iterator[Finding]:
    """Tests that a fix added because a coverage gate was missed, and that pass whatever the product does."""
    if RULE in claim.configuration.integrity.off:
        return
    before, after = claim.sides(Kind.TEST)
    added = new_or_changed(before, after)
    for check, ran in zip(claim.checks, claim.ran, strict=True):
        tests = sorted(name for name in ran.result.cases if name.partition("[")[0] in added)
        if not tests or not is_pytest(check):
            continue
        seconds = min(MOST_SECONDS, max(LEAST_SECONDS, ran.result.evidence.duration_seconds))
        failed = _failed_before(claim, check, tests, seconds)
        counts = {"new_tests": len(tests), "new_tests_failed_before": len(failed)}
        claim.learned.setdefault(check.name, {}).update(counts)
        if claim.was_uncovered and (weak := _weak(claim, check, tests, after, seconds)):
            yield from _gate_needs(claim, check, after, weak)


def _failed_before(claim: Claim, check: Check, tests: list[str], seconds: float) -> set[str]:
    """The tests that fail with an assertion on the product without the fix."""
    git = claim.git
    # Include the fixtures that they may need.
    judges = {delta.path: delta.new for delta in claim.changed_of(Kind.TEST, Kind.RUNNER)}
    tree = tree_with(git, claim.trusted, judges)
    commit = commit_tree(git, tree, [claim.trusted], "fixloop: new tests\n", dated=DATED)
    with claim.fresh_ground("before", commit) as ground:
        if ground.problem:
            return set()
        run = plain_run(tests) | {"by_assertion": True}
        return named(played(claim.run, check, ground, [run], seconds), "plain", "failed")


def _weak(claim: Claim, check: Check, tests: list[str], texts: Mapping[str, str], limit: float) -> list[str]:
    """The tests that pass if the product's functions do nothing, whether these return None or an object that equals
    nothing else; and those that raise there and contain no assertion."""
    with claim.fresh_ground("emptied") as ground:
        if ground.problem:
            return []
        for path in map(bytes.decode, tracked_in_tree(claim.git, claim.tip)):
            file = ground.workspace.path / path
            if path.endswith(".py") and kind_of(path, claim.trust) is Kind.PRODUCT and not file.is_symlink():
                # The new text has no encoding declaration.
                file.write_text(emptied(file.read_bytes().decode("utf-8", "replace")), encoding="utf-8")
        plain = plain_run(tests) | {"by_assertion": True}
        runs = [plain | {"name": returned, "emptied": returned} for returned in ("nothing", "something")]
        found = played(claim.run, check, ground, runs, limit)
    outcomes = {name: {ended.get(name, "") for ended in found.values()} for name in tests}
    return [
        name
        for name, ended in outcomes.items()
        for file, _, test in [name.partition("[")[0].partition("::")]
        if ended == {"passed"} or (ended <= {"passed", "raised"} and not seems_to_check(texts[file], test))
    ]


def _gate_needs(claim: Claim, check: Check, texts: Mapping[str, str], weak: list[str]) -> Iterator[Finding]:
    """A finding if the check does not pass without the tests that cannot fail."""
    again = _run_without(claim, check, texts, {name.partition("[")[0] for name in weak})
    if (
        again is None
        or again.outcome is RunOutcome.PASSED
        or (again.outcome is RunOutcome.ERROR and again.cases)
    ):
        return
    rest = f"\nand {len(weak) - LISTED} more" if len(weak) > LISTED else ""
    yield Finding(
        rule=RULE,
        text=f"the gate of coverage is met only with {len(weak)} new "
        f"{'test that passes' if len(weak) == 1 else 'tests that pass'} whatever the product does",
        check=check.name,
        file=weak[0].partition("::")[0],
        new="\n".join(weak[:LISTED]) + rest,
    )


def _run_without(claim: Claim, check: Check, texts: Mapping[str, str], gone: set[str]) -> CheckResult | None:
    """The check without these tests; None if the result is no longer wanted or nothing can be checked."""
    git, tip = claim.git, claim.tip
    wanted = {}
    for delta in claim.changed_of(Kind.TEST):
        path = claim.inside(os.fsdecode(delta.path))
        if within := {name.removeprefix(f"{path}::") for name in gone if name.startswith(f"{path}::")}:
            left = without(texts[path], within).encode()
            blob = git.text("hash-object", "-w", "--no-filters", "--stdin", stdin=left)
            wanted[delta.path] = delta.new._replace(blob=blob)
    commit = commit_tree(git, tree_with(git, tip, wanted), [tip], "fixloop: without new tests\n", dated=DATED)
    with claim.fresh_ground("without", commit) as ground:
        if ground.problem:
            return None
        again = run_check(check, ground, ground.workspace.tree_hash(), claim.run)
    return again.result if again else None
