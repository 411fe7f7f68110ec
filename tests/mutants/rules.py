"""The rules that can be switched off, and the source without one."""

import ast
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from tests.proofs import ROOT, Proof, every

LISTED: Final = Path(__file__).with_name("rules.toml")


class WrongRule(Exception):
    """A rule of the table no longer fits the sources; rules.toml must be updated."""


class Rule(NamedTuple):
    """One rule: where it is in the sources, and the text there without it."""

    name: str
    requirements: Sequence[str]
    file: str
    """Seen from the root."""
    snippet: str
    replacement: str
    hangs: bool = False
    """Without it the tests have no end, which is how they show it."""
    tests: Sequence[str] = ()
    """The names of tests that have to fail, where no requirement covers the rule."""


def rules() -> list[Rule]:
    """The table."""
    table = tomllib.loads(LISTED.read_text(encoding="utf-8"))["rule"]
    return [Rule(**{"requirements": (), **row}) for row in table]


def switched_off(rule: Rule, root: Path = ROOT) -> str:
    """
    The text of the rule's file without the rule.

    Raises:
        WrongRule: the snippet does not occur exactly once, or the rest is not valid Python.
    """
    without = replaced(rule, root)
    try:
        if rule.file.endswith(".py"):
            ast.parse(without, rule.file)
    except SyntaxError as error:
        raise WrongRule(f"{rule.name!r}: {rule.file} does not compile without it: {error}") from None
    return without


def replaced(rule: Rule, root: Path = ROOT) -> str:
    """The same for any file; raises WrongRule unless the snippet occurs exactly once."""
    text = (root / rule.file).read_text(encoding="utf-8")
    found = text.count(rule.snippet)
    if found != 1:
        raise WrongRule(f"{rule.name!r}: the snippet occurs {found} times in {rule.file}: {rule.snippet!r}")
    return text.replace(rule.snippet, rule.replacement)


def proofs_of(rule: Rule) -> list[Proof]:
    """The rule's tests, or those that cite its requirements: quick ones first, long sequences last of these."""
    named = [_named().get(word, ()) for word in (*rule.tests, *rule.requirements)]
    found = [every()[place] for place in sorted({place for places in named for place in places})]
    return sorted(found, key=lambda proof: (proof.is_slow, proof.path.startswith("tests/chaos")))


@cache
def _named() -> Mapping[str, Sequence[int]]:
    """The indexes in the list of tests, by the test's name and by each requirement it cites."""
    found: dict[str, list[int]] = defaultdict(list)
    for place, proof in enumerate(every()):
        for word in (proof.name, *proof.requirements):
            found[word].append(place)
    return found


def asked_first(rule: Rule) -> list[str]:
    """The rule's quick tests; the slow ones if it has no others, or none would pass before."""
    proofs = proofs_of(rule)
    return [proof.node for proof in proofs if proof.is_slow == proofs[0].is_slow]
