"""Judged apart: the same checks on the fix with the snapshot's tests, gates and runner files, on a separate ground.

Nothing runs if a fix changed no judging files. A fix that passes with both versions passes, and its new tests count.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final, NamedTuple

from fixloop.configuration.model import NEW_BY_DEFAULT
from fixloop.integrity.paths import Kind, matches
from fixloop.protocol.checks import Finding, RunOutcome
from fixloop.protocol.limits import one_line
from fixloop.reports.coverage import is_too_low
from fixloop.repository.git import Git, shown
from fixloop.repository.moves import Moves
from fixloop.repository.tree import GITLINK, Delta, Entry, commit_tree, tree_with
from workers.commands.baseline import Comparison
from workers.commands.claim import Claim
from workers.workspaces.ground import site_of

RULE: Final = "apart"
_MOST: Final = 10
"""Files that are shown to a person."""
_CHARACTERS: Final = 100_000
"""Per side of a file, before redaction and truncation."""
DATED: Final = "2000-01-01T00:00:00+0000"
"""The date of unreferenced commits, so that the same tree yields the same commit."""


class _Side(NamedTuple):
    """The change of one file."""

    line: int | None
    old: str
    new: str


class _Apart(NamedTuple):
    """How the checks fail with the old judging files."""

    check: str
    text: str


def apart(claim: Claim) -> Iterator[Finding]:
    """The judging files, if the checks do not pass without the changes to them."""
    git = claim.git
    changed: dict[Delta, Kind] = {} if RULE in claim.configuration.integrity.off else changed_judges(claim)
    if not changed:
        return
    moves = Moves(git, claim.trusted, claim.work.holding.state.tip)
    sides = {delta: _sides(git, moves, delta) for delta in changed}
    adds_tests = set(changed.values()) == {Kind.TEST}
    adds_tests &= not any(delta.is_deletion or side.old for delta, side in sides.items())
    failed = _judged_apart(claim, git, list(changed), adds_tests)
    if failed is None:
        return
    # Changed files come before added ones.
    for delta in islice(sorted(changed, key=lambda each: each.is_addition), _MOST):
        line, old, new = sides[delta]
        sample = {"old": old[:_CHARACTERS], "new": new[:_CHARACTERS]}
        file = shown(delta.path)
        yield Finding(rule=RULE, text=failed.text, check=failed.check, file=file, line=line, **sample)


def changed_judges(claim: Claim) -> dict[Delta, Kind]:
    """The changed judging files, without those that the project allows fixes to change."""
    settings, kinds = claim.configuration.integrity, claim.kinds
    judged = {Kind.PRODUCT}
    if claim.work.holding.ticket.specialist in NEW_BY_DEFAULT:
        # A linter checks tests like any other code; tests do not judge for it.
        judged.add(Kind.TEST)
    return {
        delta: kinds[delta.path]
        for delta in claim.changed
        if kinds.get(delta.path, Kind.PRODUCT) not in judged
        and not matches(claim.trust.inside(os.fsdecode(delta.path)), settings.tests_may_change)
    }


def _judged_apart(claim: Claim, git: Git, changed: Sequence[Delta], adds_tests: bool) -> _Apart | None:
    """How the first failing check fails with the old judging files; None if all pass or the result is not wanted."""
    work, tip = claim.work, claim.work.holding.state.tip
    before: Mapping[bytes, Entry] = {delta.path: delta.old for delta in changed}
    # An unreferenced commit: it is created again where it is needed, identical each time.
    commit = commit_tree(git, tree_with(git, tip, before), [tip], "fixloop: judged apart\n", dated=DATED)
    site = site_of(work, claim.configuration, claim.cache)
    site = replace(site, name=f"{site.name}.apart")
    prefix = "with the tests, gates and runner files of the snapshot,"
    with site.ground(commit) as ground, Comparison(site, claim.run) as comparison:
        if ground.problem:
            return _Apart("", f"{prefix} nothing can be checked: {ground.problem}")
        tree = ground.workspace.tree_hash()
        for check, ran in zip(claim.checks, claim.ran, strict=True):
            again = comparison.checked(work.holding.ticket.specialist, check, ground, tree)
            if again is None:
                return None
            result = again.result
            if result.outcome in (RunOutcome.PASSED, ran.result.outcome):
                continue
            if result.outcome is RunOutcome.FAILED:
                if adds_tests and all(map(is_too_low, result.failures)):
                    continue  # The fix added the tests that it was asked for.
                first = result.failures[0]
                why = f"{first.location or first.name}: {one_line(first.message)}"
            else:
                why = result.reason
            return _Apart(check.name, f"{prefix} `{check.name}` fails: {why}")
    return None


def _sides(git: Git, moves: Moves, delta: Delta) -> _Side:
    """The changed lines; all lines of an added or deleted file."""
    if delta.is_addition or delta.is_deletion:
        entry = delta.new if delta.is_addition else delta.old
        is_file = entry.mode != GITLINK
        text = git.output("cat-file", "blob", entry.blob).decode(errors="replace") if is_file else ""
        return _Side(None, "", text) if delta.is_addition else _Side(None, text, "")
    lines = moves.lines(shown(delta.path))
    first = min((*lines.added, *lines.removed), default=None)
    return _Side(first, "\n".join(lines.removed.values()), "\n".join(lines.added.values()))
