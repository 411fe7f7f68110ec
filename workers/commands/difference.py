"""The judge of a fix's changes to product files: reads both sides from the mirror, see `fixloop.integrity`.

Skips binary files, links, and files of more than a megabyte.
"""

import os
import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final

from fixloop.configuration.model import NEW_BY_DEFAULT
from fixloop.integrity.difference import DOCTEST, RULES, Allowed, Change, Scope, edited, findings
from fixloop.integrity.doubles import only_in_tests
from fixloop.integrity.paths import Kind, Trust, kind_of, matches
from fixloop.integrity.source import Source
from fixloop.integrity.special_cases import RULE as SPECIAL_CASE, added_literals, literals
from fixloop.integrity.suppressions import families_of
from fixloop.protocol.checks import Finding
from fixloop.repository.git import Git
from fixloop.repository.tree import GITLINK, SYMLINK, records, texts, tracked_in_tree
from workers.commands.claim import MOST_BYTES, Claim

_MOST_READ: Final = 50
"""Files that are read to find names that a project used before."""
_MOST_NAMED: Final = 20
"""Literals of the tests that the evidence names."""


def difference(claim: Claim) -> Iterator[Finding]:
    """New signs in product files, tests that no longer run, and changed doctests."""
    settings, git, trust = claim.configuration.integrity, claim.git, claim.trust
    if {*RULES, DOCTEST} <= set(settings.off):
        return
    allowed = [Allowed.of(entry) for entry in settings.allow]
    measures_coverage = any(each.result.evidence.coverage_percent is not None for each in claim.ran)
    families = families_of(" ".join(check.command) for check in claim.checks)

    def elsewhere(names: Collection[str]) -> Iterator[Source]:
        return _files_with(git, claim.trusted, names, trust, Kind.PRODUCT)

    def foreign(names: Collection[str]) -> Collection[str]:
        tests = _files_with(git, claim.trusted, names, trust, Kind.TEST, Kind.RUNNER)
        return only_in_tests(names, tests, elsewhere(names))

    def permits(rule: str, path: str, count: int) -> bool:
        return any(entry.permits(rule, trust.inside(path), count) for entry in allowed)

    families |= {"coverage"} if measures_coverage else set()
    # The files that failures of earlier runs name, by their paths from the top.
    places = {place for ref in claim.failures for place in (ref.file, ref.frame.rpartition(":")[0]) if place}
    failed = frozenset(os.path.normpath(os.path.join(claim.folder, place)) for place in places)
    scope = Scope(literals(_failed_tests(claim, failed)), families, failed, elsewhere, foreign, permits)
    changes = _changes(claim)
    yield from findings(changes, scope)
    if claim.failures and SPECIAL_CASE not in settings.off:
        product = [each[:3] for each in changes if not each.is_test]
        added = added_literals(product, scope.literals, elsewhere)
        shown = tuple(map(claim.ground.redaction.text, added[:_MOST_NAMED]))
        claim.learned.setdefault(claim.checks[0].name, {})["literals_of_tests"] = shown
    ran = {name.partition("::")[0] for each in claim.ran for name in each.result.cases}
    yield from edited(changes, {each.path for each in changes if trust.inside(each.path) in ran})


def _changes(claim: Claim) -> list[Change]:
    """The changed product files and tests whose two sides are readable text."""
    kinds = claim.kinds
    ordinary = claim.configuration.integrity.tests_may_change
    files = [
        (delta, os.fsdecode(delta.path), delta.path in kinds)
        for delta in claim.changed
        if not {GITLINK, SYMLINK} & {delta.old.mode, delta.new.mode}
        and kinds.get(delta.path, Kind.TEST) is Kind.TEST
    ]
    found = texts(claim.git, [one.blob for delta, *_ in files for one in (delta.old, delta.new)], MOST_BYTES)
    return [
        Change(path, found.get(delta.old.blob), found.get(delta.new.blob), is_test)
        for delta, path, is_test in files
        if (delta.is_addition or delta.old.blob in found) and (delta.is_deletion or delta.new.blob in found)
        if not (is_test and matches(claim.trust.inside(path), ordinary))
    ]


def _failed_tests(claim: Claim, paths: Collection[str]) -> Iterator[Source]:
    """Those of these files that are tests, as the trusted commit has them; else all, as a script may name none."""
    named = {f"{claim.trusted}:{path}": path for path in sorted(paths) if _is_test(claim, path)}
    found = texts(claim.git, named, MOST_BYTES)
    if not found and claim.work.holding.ticket.specialist not in NEW_BY_DEFAULT:
        tracked = map(os.fsdecode, tracked_in_tree(claim.git, claim.trusted))
        tests = islice((path for path in tracked if _is_test(claim, path)), _MOST_READ)
        named = {f"{claim.trusted}:{path}": path for path in tests}
        found = texts(claim.git, named, MOST_BYTES)
    yield from (Source(named[name], text) for name, text in found.items())


def _is_test(claim: Claim, path: str) -> bool:
    return kind_of(path, claim.trust) is Kind.TEST


def _files_with(git: Git, commit: str, keys: Collection[str], trust: Trust, *kinds: Kind) -> Iterator[Source]:
    """Files of these kinds that contain the longest word of one of these keys."""
    words = {max(re.findall(r"\w+", key), key=len, default=key) for key in keys}
    options = [option for word in sorted(words) for option in ("-e", word)]
    done = git.run("grep", "-l", "-z", "-w", "-F", "-I", *options, commit, "--", accept=(0, 1))
    paths = [os.fsdecode(name).partition(":")[2] for name in records(done.stdout)]
    meant = (f"{commit}:{path}" for path in paths if kind_of(path, trust) in kinds)
    for name, text in texts(git, islice(meant, _MOST_READ), MOST_BYTES).items():
        yield Source(name.partition(":")[2], text)
