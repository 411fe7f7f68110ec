"""What in the diff of product files needs a person's decision: new signs, as findings.

A sign is new if no old text has the same one, so moved or reformatted code yields no finding.
"""

import ast
import doctest
import functools
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from fixloop.integrity import annotations, chance, equality, special_cases, suppressions, unread, watched
from fixloop.integrity.doubles import ASKED, doubles
from fixloop.integrity.paths import matches
from fixloop.integrity.source import Sign, Source
from fixloop.protocol.checks import Finding

RULES: Final = tuple(
    each.RULE for each in (suppressions, watched, equality, special_cases, annotations, chance, unread)
)
DOCTEST: Final = "doctest"
_DOCUMENTED: Final = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_UNREAD: Final = "Python {}.{}, on which fixloop runs, cannot read the file".format(*sys.version_info)
_MOST: Final = 40
"""Per side of a finding."""
_LINES_ABOVE: Final = 4
_FORMS: Final[tuple[Callable[[Sign], tuple[str, ...]], ...]] = (
    lambda sign: (sign.rule, sign.key, sign.code, sign.path, sign.scope),
    lambda sign: (sign.rule, sign.key, sign.path, sign.scope),
    lambda sign: (sign.rule, sign.key, sign.code),
    # A bare directive that now names its rules.
    lambda sign: (sign.rule, sign.kin, sign.path, sign.scope),
)
"""How a sign is matched, strictest first: unchanged; its line changed; it moved; it became more specific."""


class Change(NamedTuple):
    """One file that differs from the trusted commit; None where it does not exist."""

    path: str
    old: str | None
    new: str | None
    is_test: bool = False


class Allowed(NamedTuple):
    """An entry of `[integrity] allow`: `RULE PATTERN`, or `RULE PATTERN NUMBER` for at most NUMBER in one file."""

    rule: str
    pattern: str
    most: int | None = None

    @classmethod
    def of(cls, entry: str) -> "Allowed":
        rule, pattern, *number = entry.split()
        return cls(rule, pattern, int(number[0]) if number else None)

    def permits(self, rule: str, path: str, count: int) -> bool:
        is_meant = self.rule == rule and matches(path, (self.pattern,))
        return is_meant and (self.most is None or count <= self.most)


class Scope(NamedTuple):
    """What a specialist's checks cover, and what the project allows."""

    literals: special_cases.Literals = frozenset()
    """In the tests that failed before."""
    families: Collection[str] = suppressions.EVERYTHING
    """Tool families, see `suppressions`."""
    failed: Collection[str] = ()
    """Files in which the checks found failures before."""
    elsewhere: Callable[[Collection[str]], Iterable[Source]] = lambda names: ()
    """Trusted product files that may contain one of these `watched` keys: a name that the project used is not new."""
    only_in_tests: Callable[[Collection[str]], Collection[str]] = lambda names: ()
    """Those of these names that tests define and no trusted product file mentions."""
    permits: Callable[[str, str, int], bool] = lambda rule, path, count: False
    """Whether a file may have this many new signs of a rule."""


def findings(changes: Sequence[Change], scope: Scope) -> list[Finding]:
    """The new signs in these changes, one finding per kind and file."""
    was: list[Sign] = []
    now: list[Sign] = []
    for change in changes:
        old = Source(change.path, change.old) if change.old is not None else None
        was += _signs(old, None, change, scope) if old else ()
        now += _signs(Source(change.path, change.new), old, change, scope) if change.new is not None else ()
    added = {change.path: change.new or "" for change in changes if change.old is None}
    directives = re.findall(r"(?m)^//go:generate (.*)", "\n".join(each.new or "" for each in changes))
    now = [each for each in now if not suppressions.generated(each, added.get(each.path, ""), directives)]
    found = _without_known_names(_new_signs(was, now), was, scope)
    counts = Counter((sign.rule, sign.path) for sign in found)
    kinds: defaultdict[tuple[str, str, str], list[Sign]] = defaultdict(list)
    for sign in found:
        if not scope.permits(sign.rule, sign.path, counts[sign.rule, sign.path]):
            kinds[sign.path, sign.rule, sign.key].append(sign)
    by_path = {change.path: change for change in changes}
    return [_finding(by_path[path], kind) for (path, _, _), kind in kinds.items()]


def _signs(source: Source, old: Source | None, change: Change, scope: Scope) -> list[Sign]:
    """All signs on one side of a change; a side that can no longer be parsed is a sign itself."""
    # Without its function: to find that, the file would be looked at.
    unread = Sign(watched.RULE, "unread", "unread", _UNREAD, source.path, 1, "".join(source.lines[:1]), "")
    try:
        was_read = old is not None and old.tree is not None
        is_lost = source.is_python and source.tree is None and was_read
        return [*([unread] if is_lost else ()), *_all_signs(source, old, change, scope)]
    except RecursionError:
        return [unread]


def _all_signs(source: Source, old: Source | None, change: Change, scope: Scope) -> Iterator[Sign]:
    if change.is_test:
        # A new test may be skipped on some platforms; an existing one must not be skipped.
        known = {"", *(each.name for each in Source(change.path, change.old).scopes)} if change.old else set()
        yield from (sign for sign in suppressions.skips(source) if sign.scope in known)
        return
    yield from suppressions.suppressions(source, scope.families)
    yield from watched.watched(source)
    yield from doubles(source)
    yield from equality.equals_everything(source)
    yield from (*equality.compares_less(old, source), *unread.unread(old, source)) if old else ()
    yield from chance.by_chance(source)
    yield from special_cases.special_cases(old, source, scope.literals)
    if "types" in scope.families:
        yield from annotations.given_away(old, source, had_failures=source.path in scope.failed)


def _new_signs(was: list[Sign], now: list[Sign]) -> list[Sign]:
    """The signs of `now` that match none of `was`; each old sign matches at most one."""
    for form in _FORMS:
        waiting: defaultdict[tuple[str, ...], list[Sign]] = defaultdict(list)
        for sign in was:
            waiting[form(sign)].append(sign)
        left = []
        for sign in now:
            if same := waiting[form(sign)]:
                same.pop()
            else:
                left.append(sign)
        was, now = [sign for same in waiting.values() for sign in same], left
    return now


def _without_known_names(found: list[Sign], was: Iterable[Sign], scope: Scope) -> list[Sign]:
    """Drop the `watched` signs whose key the product already contained, and names that not only tests define."""
    foreign = (
        scope.only_in_tests(asked) if (asked := {sign.key for sign in found if sign.kin == ASKED}) else ()
    )
    found = [sign for sign in found if sign.kin != ASKED or sign.key in foreign]
    before = {sign.key for sign in was if sign.rule == watched.RULE}
    names = {sign.key for sign in found if sign.rule == watched.RULE} - before
    for source in scope.elsewhere(names) if names else ():
        before |= {sign.key for sign in watched.watched(source)}
    return [sign for sign in found if sign.rule != watched.RULE or sign.key not in before]


def _finding(change: Change, kind: Sequence[Sign]) -> Finding:
    sign = kind[0]
    more = f", and in {len(kind) - 1} more {'places' if len(kind) > 2 else 'place'}" if len(kind) > 1 else ""
    old, new = _both_sides(change.old or "", change.new or "", sign.line)
    return Finding(rule=sign.rule, text=sign.text + more, file=sign.path, line=sign.line, old=old, new=new)


def _both_sides(old: str, new: str, line: int) -> tuple[str, str]:
    """The changed lines around a line of the new text, and the lines that they replace, as (old, new)."""
    before, after = old.split("\n"), new.split("\n")
    for kind, old_first, old_end, first, end in _blocks(old, new):
        if kind != "equal" and first < line <= end:
            first = max(first, line - _LINES_ABOVE)
            return "\n".join(before[old_first:old_end][:_MOST]), "\n".join(after[first:end][:_MOST])
    return "", "\n".join(after[line - 1 : line])


@functools.lru_cache(maxsize=8)
def _blocks(old: str, new: str) -> Sequence[tuple[str, int, int, int, int]]:
    return SequenceMatcher(None, old.split("\n"), new.split("\n")).get_opcodes()


def edited(changes: Sequence[Change], run: Collection[str]) -> Iterator[Finding]:
    """Examples in docstrings, which are tests in a product file, that no changed product file contains unchanged.
    `run`: the files whose examples run as tests; other files are not judged."""
    product = [each for each in changes if not each.is_test and each.path.endswith(".py")]
    now = Counter(example for each in product for example in _examples(each.new or ""))
    for each in product:
        gone = list((Counter(_examples(each.old or "")) - now).elements()) if each.path in run else []
        if gone:
            rest = f", and {len(gone) - 1} more" if len(gone) > 1 else ""
            text = f"an example in a docstring is not as it was{rest}"
            yield Finding(rule=DOCTEST, text=text, file=each.path, old=gone[0])


def _examples(text: str) -> Iterator[str]:
    try:
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, _DOCUMENTED)]
        documented = [ast.get_docstring(node) or "" for node in nodes]
        found = [each for said in documented for each in doctest.DocTestParser().get_examples(said)]
    except (SyntaxError, ValueError, RecursionError):
        return
    yield from (f">>> {each.source.strip()}\n{each.want.strip()}" for each in found)
